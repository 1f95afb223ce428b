package instancetypes_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// soldOut lists the unavailable offerings of a type for the default class, as zone/capacity type.
func soldOut(edit func(*karpenter.EC2NodeClass), list ...planning.Unavailable) []string {
	s := planningtest.NewBatch().Snapshot
	s.NodeClasses[0].Status.Subnets = []karpenter.Subnet{
		{ID: "subnet-1", Zone: "ap-northeast-2a"}, {ID: "subnet-2", Zone: "ap-northeast-2a"}, {ID: "subnet-3", Zone: "ap-northeast-2b"},
	}
	if edit != nil {
		edit(&s.NodeClasses[0])
	}
	s.Unavailable = list
	var out []string
	for _, t := range instancetypes.New(s, planningtest.NewCatalogue()).ByNodeClass[s.NodeClasses[0].Name] {
		for _, o := range t.Offerings {
			if t.Name == "t4g.large" && !o.Available {
				out = append(out, o.Zone+"/"+o.CapacityType)
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestUnavailable(t *testing.T) {
	const a, b = "ap-northeast-2a", "ap-northeast-2b"
	until := planningtest.Now.Add(time.Minute)
	full := func(subnet, zone string) planning.Unavailable {
		return planning.Unavailable{Offering: event.Offering{Zone: zone}, Subnet: subnet, Until: until}
	}
	in := func(group string) planning.Unavailable {
		return planning.Unavailable{Offering: event.Offering{Zone: b}, PlacementGroup: group, Until: until}
	}
	selects := func(selector karpenter.PlacementGroupSelector) func(*karpenter.EC2NodeClass) {
		return func(class *karpenter.EC2NodeClass) { class.Spec.PlacementGroupSelector = &selector }
	}
	inA, inB := []string{a + "/on-demand", a + "/spot"}, []string{b + "/on-demand", b + "/spot"}
	for _, test := range []struct {
		name string
		edit func(*karpenter.EC2NodeClass)
		list []planning.Unavailable
		want []string
	}{
		{"nothing", nil, nil, nil},
		{"an offering", nil, []planning.Unavailable{{Offering: event.Offering{InstanceType: "t4g.large", Zone: a, CapacityType: "spot"}, Until: until}}, inA[1:]},
		{"the launches of a NodePool", nil, []planning.Unavailable{{NodePool: "default", Until: until}}, nil},
		{"of another type", nil, []planning.Unavailable{{Offering: event.Offering{InstanceType: "t4g.small", Zone: a, CapacityType: "spot"}, Until: until}}, nil},
		{"a whole capacity type", nil, []planning.Unavailable{{Offering: event.Offering{CapacityType: "spot"}, Until: until}}, []string{inA[1], inB[1]}},
		{"one subnet of two", nil, []planning.Unavailable{full("subnet-1", a)}, nil},
		{"both subnets of the zone", nil, []planning.Unavailable{full("subnet-1", a), full("subnet-2", a)}, inA},
		{"both subnets, one of them expired now", nil, []planning.Unavailable{
			full("subnet-1", a), {Offering: event.Offering{Zone: a}, Subnet: "subnet-2", Until: planningtest.Now},
		}, nil},
		{"the zone's only subnet", nil, []planning.Unavailable{full("subnet-3", b)}, inB},
		{"an unknown subnet", nil, []planning.Unavailable{full("subnet-9", b)}, nil},
		{"in a placement group, class without a group", nil, []planning.Unavailable{in("pg-1")}, nil},
		{"in the class's placement group", selects(karpenter.PlacementGroupSelector{ID: new("pg-1")}), []planning.Unavailable{in("pg-1")}, inB},
		{"in another group", selects(karpenter.PlacementGroupSelector{ID: new("pg-2")}), []planning.Unavailable{in("pg-1")}, nil},
		{"in a group by name", selects(karpenter.PlacementGroupSelector{Name: new("near")}), []planning.Unavailable{in("near")}, inB},
		{"in another group by name", selects(karpenter.PlacementGroupSelector{Name: new("near")}), []planning.Unavailable{in("far")}, nil},
		{"in a placement group of unknown name", selects(karpenter.PlacementGroupSelector{Name: new("near")}), []planning.Unavailable{in("pg-1")}, inB},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, soldOut(test.edit, test.list...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
