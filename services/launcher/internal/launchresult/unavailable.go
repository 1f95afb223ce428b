package launchresult

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
	scopeNone scope = iota
	scopeOffering
	scopeSpot
	scopeSubnet
)

// scopeByCode lists the codes that are shortages, and what Karpenter makes unavailable for
// them (its pkg/errors/errors.go and pkg/providers/instance/instance.go). A code that is not listed, such as
// RequestLimitExceeded or UnauthorizedOperation, blames nothing: it says
// nothing about what EC2 has in stock.
var scopeByCode = map[string]scope{
	"InsufficientInstanceCapacity":                      scopeOffering,
	"MaxSpotInstanceCountExceeded":                      scopeOffering,
	"VcpuLimitExceeded":                                 scopeOffering,
	"UnfulfillableCapacity":                             scopeOffering,
	"Unsupported":                                       scopeOffering,
	"MaxFleetCountExceeded":                             scopeOffering,
	"ReservationCapacityExceeded":                       scopeOffering,
	"InsufficientFreeAddressesInSubnet":                 scopeSubnet,
	"AuthFailure.ServiceLinkedRoleCreationNotPermitted": scopeSpot,
}

// MetricCode is a code for a metric: those that no list has are "other", for labels
// must not grow with what AWS may say one day.
func MetricCode(code string) string {
	if _, known := scopeByCode[code]; known || slices.Contains(otherCodes, code) {
		return code
	}
	return "other"
}

// otherCodes are codes that are no shortage and that people look for.
var otherCodes = []string{
	"RequestLimitExceeded", "UnauthorizedOperation", "InvalidParameterValue", "InvalidLaunchTemplateName.NotFoundException", "Unfulfilled",
	"IdempotentInstanceTerminated",
}

// spreadLimitText is in the message where a spread placement group has its seven
// instances of a zone: then no type fits into that zone.
const spreadLimitText = "limit of instances in this spread placement group"

// buildRefusals are what one error of EC2 refuses: one refusal, or one for each capacity
// reservation that it may be about.
func buildRefusals(intent launchspec.Intent, e cloud.FleetError) []event.Refusal {
	r := event.Refusal{Code: e.Code, Message: e.Message}
	if scopeByCode[e.Code] == scopeNone || intent.Fleet.CapacityType != cloud.Reserved || isGroupFull(intent, e) {
		return []event.Refusal{addUnavailable(r, intent, e)}
	}
	var out []event.Refusal
	if scopeByCode[e.Code] == scopeSubnet {
		out = append(out, addUnavailable(r, intent, e))
	}
	// Karpenter makes the reservation unavailable whatever was short, and no offering.
	if scopeByCode[e.Code] != scopeSpot {
		for _, id := range matchingReservations(intent, e) {
			r.Blamed, r.Reservation = matchingOfferings(intent, e), id
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		return []event.Refusal{addUnavailable(r, intent, e)}
	}
	return out
}

// addUnavailable adds what an error makes unavailable, reservations aside.
func addUnavailable(r event.Refusal, intent launchspec.Intent, e cloud.FleetError) event.Refusal {
	switch scopeByCode[e.Code] {
	case scopeOffering:
		r.Blamed, r.PlacementGroup = matchingOfferings(intent, e), templateGroup(intent, e.Template)
		if isGroupFull(intent, e) {
			r.Blamed = []event.Offering{{Zone: resolveZone(intent, e.Zone, e.SubnetID)}}
		}
	case scopeSpot:
		// The role is for spot alone, whatever the fleet asked for.
		r.Blamed = []event.Offering{{CapacityType: cloud.Spot}}
	case scopeSubnet:
		r.Subnet = e.SubnetID
		// The zone is for whoever does not look at subnets. A subnet that the intent
		// does not name blames nothing: an offering without a zone would be all of them.
		if zone := resolveZone(intent, e.Zone, e.SubnetID); zone != "" {
			r.Blamed = []event.Offering{{Zone: zone}}
		}
	case scopeNone:
	}
	return r
}

// isGroupFull reports whether a spread placement group takes no further instance in the
// error's zone.
func isGroupFull(intent launchspec.Intent, e cloud.FleetError) bool {
	return scopeByCode[e.Code] == scopeOffering && strings.Contains(e.Message, spreadLimitText) &&
		templateGroup(intent, e.Template) != "" && resolveZone(intent, e.Zone, e.SubnetID) != ""
}

// matchingReservations are the ids of the capacity reservations that an error is about: that of
// the template that it names, or those of all templates with a matching override.
func matchingReservations(intent launchspec.Intent, e cloud.FleetError) []string {
	zone := resolveZone(intent, e.Zone, e.SubnetID)
	var out []string
	for _, config := range intent.Fleet.Configs {
		matches := func(o cloud.Override) bool {
			return (e.InstanceType == "" || e.InstanceType == o.InstanceType) && (zone == "" || zone == o.Zone)
		}
		id := templateReservation(intent, config.Template)
		if id != "" && (e.Template == "" || e.Template == config.Template) && slices.ContainsFunc(config.Overrides, matches) && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// templateReservation is the id of the capacity reservation that a template names, or "".
func templateReservation(intent launchspec.Intent, template string) string {
	for _, t := range intent.Templates {
		if t.Name == template && t.Reservation != nil {
			return t.Reservation.ID
		}
	}
	return ""
}

// templateGroup is the placement group of a template, or of the intent's first where
// EC2 does not say which it was: one class has one group.
func templateGroup(intent launchspec.Intent, template string) string {
	for _, t := range intent.Templates {
		if t.Placement != nil && (template == "" || t.Name == template) {
			return cmp.Or(t.Placement.GroupID, t.Placement.Group)
		}
	}
	return ""
}

// matchingOfferings lists what a shortage is about: the one that the error names, or,
// where EC2 leaves that out, all that the intent asked for and no more.
func matchingOfferings(intent launchspec.Intent, e cloud.FleetError) []event.Offering {
	ct := intent.Fleet.CapacityType
	zone := resolveZone(intent, e.Zone, e.SubnetID)
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

// resolveZone finds the zone of an answer that may name a subnet only.
func resolveZone(intent launchspec.Intent, zone, subnet string) string {
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
