package ec2

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/query"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// filterValues is how many filter values EC2 allows in one call, in all its filters together.
const filterValues = 200

// countFilterValues returns EC2's error for a call with too many filter values.
func countFilterValues(form query.Form) error {
	n := 0
	for _, f := range form.Each("Filter") {
		n += len(f.List("Value"))
	}
	if n > filterValues {
		return refusal{"FilterLimitExceeded", fmt.Sprintf("The maximum number of filter values specified on a single call is %d, not %d", filterValues, n)}
	}
	return nil
}

// instanceFilter parses the filters of an InstanceFilter.
func instanceFilter(form query.Form) (cloud.InstanceFilter, error) {
	out := cloud.InstanceFilter{Tags: map[string]string{}}
	for _, f := range form.Each("Filter") {
		name, values := f.Get("Name"), f.List("Value")
		switch {
		case name == "instance-id":
			out.IDs = values
		case name == "instance-state-name":
			for _, state := range values {
				out.States = append(out.States, cloud.State(state))
			}
		case !tagFilter(name, values, out.Tags, ""):
			return out, fmt.Errorf("%w: filter %s with %v", query.ErrUnserved, name, values)
		}
	}
	return out, nil
}

// tagFilter parses a filter on one tag; any is the value that matches every value of a
// key.
func tagFilter(name string, values []string, tags map[string]string, any string) bool {
	key, byValue := strings.CutPrefix(name, "tag:")
	switch {
	case len(values) != 1:
		return false
	case byValue:
		tags[key] = values[0]
	case name == "tag-key":
		tags[values[0]] = any
	default:
		return false
	}
	return true
}

// selectors parses the filters of one selector, or of one for each id. Without a filter
// EC2 returns everything.
func selectors(form query.Form, idFilter, nameFilter string) ([]cloud.Selector, error) {
	one := cloud.Selector{Tags: map[string]string{}, Any: len(form.Each("Filter")) == 0}
	ids := []string{""}
	for _, f := range form.Each("Filter") {
		name, values := f.Get("Name"), f.List("Value")
		switch {
		case name == idFilter:
			ids = values
		case name == nameFilter && len(values) == 1:
			one.Name = values[0]
		case name == "state" && slices.Equal(values, []string{"available"}):
		case !tagFilter(name, values, one.Tags, "*"):
			return nil, fmt.Errorf("%w: filter %s with %v", query.ErrUnserved, name, values)
		}
	}
	var out []cloud.Selector
	for _, id := range ids {
		s := one
		s.ID = id
		out = append(out, s)
	}
	return out, nil
}

// statusFilter parses the one filter of DescribeInstanceStatus. It returns whether an instance matches.
func statusFilter(form query.Form) (func(status) bool, error) {
	filters := form.Each("Filter")
	if len(filters) != 1 {
		return nil, fmt.Errorf("%w: %d filters of statuses; without a filter, EC2 returns all running instances of the account", query.ErrUnserved, len(filters))
	}
	name, values := filters[0].Get("Name"), filters[0].List("Value")
	switch name {
	case "instance-status.status":
		return func(s status) bool { return slices.Contains(values, s.Instance.Status) }, nil
	case "system-status.status":
		return func(s status) bool { return slices.Contains(values, s.System.Status) }, nil
	case "event.code":
		return func(s status) bool {
			return slices.ContainsFunc(s.Events, func(e plannedFor) bool { return slices.Contains(values, e.Code) })
		}, nil
	}
	return nil, fmt.Errorf("%w: filter %s with %v", query.ErrUnserved, name, values)
}

// tag is an element of a tagSet.
type tag struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

func tagSet(tags map[string]string) []tag {
	var out []tag
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, tag{key, tags[key]})
	}
	return out
}

// tagSets parses TagSpecification.N, each for one resource type.
func tagSets(form query.Form) []cloud.TagSet {
	var out []cloud.TagSet
	for _, f := range form.Each("TagSpecification") {
		out = append(out, cloud.TagSet{Resource: f.Get("ResourceType"), Tags: f.Tags("Tag")})
	}
	return out
}

// empty is the body of a response without data.
type empty struct {
	Return bool `xml:"return"`
}

// owner returns the alias and the account number of an image's owner.
func owner(of, account string) (alias, number string) {
	if strings.Trim(of, "0123456789") == "" {
		return "", cmp.Or(of, account)
	}
	return of, "000000000001"
}
