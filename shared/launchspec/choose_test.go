package launchspec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/scheduling"
)

func option(kind, capacityType string, price float64) scheduling.Option {
	o := scheduling.Option{PricePerHour: price}
	o.InstanceType, o.CapacityType, o.Zone = kind, capacityType, "a"
	return o
}

func TestChooseB186B188(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options []scheduling.Option
		want    string
	}{
		{"spot goes first", []scheduling.Option{option("a", "spot", 1), option("b", "on-demand", 2)}, "spot a"},
		{"dear spot is dropped", []scheduling.Option{option("a", "spot", 1), option("b", "on-demand", 2), option("c", "spot", 3)}, "spot a"},
		{"on-demand where all spot is dearer", []scheduling.Option{option("b", "on-demand", 2), option("a", "spot", 3)}, "on-demand b"},
		{"spot alone may cost anything", []scheduling.Option{option("a", "spot", 9)}, "spot a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := choose(&scheduling.PlannedNode{Options: tt.options})
			words := []string{got.capacityType}
			for _, o := range got.options {
				words = append(words, o.InstanceType)
			}
			if text := strings.Join(words, " "); text != tt.want {
				t.Errorf("choose = %s, want %s", text, tt.want)
			}
		})
	}
}

func TestChooseKeepsSixtyTypesB090(t *testing.T) {
	var options []scheduling.Option
	for i := range 80 {
		options = append(options, option(fmt.Sprintf("t%02d", i), "spot", float64(i+1)))
	}
	options = append(options, option("t00", "spot", 99), option("t70", "spot", 100))
	got := choose(&scheduling.PlannedNode{Options: options})
	if len(got.options) != 61 || got.options[60].InstanceType != "t00" {
		t.Errorf("%d options, the last is %+v; want the 60 cheapest types with all their offerings", len(got.options), got.options[len(got.options)-1])
	}
}

func TestKubeletMaySet(t *testing.T) {
	got := map[string]bool{}
	for _, key := range []string{
		"team", "karpenter.sh/nodepool", "topology.k8s.aws/zone-id", "topology.kubernetes.io/zone",
		"node.kubernetes.io/windows-build", "node-role.kubernetes.io/web", "example.k8s.io/x",
	} {
		got[key] = kubeletMaySet(key)
	}
	want := map[string]bool{
		"team": true, "karpenter.sh/nodepool": true, "topology.k8s.aws/zone-id": true, "topology.kubernetes.io/zone": true,
		"node.kubernetes.io/windows-build": true, "node-role.kubernetes.io/web": false, "example.k8s.io/x": false,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
