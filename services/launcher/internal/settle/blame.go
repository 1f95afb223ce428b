package settle

import (
	"slices"

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
		r.Blamed = offerings(intent, e)
	case capacityType:
		r.Blamed = []event.Offering{{CapacityType: ct}}
	case subnet:
		r.Subnet = e.SubnetID
		// One subnet a zone is asked, so that its zone is what cannot be had. A
		// subnet that the intent does not name blames nothing: an offering
		// without a zone would be all of them.
		if zone := zoneOf(intent, e.Zone, e.SubnetID); zone != "" {
			r.Blamed = []event.Offering{{Zone: zone}}
		}
	case nothing:
	}
	return r
}

// offerings lists what a shortage is about: the one that the error names, or,
// where EC2 leaves that out, all that the intent asked for and no more.
func offerings(intent launchspec.Intent, e cloud.FleetError) []event.Offering {
	ct := intent.Fleet.CapacityType
	zone := zoneOf(intent, e.Zone, e.SubnetID)
	if e.InstanceType != "" && zone != "" {
		return []event.Offering{{InstanceType: e.InstanceType, Zone: zone, CapacityType: ct}}
	}
	var out []event.Offering
	for _, config := range intent.Fleet.Configs {
		for _, o := range config.Overrides {
			asked := event.Offering{InstanceType: o.InstanceType, Zone: o.Zone, CapacityType: ct}
			named := (e.InstanceType == "" || e.InstanceType == o.InstanceType) && (zone == "" || zone == o.Zone)
			if named && !slices.Contains(out, asked) {
				out = append(out, asked)
			}
		}
	}
	return out
}

// zoneOf finds the zone of an answer that may name a subnet only.
func zoneOf(intent launchspec.Intent, zone, subnet string) string {
	if zone != "" || subnet == "" {
		return zone
	}
	for _, config := range intent.Fleet.Configs {
		for _, o := range config.Overrides {
			if o.SubnetID == subnet {
				return o.Zone
			}
		}
	}
	return ""
}
