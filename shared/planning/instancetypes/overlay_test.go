package instancetypes_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// testTypes returns two types in two zones, at $1 on demand and $0.50 as spot.
func testTypes() instancetypes.InstanceTypes {
	offer := func(name, zone, kind string, price float64) instancetypes.InstanceOffering {
		return instancetypes.InstanceOffering{Available: true, PricedOffering: planning.PricedOffering{
			Offering: event.Offering{InstanceType: name, Zone: zone, CapacityType: kind}, ZoneID: "id-" + zone, PricePerHour: price,
		}}
	}
	of := func(name, arch string) instancetypes.Type {
		list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi")}
		return instancetypes.Type{
			Name: name, Labels: map[string]string{corev1.LabelInstanceTypeStable: name, corev1.LabelArchStable: arch},
			Capacity: list, Allocatable: list.DeepCopy(),
			Offerings: []instancetypes.InstanceOffering{offer(name, "a", "on-demand", 1), offer(name, "a", "spot", 0.5), offer(name, "b", "on-demand", 1)},
		}
	}
	return instancetypes.InstanceTypes{Region: "r", ByNodeClass: map[string][]instancetypes.Type{"default": {of("big", "amd64"), of("small", "arm64")}}}
}

func overlay(name string, edits ...func(*karpenter.NodeOverlay)) karpenter.NodeOverlay {
	o := karpenter.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, edit := range edits {
		edit(&o)
	}
	return o
}

func wants(key string, operator corev1.NodeSelectorOperator, values ...string) func(*karpenter.NodeOverlay) {
	return func(o *karpenter.NodeOverlay) {
		o.Spec.Requirements = append(o.Spec.Requirements, karpenter.OverlayRequirement{Key: key, Operator: operator, Values: values})
	}
}
func costs(price string) func(*karpenter.NodeOverlay) {
	return func(o *karpenter.NodeOverlay) { o.Spec.Price = &price }
}
func adjusts(price string) func(*karpenter.NodeOverlay) {
	return func(o *karpenter.NodeOverlay) { o.Spec.PriceAdjustment = &price }
}
func heavy(weight int32) func(*karpenter.NodeOverlay) {
	return func(o *karpenter.NodeOverlay) { o.Spec.Weight = &weight }
}
func adds(name, amount string) func(*karpenter.NodeOverlay) {
	return func(o *karpenter.NodeOverlay) {
		if o.Spec.Capacity == nil {
			o.Spec.Capacity = corev1.ResourceList{}
		}
		o.Spec.Capacity[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
}

func poolOf(name string, labels map[string]string) karpenter.NodePool {
	return karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: karpenter.NodePoolSpec{Template: karpenter.NodeClaimTemplate{
		ObjectMeta: karpenter.ObjectMeta{Labels: labels},
		Spec:       karpenter.NodeClaimTemplateSpec{NodeClassRef: &karpenter.NodeClassReference{Name: "default"}},
	}}}
}

// prices returns the prices of the pool's types: of big in zone a on demand and spot and in zone b on
// demand, then of small.
func prices(s instancetypes.InstanceTypes, pool string) []float64 {
	var out []float64
	for _, t := range s.TypesForPool(pool, "default") {
		for _, o := range t.Offerings {
			out = append(out, o.PricePerHour)
		}
	}
	return out
}

const arch, exists, in = corev1.LabelArchStable, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpIn

func TestOverlaidPrices(t *testing.T) {
	plain := []float64{1, 0.5, 1, 1, 0.5, 1}
	for _, tt := range []struct {
		name     string
		overlays []karpenter.NodeOverlay
		want     []float64
	}{
		{"none", nil, plain},
		{"a price for all", []karpenter.NodeOverlay{overlay("o", costs("2"))}, []float64{2, 2, 2, 2, 2, 2}},
		{"a price for one type", []karpenter.NodeOverlay{overlay("o", wants(arch, in, "arm64"), costs("2"))}, []float64{1, 0.5, 1, 2, 2, 2}},
		{"more", []karpenter.NodeOverlay{overlay("o", wants(karpenter.CapacityTypeLabelKey, in, "spot"), adjusts("+0.25"))}, []float64{1, 0.75, 1, 1, 0.75, 1}},
		{"a lower price in a zone", []karpenter.NodeOverlay{overlay("o", wants(corev1.LabelTopologyZone, in, "b"), adjusts("-50%"))}, []float64{1, 0.5, 0.5, 1, 0.5, 0.5}},
		{"by the zone's beta label", []karpenter.NodeOverlay{overlay("o", wants(corev1.LabelFailureDomainBetaZone, in, "b"), adjusts("-50%"))}, []float64{1, 0.5, 0.5, 1, 0.5, 0.5}},
		{"never below zero", []karpenter.NodeOverlay{overlay("o", adjusts("-0.75"))}, []float64{0.25, 0, 0.25, 0.25, 0, 0.25}},
		{"for another pool", []karpenter.NodeOverlay{overlay("o", wants(karpenter.NodePoolLabelKey, in, "other"), costs("2"))}, plain},
		{"by a label of the pool", []karpenter.NodeOverlay{overlay("o", wants("team", in, "web"), wants(arch, in, "arm64"), costs("2"))}, []float64{1, 0.5, 1, 2, 2, 2}},
		{"by a missing label", []karpenter.NodeOverlay{overlay("o", wants(karpenter.LabelInstanceGPUName, exists), costs("2"))}, plain},
		{"by the absence of a label", []karpenter.NodeOverlay{overlay("o", wants(karpenter.LabelInstanceGPUName, corev1.NodeSelectorOpDoesNotExist), costs("2"))}, []float64{2, 2, 2, 2, 2, 2}},
		{"higher weight wins", []karpenter.NodeOverlay{
			overlay("light", costs("3")), overlay("heavy", heavy(2), wants(arch, in, "arm64"), costs("2")),
		}, []float64{3, 3, 3, 2, 2, 2}},
		{"conflict: the later name wins", []karpenter.NodeOverlay{
			overlay("b", wants(arch, in, "arm64"), costs("2")), overlay("a", costs("3")),
		}, []float64{1, 0.5, 1, 2, 2, 2}},
		{"equal weights for different offerings", []karpenter.NodeOverlay{
			overlay("b", wants(arch, in, "arm64"), costs("2")), overlay("a", wants(arch, in, "amd64"), costs("3")),
		}, []float64{3, 3, 3, 2, 2, 2}},
		{"an overlay that is being deleted", []karpenter.NodeOverlay{overlay("o", costs("2"), func(o *karpenter.NodeOverlay) { o.DeletionTimestamp = &metav1.Time{} })}, plain},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := testTypes()
			got, _ := before.ApplyOverlays(tt.overlays, []karpenter.NodePool{poolOf("default", map[string]string{"team": "web"})})
			if diff := cmp.Diff(tt.want, prices(got, "default")); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(testTypes(), before); diff != "" {
				t.Errorf("New changed the class's types:\n%s", diff)
			}
		})
	}
}

// TestOverlaidPools checks that each pool has its own types, and that pools without overlays share
// those of the class.
func TestOverlaidPools(t *testing.T) {
	got, _ := testTypes().ApplyOverlays([]karpenter.NodeOverlay{overlay("o", wants(karpenter.NodePoolLabelKey, in, "dear"), costs("2"))},
		[]karpenter.NodePool{poolOf("dear", nil), poolOf("plain", nil), {}})
	if diff := cmp.Diff([]float64{2, 2, 2, 2, 2, 2}, prices(got, "dear")); diff != "" {
		t.Error(diff)
	}
	if _, own := got.ByNodePool["plain"]; own || len(prices(got, "plain")) != 6 {
		t.Errorf("pool plain does not share the class's types: %v", got.ByNodePool["plain"])
	}
	if !got.ByNodePool["dear"][0].Offerings[0].PricedByOverlay || got.ByNodeClass["default"][0].Offerings[0].PricedByOverlay {
		t.Error("an offering without overlay is marked as overlaid")
	}
}

// TestOverlaidCapacity checks that an overlay replaces a resource instead of adding to it, and that huge
// pages are subtracted from memory.
func TestOverlaidCapacity(t *testing.T) {
	for _, tt := range []struct {
		name     string
		overlays []karpenter.NodeOverlay
		want     map[corev1.ResourceName]string // of the type big; its allocatable resources
	}{
		{"a device", []karpenter.NodeOverlay{overlay("o", adds("example.com/fpga", "2"))}, map[corev1.ResourceName]string{"example.com/fpga": "2", "memory": "8Gi"}},
		{"one matching offering is enough", []karpenter.NodeOverlay{overlay("o", wants(corev1.LabelTopologyZone, in, "b"), adds("example.com/fpga", "2"))},
			map[corev1.ResourceName]string{"example.com/fpga": "2"}},
		{"for another type", []karpenter.NodeOverlay{overlay("o", wants(arch, in, "arm64"), adds("example.com/fpga", "2"))}, map[corev1.ResourceName]string{"example.com/fpga": "0"}},
		{"higher weight wins per resource", []karpenter.NodeOverlay{
			overlay("o", heavy(2), adds("example.com/fpga", "2")), overlay("p", adds("example.com/fpga", "5"), adds("example.com/tpu", "1")),
		}, map[corev1.ResourceName]string{"example.com/fpga": "2", "example.com/tpu": "1"}},
		{"equal weights for different resources", []karpenter.NodeOverlay{
			overlay("b", adds("example.com/fpga", "2")), overlay("a", adds("example.com/fpga", "2"), adds("example.com/tpu", "1")),
		}, map[corev1.ResourceName]string{"example.com/fpga": "2", "example.com/tpu": "0"}},
		{"three of equal weight", []karpenter.NodeOverlay{
			overlay("c", adds("example.com/fpga", "2")), overlay("b", adds("example.com/tpu", "1")), overlay("a", adds("example.com/fpga", "3")),
		}, map[corev1.ResourceName]string{"example.com/fpga": "2", "example.com/tpu": "1"}},
		{"huge pages", []karpenter.NodeOverlay{overlay("o", adds("hugepages-2Mi", "3Gi"))}, map[corev1.ResourceName]string{"hugepages-2Mi": "3Gi", "memory": "5Gi"}},
		{"more huge pages than memory", []karpenter.NodeOverlay{overlay("o", adds("hugepages-2Mi", "30Gi"))}, map[corev1.ResourceName]string{"memory": "0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := testTypes().ApplyOverlays(tt.overlays, []karpenter.NodePool{poolOf("default", nil)})
			big := got.TypesForPool("default", "default")[0]
			for name, want := range tt.want {
				if has := big.Allocatable[name]; has.Cmp(resource.MustParse(want)) != 0 {
					t.Errorf("%s of %s, want %s", has.String(), name, want)
				}
			}
			if memory := big.Capacity.Memory(); memory.Cmp(resource.MustParse("8Gi")) != 0 {
				t.Errorf("the overlay changed the hardware's memory to %s", memory)
			}
		})
	}
}

func TestOverlayProblems(t *testing.T) {
	both := func(o *karpenter.NodeOverlay) { costs("1")(o); adjusts("+1")(o) }
	for _, tt := range []struct {
		name     string
		overlays []karpenter.NodeOverlay
		want     []string // name and reason
		says     string
	}{
		{"none", []karpenter.NodeOverlay{overlay("o", costs("1"))}, nil, ""},
		{"conflicting prices", []karpenter.NodeOverlay{overlay("b", costs("1")), overlay("a", costs("2"))}, []string{"a Conflict"}, "big in NodePool default"},
		{"conflicting resources", []karpenter.NodeOverlay{overlay("b", adds("x/y", "1")), overlay("a", adds("x/y", "2"))}, []string{"a Conflict"}, "weight"},
		{"a price and a resource", []karpenter.NodeOverlay{overlay("b", costs("1")), overlay("a", adds("x/y", "2"))}, nil, ""},
		{"an unsupported label", []karpenter.NodeOverlay{overlay("o", wants("kubernetes.io/hostname", exists))}, []string{"o RuntimeValidation"}, "kubernetes.io/hostname"},
		{"no values", []karpenter.NodeOverlay{overlay("o", wants(arch, in))}, []string{"o RuntimeValidation"}, arch},
		{"NotIn without values", []karpenter.NodeOverlay{overlay("o", wants(arch, corev1.NodeSelectorOpNotIn))}, []string{"o RuntimeValidation"}, arch},
		{"a bound that is not a number", []karpenter.NodeOverlay{overlay("o", wants(karpenter.LabelInstanceCPU, corev1.NodeSelectorOpGt, "many"))}, []string{"o RuntimeValidation"}, "whole number"},
		{"a bound that nothing is below", []karpenter.NodeOverlay{overlay("o", wants(karpenter.LabelInstanceCPU, corev1.NodeSelectorOpLt, "0"))}, []string{"o RuntimeValidation"}, "cannot match"},
		{"a key that is too long", []karpenter.NodeOverlay{overlay("o", wants("example.com/"+strings.Repeat("a", 64), exists), costs("1"))}, []string{"o RuntimeValidation"}, "spec.requirements[0]: the key is wrong"},
		{"a value that is no label value", []karpenter.NodeOverlay{overlay("o", wants("team", corev1.NodeSelectorOpNotIn, "a b"), costs("1"))}, []string{"o RuntimeValidation"}, `the value "a b" is wrong`},
		{"an unknown capacity type", []karpenter.NodeOverlay{overlay("o", wants(karpenter.CapacityTypeLabelKey, in, "cheap"), costs("1"))}, []string{"o RuntimeValidation"}, "spot"},
		{"the label of the node class", []karpenter.NodeOverlay{overlay("o", wants(karpenter.LabelEC2NodeClass, in, "default"), costs("1"))}, nil, ""},
		{"cpu capacity", []karpenter.NodeOverlay{overlay("o", adds("cpu", "9"))}, []string{"o RuntimeValidation"}, "extended"},
		{"negative quantity", []karpenter.NodeOverlay{overlay("o", adds("x/y", "-1"))}, []string{"o RuntimeValidation"}, "-1 of x/y"},
		{"two prices", []karpenter.NodeOverlay{overlay("o", both)}, []string{"o RuntimeValidation"}, "both set"},
		{"invalid price", []karpenter.NodeOverlay{overlay("o", costs("cheap"))}, []string{"o RuntimeValidation"}, `"cheap"`},
		{"infinite price", []karpenter.NodeOverlay{overlay("o", costs("Inf"))}, []string{"o RuntimeValidation"}, `"Inf"`},
		{"adjustment without a sign", []karpenter.NodeOverlay{overlay("o", adjusts("5%"))}, []string{"o RuntimeValidation"}, `"5%"`},
		{"invalid adjustment", []karpenter.NodeOverlay{overlay("o", adjusts("+NaN"))}, []string{"o RuntimeValidation"}, `"+NaN"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, problems := testTypes().ApplyOverlays(tt.overlays, []karpenter.NodePool{poolOf("default", nil)})
			var got []string
			for _, p := range problems {
				got = append(got, p.Overlay+" "+p.Reason)
				if !strings.Contains(p.Message, tt.says) {
					t.Errorf("message %q, want it to contain %q", p.Message, tt.says)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOverlaidPlan checks that the plan uses the overlay if the feature gate is on.
func TestOverlaidPlan(t *testing.T) {
	batch := planningtest.WithoutSpot(planningtest.NewBatch(planningtest.NewPods("small", 1, "100m", "100Mi")))
	batch.Snapshot.NodeOverlays = []karpenter.NodeOverlay{overlay("o", wants(corev1.LabelInstanceTypeStable, in, "t4g.xlarge"), costs("0.001"))}
	if got := solver.Solve(batch, planningtest.NewCatalogue()).Nodes[0].Offerings[0]; got.InstanceType != "t4g.medium" {
		t.Errorf("gate off: %+v", got)
	}
	batch.Snapshot.Settings.Gates.NodeOverlay = true
	if got := solver.Solve(batch, planningtest.NewCatalogue()).Nodes[0].Offerings[0]; got.InstanceType != "t4g.xlarge" || got.PricePerHour != 0.001 {
		t.Errorf("gate on: %+v", got)
	}
}

// TestOverlayStatuses checks the overlay statuses in the plan.
func TestOverlayStatuses(t *testing.T) {
	batch := planningtest.WithoutSpot(planningtest.NewBatch(planningtest.NewPods("small", 1, "100m", "100Mi")))
	large := wants(corev1.LabelInstanceTypeStable, in, "t4g.xlarge")
	going, bad := overlay("going", large, costs("0.001")), overlay("bad", large, adds("cpu", "1"))
	going.DeletionTimestamp, bad.Generation = &metav1.Time{Time: planningtest.Now}, 3
	batch.Snapshot.NodeOverlays = []karpenter.NodeOverlay{
		overlay("a", large, costs("0.001")), bad, overlay("b", large, costs("0.002")), going, overlay("c", large, adds("example.com/x", "1")),
	}
	if got := solver.Solve(batch, planningtest.NewCatalogue()).OverlayStatuses; got != nil {
		t.Errorf("gate off: %+v", got)
	}
	batch.Snapshot.Settings.Gates.NodeOverlay = true
	want := []planning.OverlayStatus{
		{Name: "a", Reason: instancetypes.OverlayConflict}, {Name: "bad", Generation: 3, Reason: instancetypes.OverlayInvalid}, {Name: "b"}, {Name: "c"},
	}
	got := solver.Solve(batch, planningtest.NewCatalogue()).OverlayStatuses
	for i := range got {
		if (got[i].Message == "") != (got[i].Reason == "") {
			t.Errorf("message without reason, or reason without message: %+v", got[i])
		}
		got[i].Message = ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}
