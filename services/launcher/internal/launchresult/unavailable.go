package launchresult

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// scope is the set of offerings that an error code makes unavailable.
type scope int

const (
	scopeNone scope = iota
	scopeOffering
	scopeSpot
	scopeSubnet
)

// scopeByCode has the codes of insufficient capacity and the offerings that Karpenter makes
// unavailable for them (Karpenter's AWS provider: pkg/errors/errors.go and
// pkg/providers/instance/instance.go). Other codes, such as RequestLimitExceeded or
// UnauthorizedOperation, make nothing unavailable: they are independent of capacity.
var scopeByCode = map[string]scope{
	"InsufficientInstanceCapacity":                      scopeOffering,
	"MaxSpotInstanceCountExceeded":                      scopeOffering,
	"VcpuLimitExceeded":                                 scopeOffering,
	"UnfulfillableCapacity":                             scopeOffering,
	"Unsupported":                                       scopeOffering,
	"MaxFleetCountExceeded":                             scopeOffering,
	"SpotMaxPriceTooLow":                                scopeOffering,
	planning.ReservationFullCode:                        scopeOffering,
	"InvalidCapacityReservationState.Unavailable":       scopeOffering,
	"InsufficientFreeAddressesInSubnet":                 scopeSubnet,
	"AuthFailure.ServiceLinkedRoleCreationNotPermitted": scopeSpot,
}

// MetricCode returns the label of a metric for an error code. Unknown codes are "other", to
// limit the number of label values.
func MetricCode(code string) string {
	if _, ok := scopeByCode[code]; ok || slices.Contains(otherCodes, code) {
		return code
	}
	return "other"
}

// otherCodes are codes that make nothing unavailable and have their own label.
var otherCodes = []string{
	"RequestLimitExceeded", "UnauthorizedOperation", "InvalidParameterValue", "InvalidLaunchTemplateName.NotFoundException", "Unfulfilled",
	"IdempotentInstanceTerminated",
}

// spreadLimitText is part of EC2's message if a spread placement group has its maximum of
// seven instances in a zone: then no instance type can be launched there.
const spreadLimitText = "limit of instances in this spread placement group"

// buildRefusals returns the refusals of one error of EC2: one, or one for each capacity
// reservation that it may concern.
func buildRefusals(intent launchspec.Intent, e cloud.FleetError) []event.Refusal {
	r := event.Refusal{Code: e.Code, Message: e.Message}
	if scopeByCode[e.Code] == scopeNone || intent.Fleet.CapacityType != cloud.Reserved || isGroupFull(intent, e) {
		return []event.Refusal{addUnavailable(r, intent, e)}
	}
	var out []event.Refusal
	if scopeByCode[e.Code] == scopeSubnet {
		out = append(out, addUnavailable(r, intent, e))
	}
	// Like Karpenter, this concerns the reservation and no other offering.
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

// addUnavailable adds to a refusal the offerings that the error makes unavailable, except
// reservations.
func addUnavailable(r event.Refusal, intent launchspec.Intent, e cloud.FleetError) event.Refusal {
	switch scopeByCode[e.Code] {
	case scopeOffering:
		r.Blamed, r.PlacementGroup = matchingOfferings(intent, e), templateGroup(intent, e.Template)
		if isGroupFull(intent, e) {
			r.Blamed = []event.Offering{{Zone: resolveZone(intent, e.Zone, e.SubnetID)}}
		}
	case scopeSpot:
		// Only spot instances need the service-linked role.
		r.Blamed = []event.Offering{{CapacityType: cloud.Spot}}
	case scopeSubnet:
		r.Subnet = e.SubnetID
		// The zone is for consumers that ignore subnets. A subnet that the intent does not
		// name has no zone, and an offering without a zone would match all offerings.
		if zone := resolveZone(intent, e.Zone, e.SubnetID); zone != "" {
			r.Blamed = []event.Offering{{Zone: zone}}
		}
	case scopeNone:
	}
	return r
}

// isGroupFull reports whether a spread placement group accepts no more instances in the
// error's zone.
func isGroupFull(intent launchspec.Intent, e cloud.FleetError) bool {
	return scopeByCode[e.Code] == scopeOffering && strings.Contains(e.Message, spreadLimitText) &&
		templateGroup(intent, e.Template) != "" && resolveZone(intent, e.Zone, e.SubnetID) != ""
}

// matchingReservations returns the IDs of the capacity reservations that an error concerns: the
// reservation of the named template, or the reservations of all templates with a matching override.
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

// templateReservation returns the id of the capacity reservation that a template names, or "".
func templateReservation(intent launchspec.Intent, template string) string {
	for _, t := range intent.Templates {
		if t.Name == template && t.Reservation != nil {
			return t.Reservation.ID
		}
	}
	return ""
}

// templateGroup returns the placement group of a template. If EC2 names no template, it is the
// first group of the intent: all templates of a class have the same group.
func templateGroup(intent launchspec.Intent, template string) string {
	for _, t := range intent.Templates {
		if t.Placement != nil && (template == "" || t.Name == template) {
			return cmp.Or(t.Placement.GroupID, t.Placement.Group)
		}
	}
	return ""
}

// matchingOfferings returns the offering that the error names. If the error omits the
// type or the zone, it returns all offerings of the intent that match the rest.
func matchingOfferings(intent launchspec.Intent, e cloud.FleetError) []event.Offering {
	capacityType := intent.Fleet.CapacityType
	zone := resolveZone(intent, e.Zone, e.SubnetID)
	if e.InstanceType != "" && zone != "" {
		return []event.Offering{{InstanceType: e.InstanceType, Zone: zone, CapacityType: capacityType}}
	}
	var out []event.Offering
	for _, config := range intent.Fleet.Configs {
		for _, o := range config.Overrides {
			offering := event.Offering{InstanceType: o.InstanceType, Zone: o.Zone, CapacityType: capacityType}
			matches := (e.InstanceType == "" || e.InstanceType == o.InstanceType) && (zone == "" || zone == o.Zone)
			if matches && !slices.Contains(out, offering) {
				out = append(out, offering)
			}
		}
	}
	return out
}

// resolveZone returns the zone, or the zone of the subnet if EC2 named only the subnet.
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
