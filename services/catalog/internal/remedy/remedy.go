// Package remedy words what is wrong with an EC2NodeClass, so that the person
// who reads the condition knows what was looked for and what to change.
//
// Every message names the terms that found nothing, and ends in something to
// do. The reasons are Karpenter's, because dashboards match on them.
package remedy

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// messageMax bounds a message in bytes: a condition is read in a terminal.
const messageMax = 2000

// Subnets is the problem that no subnet was found.
func Subnets(terms []cloud.Selector) event.Problem {
	return problem(karpenter.ConditionTypeSubnetsReady, "SubnetsNotFound",
		"no subnet has "+Looked(terms)+": tag the subnets so, or correct spec.subnetSelectorTerms")
}

// SecurityGroups is the problem that no security group was found.
func SecurityGroups(terms []cloud.Selector) event.Problem {
	return problem(karpenter.ConditionTypeSecurityGroupsReady, "SecurityGroupsNotFound",
		"no security group has "+Looked(terms)+": tag the groups so, or correct spec.securityGroupSelectorTerms")
}

// Alias is the problem that an alias cannot be understood or served.
func Alias(why error) event.Problem {
	return problem(karpenter.ConditionTypeAMIsReady, "UnsupportedAlias", why.Error())
}

// Published is the problem that AWS publishes no image under an alias.
func Published(alias karpenter.Alias, version string) event.Problem {
	return problem(karpenter.ConditionTypeAMIsReady, "AMINotFound",
		"AWS publishes no image for alias "+alias.String()+" on Kubernetes "+version+
			": write a version that exists for it, or "+karpenter.Alias{Family: alias.Family, Version: karpenter.AliasVersionLatest}.String())
}

// Images is the problem that no image was found. Notes say what is odd about
// single terms.
func Images(terms []cloud.Selector, notes []string) event.Problem {
	notes = odd(terms, notes)
	text := "no available image of amd64 or arm64 has " + Looked(terms) + ": correct spec.amiSelectorTerms, or share the image with this account"
	if len(terms) == 0 {
		text = "no term of spec.amiSelectorTerms names an image"
	}
	return problem(karpenter.ConditionTypeAMIsReady, "AMINotFound", strings.Join(append([]string{text}, notes...), "; "))
}

// Reservations is the warning that no capacity reservation was found.
func Reservations(terms []karpenter.CapacityReservationSelectorTerm) event.Problem {
	var looked []string
	for _, t := range terms {
		words := fields(field{"id", t.ID}, field{"owner", t.OwnerID}, field{"instanceMatchCriteria", t.InstanceMatchCriteria})
		looked = append(looked, cmp.Or(strings.Join(append(words, tags(t.Tags)...), " and "), "an empty term"))
	}
	out := problem(karpenter.ConditionTypeCapacityReservationsReady, "CapacityReservationsNotFound",
		"no active capacity reservation has "+strings.Join(looked, ", or ")+
			", so that launches are on-demand and spot: tag the reservations so, share them with this account, or correct spec.capacityReservationSelectorTerms")
	out.Warning = true
	return out
}

// PlacementGroup is the problem that the placement group was not found.
func PlacementGroup(selector karpenter.PlacementGroupSelector) event.Problem {
	var words []string
	if selector.Name != nil {
		words = append(words, "name "+*selector.Name)
	}
	if selector.ID != nil {
		words = append(words, "id "+*selector.ID)
	}
	return problem(karpenter.ConditionTypePlacementGroupReady, "PlacementGroupNotFound",
		"no available placement group has "+cmp.Or(strings.Join(words, " and "), "an empty selector")+
			": create it in this region, or correct spec.placementGroupSelector")
}

// Unread says that AWS did not tell what a condition is about. The reason names
// the kind, because what to do about a right is not what to do about a rate.
func Unread(condition string, why error) event.Problem {
	out := problem(condition, reasons[fault.KindOf(why)], Told(why))
	out.Reason = cmp.Or(out.Reason, "AWSUnavailable")
	out.Unread = true
	return out
}

var reasons = map[fault.Kind]string{fault.Denied: "AWSAccessDenied", fault.Throttled: "AWSThrottled", fault.Missing: "ClusterNotFound"}

// Lines are the problems as a log tells them.
func Lines(problems []event.Problem) []string {
	out := make([]string, 0, len(problems))
	for _, p := range problems {
		out = append(out, p.Condition+" "+p.Reason+": "+p.Message)
	}
	return out
}

// Told is an error with its remedy.
func Told(why error) string {
	if hint := fault.HintOf(why); hint != "" {
		return why.Error() + ": " + hint
	}
	return why.Error()
}

// SomeImages is the warning that single terms found nothing, while others did; nil
// when there is nothing odd about any.
func SomeImages(terms []cloud.Selector, notes []string) *event.Problem {
	notes = odd(terms, notes)
	if len(notes) == 0 {
		return nil
	}
	out := problem(karpenter.ConditionTypeAMIsReady, "AMITermsUnmatched", strings.Join(notes, "; "))
	out.Warning = true
	return &out
}

// odd adds what the terms themselves show to the notes.
func odd(terms []cloud.Selector, notes []string) []string {
	notes = slices.Clone(notes)
	for _, term := range terms {
		if strings.HasPrefix(term.Name, "ami-") {
			// a name of that shape finds nothing, silently.
			notes = append(notes, `name "`+term.Name+`" looks like an AMI id, so use id: instead of name:`)
		}
	}
	return notes
}

// Looked says what the terms look for.
func Looked(terms []cloud.Selector) string {
	if len(terms) == 0 {
		return "any of no terms at all"
	}
	var out []string
	for _, term := range terms {
		out = append(out, looked(term))
	}
	return strings.Join(out, ", or ")
}

func looked(term cloud.Selector) string {
	words := fields(field{"id", term.ID}, field{"name", term.Name}, field{"owner", term.Owner})
	return cmp.Or(strings.Join(append(words, tags(term.Tags)...), " and "), "an empty term")
}

type field struct{ name, value string }

// fields are those that say something.
func fields(all ...field) []string {
	var out []string
	for _, f := range all {
		if f.value != "" {
			out = append(out, f.name+" "+f.value)
		}
	}
	return out
}

func tags(all map[string]string) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out = append(out, "tag "+key+"="+all[key])
	}
	return out
}

func problem(condition, reason, message string) event.Problem {
	if len(message) > messageMax {
		message = strings.ToValidUTF8(message[:messageMax], "") + "…"
	}
	return event.Problem{Condition: condition, Reason: reason, Message: message}
}
