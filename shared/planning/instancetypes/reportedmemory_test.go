package instancetypes_test

import (
	"encoding/json"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// kin returns a node of the reserved type that reports the given memory.
func kin(memory string, edits ...func(*planning.Node)) planning.Node {
	n := planning.Node{
		Name: memory, Labels: map[string]string{corev1.LabelInstanceTypeStable: reservedType},
		Capacity: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}, Initialized: true,
	}
	for _, edit := range edits {
		edit(&n)
	}
	return n
}

func TestMemoryFromNodeReports(t *testing.T) {
	class := planningtest.NewNodeClass()
	var image string
	for _, ami := range class.Status.AMIs {
		if _, ok := instancetypes.FindImage(map[string]string{corev1.LabelArchStable: "arm64"}, []karpenter.AMI{ami}); ok {
			image = ami.ID
		}
	}
	booted := func(n *planning.Node) { n.Image = image }
	// Estimate for t4g.medium: 4096 − 64 MiB, minus 7.5 %, rounded up.
	const estimate = "3729Mi"
	for _, test := range []struct {
		name  string
		nodes []planning.Node
		want  string
	}{
		{"none", nil, estimate},
		{"one", []planning.Node{kin("3900Mi", booted)}, "3900Mi"},
		{"the smallest of several reports", []planning.Node{kin("3900Mi", booted), kin("3850Mi", booted), kin("3880Mi", booted)}, "3850Mi"},
		{"less than the estimate", []planning.Node{kin("3000Mi", booted)}, "3000Mi"},
		{"of another image", []planning.Node{kin("3000Mi", func(n *planning.Node) { n.Image = "ami-old" })}, estimate},
		{"of an unknown image", []planning.Node{kin("3000Mi")}, estimate},
		{"not initialized", []planning.Node{kin("3000Mi", booted, func(n *planning.Node) { n.Initialized = false })}, estimate},
		{"of another type", []planning.Node{kin("3000Mi", booted, func(n *planning.Node) {
			n.Labels = map[string]string{corev1.LabelInstanceTypeStable: "t4g.large"}
		})}, estimate},
		{"without a report", []planning.Node{kin("0", booted)}, estimate},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := planningtest.NewBatch().Snapshot
			s.Nodes = test.nodes
			for _, one := range instancetypes.New(s, planningtest.NewCatalogue()).ByNodeClass[class.Name] {
				if one.Name != reservedType {
					continue
				}
				if got := one.Capacity[corev1.ResourceMemory]; got.Cmp(resource.MustParse(test.want)) != 0 {
					t.Errorf("got %s, want %s", got.String(), test.want)
				}
				return
			}
			t.Fatalf("type %s is missing", reservedType)
		})
	}
}

// VM_MEMORY_OVERHEAD_PERCENT may be 0, as in Karpenter: then only the 64 MiB of arm64 are subtracted.
func TestMemoryOverhead(t *testing.T) {
	for text, want := range map[string]string{"": "3729Mi", "0": "4032Mi", "0.5": "2016Mi"} {
		read, err := settings.Read(func(name string) (string, bool) { return text, text != "" && name == settings.MemoryOverhead })
		if err != nil {
			t.Fatal(err)
		}
		s := planningtest.NewBatch().Snapshot
		s.Settings.VMMemoryOverheadPercent = read.Scheduling.VMMemoryOverheadPercent
		// The planner reads the setting in the batch.
		stored, err := json.Marshal(s.Settings)
		if err == nil {
			s.Settings = planning.Settings{}
			err = json.Unmarshal(stored, &s.Settings)
		}
		if err != nil {
			t.Fatal(err)
		}
		types := instancetypes.New(s, planningtest.NewCatalogue()).ByNodeClass[s.NodeClasses[0].Name]
		at := slices.IndexFunc(types, func(one instancetypes.Type) bool { return one.Name == reservedType })
		if got := types[at].Capacity[corev1.ResourceMemory]; got.Cmp(resource.MustParse(want)) != 0 {
			t.Errorf("with the overhead %q a node has %s, want %s", text, got.String(), want)
		}
	}
}

func TestShiftedZonesAreUnavailable(t *testing.T) {
	stock := reserving(func(_ *planning.Snapshot, cat *catalog.Catalogue, _ *karpenter.CapacityReservation) {
		cat.ShiftedZones = []string{"apne2-az1"}
	})
	shifted, open := 0, 0
	for _, one := range stock.ByNodeClass[planningtest.NewNodeClass().Name] {
		for _, o := range one.Offerings {
			switch {
			case o.ZoneID == "apne2-az1" && o.Available:
				t.Fatalf("%s is buyable in a shifted zone as %s", one.Name, o.CapacityType)
			case o.ZoneID == "apne2-az1":
				shifted++
			case o.Available:
				open++
			}
		}
	}
	if shifted == 0 || open == 0 || len(reserved(stock)) != 1 {
		t.Errorf("%d offerings unavailable, %d available", shifted, open)
	}
}

// TestZoneIDsOfSubnets checks that the subnets' zone ids are used if the catalogue has none.
func TestZoneIDsOfSubnets(t *testing.T) {
	s, cat := planningtest.NewBatch().Snapshot, planningtest.NewCatalogue().Clone()
	for _, one := range cat.Types {
		for i := range one.Offerings {
			one.Offerings[i].ZoneID = ""
		}
	}
	subnets := s.NodeClasses[0].Status.Subnets
	for i := range subnets {
		subnets[i].ZoneID = "id-of-" + subnets[i].Zone
	}
	for _, one := range instancetypes.New(s, cat).ByNodeClass[planningtest.NewNodeClass().Name] {
		for _, o := range one.Offerings {
			if o.ZoneID != "id-of-"+o.Zone {
				t.Fatalf("%s in %s: zone ID %q", one.Name, o.Zone, o.ZoneID)
			}
		}
	}
}
