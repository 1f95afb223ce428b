// Package status builds the problems of an EC2NodeClass, which become its conditions.
//
// Every message names the selector terms that matched nothing and a fix. The reasons are
// Karpenter's, because dashboards match them.
package status

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

// messageMax is the maximum size of a message in bytes.
const messageMax = 2000

// NoSubnets returns the problem that no subnet matches.
func NoSubnets(terms []cloud.Selector) event.Problem {
	return NewProblem(karpenter.ConditionTypeSubnetsReady, "SubnetsNotFound",
		"no subnet matches "+DescribeTerms(terms)+": tag the subnets accordingly, or correct spec.subnetSelectorTerms")
}

// NoSecurityGroups returns the problem that no security group matches.
func NoSecurityGroups(terms []cloud.Selector) event.Problem {
	return NewProblem(karpenter.ConditionTypeSecurityGroupsReady, "SecurityGroupsNotFound",
		"no security group matches "+DescribeTerms(terms)+": tag the groups accordingly, or correct spec.securityGroupSelectorTerms")
}

// UnsupportedAlias returns the problem that an alias is invalid or has no images.
func UnsupportedAlias(err error) event.Problem {
	return NewProblem(karpenter.ConditionTypeAMIsReady, "UnsupportedAlias", err.Error())
}

// NoPublishedImage returns the problem that AWS publishes no image for an alias.
func NoPublishedImage(alias karpenter.Alias, version string) event.Problem {
	return NewProblem(karpenter.ConditionTypeAMIsReady, "AMINotFound",
		"AWS publishes no image for alias "+alias.String()+" on Kubernetes "+version+
			": use a version that exists for it, or "+karpenter.Alias{Family: alias.Family, Version: karpenter.AliasVersionLatest}.String())
}

// NoImages returns the problem that no image matches. notes describe terms that cannot
// match.
func NoImages(terms []cloud.Selector, notes []string) event.Problem {
	notes = addNameNotes(terms, notes)
	text := "no available amd64 or arm64 image matches " + DescribeTerms(terms) + ": correct spec.amiSelectorTerms, or share the image with this account"
	if len(terms) == 0 {
		text = "no term of spec.amiSelectorTerms names an image"
	}
	return NewProblem(karpenter.ConditionTypeAMIsReady, "AMINotFound", strings.Join(append([]string{text}, notes...), "; "))
}

// NoReservations returns the warning that no capacity reservation matches.
func NoReservations(terms []karpenter.CapacityReservationSelectorTerm) event.Problem {
	var descriptions []string
	for _, t := range terms {
		parts := joinFields(field{"id", t.ID}, field{"owner", t.OwnerID}, field{"instanceMatchCriteria", t.InstanceMatchCriteria})
		descriptions = append(descriptions, cmp.Or(strings.Join(append(parts, describeTags(t.Tags)...), " and "), "an empty term"))
	}
	out := NewProblem(karpenter.ConditionTypeCapacityReservationsReady, "CapacityReservationsNotFound",
		"no active capacity reservation matches "+strings.Join(descriptions, ", or ")+
			", so launches use on-demand and spot: tag the reservations accordingly, share them with this account, or correct spec.capacityReservationSelectorTerms")
	out.Warning = true
	return out
}

// NoPlacementGroup returns the problem that the placement group does not exist.
func NoPlacementGroup(selector karpenter.PlacementGroupSelector) event.Problem {
	var parts []string
	if selector.Name != nil {
		parts = append(parts, "name "+*selector.Name)
	}
	if selector.ID != nil {
		parts = append(parts, "id "+*selector.ID)
	}
	return NewProblem(karpenter.ConditionTypePlacementGroupReady, "PlacementGroupNotFound",
		"no available placement group matches "+cmp.Or(strings.Join(parts, " and "), "an empty selector")+
			": create it in this region, or correct spec.placementGroupSelector")
}

// UnreadCondition returns the problem that AWS could not be read for a condition. The
// reason follows from the error's kind, because the fix depends on it.
func UnreadCondition(condition string, err error) event.Problem {
	out := NewProblem(condition, unreadReasons[fault.KindOf(err)], ErrorWithHint(err))
	out.Reason = cmp.Or(out.Reason, "AWSUnavailable")
	out.Unread = true
	return out
}

var unreadReasons = map[fault.Kind]string{fault.Denied: "AWSAccessDenied", fault.Throttled: "AWSThrottled", fault.Missing: "ClusterNotFound"}

// FormatProblems returns one line for each problem, for the log.
func FormatProblems(problems []event.Problem) []string {
	out := make([]string, 0, len(problems))
	for _, p := range problems {
		out = append(out, p.Condition+" "+p.Reason+": "+p.Message)
	}
	return out
}

// ErrorWithHint returns the text of an error with its hint.
func ErrorWithHint(err error) string {
	if hint := fault.FindHint(err); hint != "" {
		return err.Error() + ": " + hint
	}
	return err.Error()
}

// UnmatchedImageTerms returns the warning that some terms match nothing while others do; nil
// without notes.
func UnmatchedImageTerms(terms []cloud.Selector, notes []string) *event.Problem {
	notes = addNameNotes(terms, notes)
	if len(notes) == 0 {
		return nil
	}
	out := NewProblem(karpenter.ConditionTypeAMIsReady, "AMITermsUnmatched", strings.Join(notes, "; "))
	out.Warning = true
	return &out
}

// addNameNotes adds a note for each term that has an AMI id as its name.
func addNameNotes(terms []cloud.Selector, notes []string) []string {
	notes = slices.Clone(notes)
	for _, term := range terms {
		if strings.HasPrefix(term.Name, "ami-") {
			// EC2 matches no image by such a name and reports no error.
			notes = append(notes, `name "`+term.Name+`" looks like an AMI id: use id instead of name`)
		}
	}
	return notes
}

// DescribeTerms returns a description of the terms.
func DescribeTerms(terms []cloud.Selector) string {
	if len(terms) == 0 {
		return "an empty list of terms"
	}
	var out []string
	for _, term := range terms {
		out = append(out, describeTerm(term))
	}
	return strings.Join(out, ", or ")
}

func describeTerm(term cloud.Selector) string {
	parts := joinFields(field{"id", term.ID}, field{"name", term.Name}, field{"owner", term.Owner})
	return cmp.Or(strings.Join(append(parts, describeTags(term.Tags)...), " and "), "an empty term")
}

type field struct{ name, value string }

// joinFields returns "name value" for each field with a value.
func joinFields(all ...field) []string {
	var out []string
	for _, f := range all {
		if f.value != "" {
			out = append(out, f.name+" "+f.value)
		}
	}
	return out
}

func describeTags(all map[string]string) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out = append(out, "tag "+key+"="+all[key])
	}
	return out
}

// NewProblem returns a problem. It shortens long messages.
func NewProblem(condition, reason, message string) event.Problem {
	return event.Problem{Condition: condition, Reason: reason, Message: fault.Truncate(message, messageMax)}
}
