package cloudtest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

var networks = []behaviour{
	{"finds subnets", findsSubnets},
	{"describes all fields of a subnet", describesSubnet},
	{"counts free addresses", countsAddresses},
	{"finds security groups", findsGroups},
}

// selection is selectors, and the ids that they match.
type selection struct {
	name      string
	selectors []cloud.Selector
	want      []string
}

func tagged(key, value string) cloud.Selector {
	return cloud.Selector{Tags: map[string]string{key: value}}
}

// byTags returns selectors with tags, and the ids that they match of those tagged with TagKey: TagValue.
func (s Subject) byTags(all []string) []selection {
	start := s.TagValue[:1]
	return []selection{
		{"tag", []cloud.Selector{tagged(s.TagKey, s.TagValue)}, all},
		{"tag with *", []cloud.Selector{tagged(s.TagKey, start+"*")}, all},
		{"tag with ?", []cloud.Selector{tagged(s.TagKey, "?"+s.TagValue[1:])}, all},
		{"any value", []cloud.Selector{tagged(s.TagKey, "*")}, all},
		{"another value", []cloud.Selector{tagged(s.TagKey, s.TagValue+"?")}, nil},
		{"two tags, one of them absent", []cloud.Selector{
			{Tags: map[string]string{s.TagKey: s.TagValue, "joist/absent": "*"}}}, nil},
		{"id and tag", []cloud.Selector{{ID: all[0], Tags: map[string]string{s.TagKey: s.TagValue}}}, all[:1]},
		{"id and another tag", []cloud.Selector{{ID: all[0], Tags: map[string]string{s.TagKey: "x"}}}, nil},
		{"two selectors for the same object", []cloud.Selector{tagged(s.TagKey, "*"), {ID: all[0]}}, all},
		{"nothing", nil, nil},
		{"an empty selector", []cloud.Selector{{}}, nil},
	}
}

func findsSubnets(t *testing.T, s Subject) {
	var all []string
	for _, subnet := range s.Subnets {
		all = append(all, subnet.ID)
	}
	cases := append(s.byTags(all),
		selection{"two ids", []cloud.Selector{{ID: all[0]}, {ID: all[1]}}, all[:2]},
		selection{"an unknown id", []cloud.Selector{{ID: "subnet-0123456789abcdef0"}, {ID: all[1]}}, all[1:2]})
	for _, test := range cases {
		found, err := s.DescribeSubnets(context.Background(), test.selectors)
		must(t, err)
		var got []string
		for _, subnet := range found {
			got = append(got, subnet.ID)
		}
		if diff := cmp.Diff(sorted(test.want), sorted(got)); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

func describesSubnet(t *testing.T, s Subject) {
	found, err := s.DescribeSubnets(context.Background(), []cloud.Selector{{ID: s.Subnets[0].ID}})
	must(t, err)
	if diff := cmp.Diff([]cloud.Subnet{s.Subnets[0]}, found); diff != "" {
		t.Error(diff)
	}
}

func countsAddresses(t *testing.T, s Subject) {
	selector := []cloud.Selector{{ID: s.Subnets[0].ID}}
	before, err := s.DescribeSubnets(context.Background(), selector)
	must(t, err)
	s.launch(t, s.request(t, "addresses", 2, s.Subnets[0]))
	after, err := s.DescribeSubnets(context.Background(), selector)
	must(t, err)
	if used := before[0].FreeIPs - after[0].FreeIPs; used < 2 {
		t.Errorf("2 instances use %d addresses", used)
	}
}

func findsGroups(t *testing.T, s Subject) {
	all := []string{s.SecurityGroup.ID}
	name := s.SecurityGroup.Name
	cases := append(s.byTags(all),
		selection{"name", []cloud.Selector{{Name: name}}, all},
		selection{"name with *", []cloud.Selector{{Name: name[:2] + "*"}}, all},
		selection{"another name", []cloud.Selector{{Name: name + "x"}}, nil},
		selection{"an unknown id", []cloud.Selector{{ID: "sg-0123456789abcdef0"}, {ID: all[0]}}, all})
	for _, test := range cases {
		found, err := s.DescribeSecurityGroups(context.Background(), test.selectors)
		must(t, err)
		var got []string
		for _, group := range found {
			got = append(got, group.ID)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}
