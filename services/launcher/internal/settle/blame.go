package settle

import (
	"cmp"
	"slices"
	"strings"

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
	"MaxSpotInstanceCountExceeded":                      capacityType,
	"VcpuLimitExceeded":                                 offering,
	"UnfulfillableCapacity":                             offering,
	"Unsupported":                                       offering,
	"MaxFleetCountExceeded":                             offering,
	"ReservationCapacityExceeded":                       offering,
	"InsufficientFreeAddressesInSubnet":                 subnet,
	"AuthFailure.ServiceLinkedRoleCreationNotPermitted": capacityType,
}

// Known is a code for a metric: those that no list has are "other", for labels
// must not grow with what AWS may say one day.
func Known(code string) string {
	if _, known := scopes[code]; known || slices.Contains(harmless, code) {
		return code
	}
	return "other"
}

// harmless are codes that are no shortage and that people look for.
var harmless = []string{
	"RequestLimitExceeded", "UnauthorizedOperation", "InvalidParameterValue", "InvalidLaunchTemplateName.NotFoundException", "Unfulfilled",
}

// spreadLimit is in the message where a spread placement group has its seven
// instances of a zone (B130): then no type fits into that zone.
const spreadLimit = "limit of instances in this spread placement group"

func refusal(intent launchspec.Intent, e cloud.FleetError) event.Refusal {
	r := event.Refusal{Code: e.Code, Message: e.Message}
	ct := intent.Fleet.CapacityType
	switch scopes[e.Code] {
	case offering:
		r.Blamed, r.PlacementGroup = offerings(intent, e), groupOf(intent, e.Template)
		if zone := zoneOf(intent, e.Zone, e.SubnetID); strings.Contains(e.Message, spreadLimit) && r.PlacementGroup != "" && zone != "" {
			r.Blamed = []event.Offering{{Zone: zone}}
		}
	case capacityType:
		r.Blamed = []event.Offering{{CapacityType: ct}}
	case subnet:
		r.Subnet = e.SubnetID
		// The zone is for whoever does not look at subnets. A subnet that the intent
		// does not name blames nothing: an offering without a zone would be all of them.
		if zone := zoneOf(intent, e.Zone, e.SubnetID); zone != "" {
			r.Blamed = []event.Offering{{Zone: zone}}
		}
	case nothing:
	}
	return r
}

// groupOf is the placement group of a template, or of the intent's first where
// EC2 does not say which it was: one class has one group.
func groupOf(intent launchspec.Intent, template string) string {
	for _, t := range intent.Templates {
		if t.Placement != nil && (template == "" || t.Name == template) {
			return cmp.Or(t.Placement.GroupID, t.Placement.Group)
		}
	}
	return ""
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
