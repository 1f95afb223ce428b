package solver_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// twoZones returns the default snapshot with subnets a1, a2 and b1 in zones a and b.
func twoZones() (planning.Snapshot, catalog.Catalogue) {
	s, cat := planningtest.NewBatch().Snapshot, planningtest.NewCatalogue()
	s.NodeClasses[0].Status.Subnets = []karpenter.Subnet{
		{ID: "a1", Zone: "ap-northeast-2a"}, {ID: "a2", Zone: "ap-northeast-2a"}, {ID: "b1", Zone: "ap-northeast-2b"},
	}
	cat.AsOf = s.TakenAt
	return s, cat
}

// youngNode returns a node of the default class in a zone, created some seconds after the count of
// free addresses.
func youngNode(zone string, seconds int, pods string) planning.Node {
	return planning.Node{
		Claim: "c", Launched: true, Created: planningtest.Now.Add(time.Duration(seconds) * time.Second),
		Labels: map[string]string{corev1.LabelTopologyZone: "ap-northeast-2" + zone, karpenter.LabelEC2NodeClass: planningtest.NewNodeClass().Name},
		Used:   corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)},
	}
}

// launchedLate returns the node as a NodeClaim that was launched just after the count.
func launchedLate(n planning.Node) planning.Node {
	n.LaunchedAt = planningtest.Now.Add(time.Second)
	return n
}

// openClaim returns a NodeClaim that may launch in some zones and was planned for the pods.
func openClaim(pods string, zones ...string) planning.Node {
	n := planning.Node{
		Claim: "c", Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)},
		Labels: map[string]string{karpenter.LabelEC2NodeClass: planningtest.NewNodeClass().Name},
	}
	if len(zones) > 0 {
		n.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: zones}}
	}
	return n
}

func TestFreeIPs(t *testing.T) {
	counts := []catalog.SubnetCount{{ID: "a1", FreeIPs: 20}, {ID: "a2", FreeIPs: 50}, {ID: "b1", FreeIPs: 10}}
	for _, tt := range []struct {
		name   string
		counts []catalog.SubnetCount
		family string
		nodes  []planning.Node
		want   map[string]int64 // by last character of the zone

		podsElsewhere bool
	}{
		{"not counted", nil, "", nil, nil, false},
		{"the largest subnet of a zone", counts, "ipv4", nil, map[string]int64{"a": 50, "b": 10}, false},
		{"a zone without a count", counts[:1], "ipv4", nil, map[string]int64{"a": 20}, false},
		{"unlimited addresses", counts, "ipv6", nil, nil, false},
		{"a node created after the count", counts, "", []planning.Node{youngNode("a", 1, "4")}, map[string]int64{"a": 45, "b": 10}, false},
		{"a node created just before the count", counts, "", []planning.Node{youngNode("a", -60, "4")}, map[string]int64{"a": 45, "b": 10}, false},
		{"a node created long before the count", counts, "", []planning.Node{youngNode("a", -61, "4")}, map[string]int64{"a": 50, "b": 10}, false},
		{"an old claim launched after the count", counts, "", []planning.Node{launchedLate(youngNode("a", -3600, "4"))}, map[string]int64{"a": 45, "b": 10}, false},
		{"a claim restricted to a zone", counts, "", []planning.Node{openClaim("4", "ap-northeast-2b")}, map[string]int64{"a": 50, "b": 5}, false},
		{"a claim for any zone", counts, "", []planning.Node{openClaim("4")}, map[string]int64{"a": 45, "b": 5}, false},
		{"more than any type has", counts, "", []planning.Node{openClaim("90")}, map[string]int64{"a": 0, "b": 0}, false},
		{"a node whose pods use other subnets", counts, "", []planning.Node{youngNode("a", 1, "4")}, map[string]int64{"a": 49, "b": 10}, true},
		{"a claim whose pods will use other subnets", counts, "", []planning.Node{openClaim("4", "ap-northeast-2b")}, map[string]int64{"a": 50, "b": 9}, true},
		{"foreign nodes", counts, "", []planning.Node{{Created: planningtest.Now}}, map[string]int64{"a": 50, "b": 10}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, cat := twoZones()
			cat.Subnets, cat.Cluster.IPFamily, s.Nodes, s.PodsUseNodeSubnets = tt.counts, tt.family, tt.nodes, !tt.podsElsewhere
			got := instancetypes.New(s, cat).FreeIPs[planningtest.NewNodeClass().Name]
			if len(got) != len(tt.want) {
				t.Errorf("free IPs %v, want %v", got, tt.want)
			}
			for zone, want := range tt.want {
				if got["ap-northeast-2"+zone] != want {
					t.Errorf("zone %s: %d, want %d", zone, got["ap-northeast-2"+zone], want)
				}
			}
		})
	}
}

func TestPlacementGroups(t *testing.T) {
	groups := []catalog.PlacementGroup{{ID: "pg-1", Name: "near", Strategy: "cluster"}, {ID: "pg-2", Name: "apart", Strategy: catalog.SpreadStrategy}}
	grouped := func(zone string) planning.Node {
		n := youngNode(zone, -3600, "0")
		n.Labels[karpenter.LabelPlacementGroupID] = "pg-2"
		return n
	}
	elsewhere := youngNode("a", -3600, "0")
	elsewhere.Labels[karpenter.LabelPlacementGroupID] = "pg-9"
	for _, tt := range []struct {
		name     string
		selector *karpenter.PlacementGroupSelector
		nodes    []planning.Node
		label    string
		rooms    map[string]int
	}{
		{"none", nil, nil, "", nil},
		{"by ID", &karpenter.PlacementGroupSelector{ID: new("pg-1")}, nil, "pg-1", nil},
		{"by name", &karpenter.PlacementGroupSelector{Name: new("near")}, nil, "pg-1", nil},
		{"unknown group by ID", &karpenter.PlacementGroupSelector{ID: new("pg-7")}, nil, "pg-7", nil},
		{"unknown group by name", &karpenter.PlacementGroupSelector{Name: new("far")}, nil, "", nil},
		{"seven partitions per zone", &karpenter.PlacementGroupSelector{Name: new("apart")}, nil, "pg-2", map[string]int{"ap-northeast-2a": 7, "ap-northeast-2b": 7}},
		{"minus existing nodes", &karpenter.PlacementGroupSelector{Name: new("apart")}, []planning.Node{grouped("a"), youngNode("a", -3600, "0"), elsewhere},
			"pg-2", map[string]int{"ap-northeast-2a": 5, "ap-northeast-2b": 7}},
		{"minus open claims", &karpenter.PlacementGroupSelector{Name: new("apart")}, []planning.Node{openClaim("1"), openClaim("1", "ap-northeast-2b")},
			"pg-2", map[string]int{"ap-northeast-2a": 6, "ap-northeast-2b": 5}},
		{"full", &karpenter.PlacementGroupSelector{Name: new("apart")}, []planning.Node{
			grouped("a"), grouped("a"), grouped("a"), grouped("a"), grouped("a"), grouped("a"), grouped("a"), grouped("a"),
		}, "pg-2", map[string]int{"ap-northeast-2a": 0, "ap-northeast-2b": 7}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, cat := twoZones()
			cat.PlacementGroups, s.Nodes, s.NodeClasses[0].Spec.PlacementGroupSelector = groups, tt.nodes, tt.selector
			stock := instancetypes.New(s, cat)
			class := planningtest.NewNodeClass().Name
			if diff := cmp.Diff(tt.rooms, stock.SpreadCapacity[class]); diff != "" {
				t.Error(diff)
			}
			for _, one := range stock.ByNodeClass[class] {
				if got := one.Labels[karpenter.LabelPlacementGroupID]; got != tt.label {
					t.Fatalf("nodes of type %s have group %q, want %q", one.Name, got, tt.label)
				}
				for _, o := range one.Offerings {
					if room, bounded := tt.rooms[o.Zone]; bounded && room == 0 && o.Available {
						t.Fatalf("%s is buyable in %s, where the group is full", one.Name, o.Zone)
					}
				}
			}
		})
	}
}
