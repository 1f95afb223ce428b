package settle

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// scope is how much a code blames.
type scope int

const (
	nothing scope = iota
	offering
	spot
	subnet
)

// scopes lists the codes that are shortages, and what Karpenter makes unavailable for
// them (its pkg/errors/errors.go and pkg/providers/instance/instance.go). A code that is not listed, such as
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
	"AuthFailure.ServiceLinkedRoleCreationNotPermitted": spot,
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
	"IdempotentInstanceTerminated",
}

// spreadLimit is in the message where a spread placement group has its seven
// instances of a zone: then no type fits into that zone.
const spreadLimit = "limit of instances in this spread placement group"

// refusals are what one error of EC2 refuses: one refusal, or one for each capacity
// reservation that it may be about.
func refusals(intent launchspec.Intent, e cloud.FleetError) []event.Refusal {
	r := event.Refusal{Code: e.Code, Message: e.Message}
	if scopes[e.Code] == nothing || intent.Fleet.CapacityType != cloud.Reserved || groupFull(intent, e) {
		return []event.Refusal{blame(r, intent, e)}
	}
	var out []event.Refusal
	if scopes[e.Code] == subnet {
		out = append(out, blame(r, intent, e))
	}
	// Karpenter makes the reservation unavailable whatever was short, and no offering.
	if scopes[e.Code] != spot {
		for _, id := range reservations(intent, e) {
			r.Blamed, r.Reservation = offerings(intent, e), id
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		return []event.Refusal{blame(r, intent, e)}
	}
	return out
}

// blame adds what an error makes unavailable, reservations aside.
func blame(r event.Refusal, intent launchspec.Intent, e cloud.FleetError) event.Refusal {
	switch scopes[e.Code] {
	case offering:
		r.Blamed, r.PlacementGroup = offerings(intent, e), groupOf(intent, e.Template)
		if groupFull(intent, e) {
			r.Blamed = []event.Offering{{Zone: zoneOf(intent, e.Zone, e.SubnetID)}}
		}
	case spot:
		// The role is for spot alone, whatever the fleet asked for.
		r.Blamed = []event.Offering{{CapacityType: cloud.Spot}}
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

// groupFull reports whether a spread placement group takes no further instance in the
// error's zone.
func groupFull(intent launchspec.Intent, e cloud.FleetError) bool {
	return scopes[e.Code] == offering && strings.Contains(e.Message, spreadLimit) &&
		groupOf(intent, e.Template) != "" && zoneOf(intent, e.Zone, e.SubnetID) != ""
}

// reservations are the ids of the capacity reservations that an error is about: that of
// the template that it names, or those of all templates with a matching override.
func reservations(intent launchspec.Intent, e cloud.FleetError) []string {
	zone := zoneOf(intent, e.Zone, e.SubnetID)
	var out []string
	for _, config := range intent.Fleet.Configs {
		matches := func(o cloud.Override) bool {
			return (e.InstanceType == "" || e.InstanceType == o.InstanceType) && (zone == "" || zone == o.Zone)
		}
		id := reservationOf(intent, config.Template)
		if id != "" && (e.Template == "" || e.Template == config.Template) && slices.ContainsFunc(config.Overrides, matches) && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// reservationOf is the id of the capacity reservation that a template names, or "".
func reservationOf(intent launchspec.Intent, template string) string {
	for _, t := range intent.Templates {
		if t.Name == template && t.Reservation != nil {
			return t.Reservation.ID
		}
	}
	return ""
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
