package settle

import (
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// scope is how much a code blames (B191, B192).
type scope int

const (
	nothing scope = iota
	offering
	capacityType
	subnet
)

// scopes lists the codes that are shortages. A code that is not listed, such as
// RequestLimitExceeded or UnauthorizedOperation, blames nothing: it says
// nothing about what EC2 has in stock.
var scopes = map[string]scope{
	"InsufficientInstanceCapacity":                      offering,
	"MaxSpotInstanceCountExceeded":                      offering,
	"VcpuLimitExceeded":                                 offering,
	"UnfulfillableCapacity":                             offering,
	"Unsupported":                                       offering,
	"MaxFleetCountExceeded":                             offering,
	"ReservationCapacityExceeded":                       offering,
	"InsufficientFreeAddressesInSubnet":                 subnet,
	"AuthFailure.ServiceLinkedRoleCreationNotPermitted": capacityType,
}

func refusal(intent launchspec.Intent, e cloud.FleetError) event.Refusal {
	r := event.Refusal{Code: e.Code, Message: e.Message}
	ct := intent.Fleet.CapacityType
	switch scopes[e.Code] {
	case offering:
		r.Blamed = []event.Offering{{InstanceType: e.InstanceType, Zone: zoneOf(intent, e), CapacityType: ct}}
	case capacityType:
		r.Blamed = []event.Offering{{CapacityType: ct}}
	case subnet:
		r.Subnet = e.SubnetID
		// One subnet a zone is asked, so that its zone is what cannot be had.
		r.Blamed = []event.Offering{{Zone: zoneOf(intent, e)}}
	case nothing:
	}
	return r
}

// zoneOf finds the zone of an error that names a subnet only.
func zoneOf(intent launchspec.Intent, e cloud.FleetError) string {
	if e.Zone != "" {
		return e.Zone
	}
	for _, config := range intent.Fleet.Configs {
		for _, o := range config.Overrides {
			if o.SubnetID == e.SubnetID {
				return o.Zone
			}
		}
	}
	return ""
}
