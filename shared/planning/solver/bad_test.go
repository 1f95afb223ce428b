package solver_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// TestBadInput checks that invalid input gives every pod a place or a reason.
func TestBadInput(t *testing.T) {
	web := func(edits ...func(*planning.PodSpec)) planning.PodClass {
		return planningtest.NewPods("web", 2, "500m", "64Mi", edits...)
	}
	requests := func(cpu string) func(*planning.PodSpec) {
		return func(s *planning.PodSpec) { s.Requests[corev1.ResourceCPU] = resource.MustParse(cpu) }
	}
	to := func(app string) func(*planning.PodSpec) {
		return affine(corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selector("app", app)})
	}
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Resembles"}}}
	for _, tt := range []struct {
		name    string
		classes []planning.PodClass
		edit    func(*planning.Batch, *instancetypes.InstanceTypes)
		detail  string
	}{
		{"negative", []planning.PodClass{web(requests("-1"))}, nil, "requests must not be negative"},
		{"two negative", []planning.PodClass{web(requests("-1"), func(s *planning.PodSpec) { s.Requests[corev1.ResourceMemory] = resource.MustParse("-1Gi") })}, nil, "it requests -1 of cpu"},
		{"more than any type has", []planning.PodClass{web(requests("9000000000000"))}, nil, "and the closest type"},
		{"more than an int64", []planning.PodClass{web(requests("1e30"))}, nil, "and the closest type"},
		{"contradiction", []planning.PodClass{web(selecting("kubernetes.io/arch", "amd64"), func(s *planning.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{topologyTerm("kubernetes.io/arch", "arm64")}}}}
		})}, nil, "kubernetes.io/arch"},
		{"affinity to each other", []planning.PodClass{
			planningtest.NewPods("a", 1, "100m", "1Mi", requireLabels("app", "a"), to("b")), planningtest.NewPods("b", 1, "100m", "1Mi", requireLabels("app", "b"), to("a"))},
			nil, "affinity over hostnames"},
		{"an affinity without terms", []planning.PodClass{web(func(s *planning.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}}}
		})}, nil, "no term of its required node affinity can match a node"},
		{"an affinity without terms, and a volume", []planning.PodClass{web(func(s *planning.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}}}
			s.Volumes = []planning.Volume{{Claim: "d", Problem: "it is lost"}}
		})}, nil, "no term of its required node affinity can match a node"},
		{"an invalid selector", []planning.PodClass{web(func(s *planning.PodSpec) {
			s.Spread = []corev1.TopologySpreadConstraint{{TopologyKey: corev1.LabelTopologyZone, MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: broken}}
		})}, nil, "invalid labelSelector"},
		{"daemons that leave no capacity", []planning.PodClass{web(func(s *planning.PodSpec) { delete(s.Requests, corev1.ResourceCPU) })}, func(b *planning.Batch, _ *instancetypes.InstanceTypes) {
			b.Snapshot.DaemonSets = []planning.PodSpec{{Namespace: "kube-system", Requests: planningtest.NewRequests("1000", "0")}}
		}, "the daemons leave no free capacity on any instance type"},
		{"daemons that leave no cpu, and too much memory", []planning.PodClass{planningtest.NewPods("web", 1, "0", "999Ti")}, func(b *planning.Batch, _ *instancetypes.InstanceTypes) {
			b.Snapshot.DaemonSets = []planning.PodSpec{{Namespace: "kube-system", Requests: planningtest.NewRequests("1000", "0")}}
		}, "memory: the pod needs 999Ti, and the closest type"},
		{"an expression without its gate", []planning.PodClass{web()}, func(b *planning.Batch, _ *instancetypes.InstanceTypes) {
			b.Snapshot.NodeClasses[0].Spec.Kubelet = karpenter.KubeletConfiguration{"maxPods": {Raw: []byte(`"vcpus * 2"`)}}
		}, "the NodeClassCEL feature gate is disabled"},
		{"an expression that fails", []planning.PodClass{web()}, func(_ *planning.Batch, s *instancetypes.InstanceTypes) {
			s.Refusals = map[string]string{"default": "the expression fails"}
		}, "EC2NodeClass default: the expression fails"},
		{"no EC2NodeClass", []planning.PodClass{web()}, func(b *planning.Batch, _ *instancetypes.InstanceTypes) { b.Snapshot.NodeClasses = nil }, `EC2NodeClass "default" does not exist`},
		{"no NodePool", []planning.PodClass{web()}, func(b *planning.Batch, _ *instancetypes.InstanceTypes) { b.Snapshot.NodePools = nil }, "no NodePool"},
		{"an empty catalogue", []planning.PodClass{web()}, func(_ *planning.Batch, s *instancetypes.InstanceTypes) { s.ByNodeClass = nil }, "no instance type matches"},
		{"NaN prices", []planning.PodClass{web()}, priced(math.NaN()), "are currently unavailable"},
		{"negative prices", []planning.PodClass{web()}, priced(-1), "are currently unavailable"},
		{"infinite prices", []planning.PodClass{web()}, priced(math.Inf(1)), "are currently unavailable"},
		{"no prices", []planning.PodClass{web()}, func(_ *planning.Batch, s *instancetypes.InstanceTypes) {
			for _, types := range s.ByNodeClass {
				for i := range types {
					types[i].Offerings = slices.Clone(types[i].Offerings[:min(1, len(types[i].Offerings))])
					for j := range types[i].Offerings {
						types[i].Offerings[j].Unpriced = true
					}
				}
			}
		}, "no instance type matches the pool's own requirements"},
		{"types without free capacity", []planning.PodClass{web()}, func(_ *planning.Batch, s *instancetypes.InstanceTypes) {
			for i := range s.ByNodeClass["default"] {
				s.ByNodeClass["default"][i].Allocatable = nil
			}
		}, "and the closest type"},
		{"a skew of zero", []planning.PodClass{web(requireLabels("app", "web"), spreads(corev1.LabelHostname, 0))}, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch := planningtest.NewBatch(tt.classes...)
			stock := instancetypes.New(batch.Snapshot, planningtest.NewCatalogue())
			if tt.edit != nil {
				tt.edit(&batch, &stock)
			}
			result := solver.SolveWithTypes(batch, stock)
			if len(result.Unplaced) == 0 || len(result.Nodes) > 0 {
				t.Fatalf("%d nodes and %d unplaced classes, want all pods unplaced", len(result.Nodes), len(result.Unplaced))
			}
			for _, u := range result.Unplaced {
				if len(u.Rejections) == 0 || !strings.Contains(u.Rejections[0].Detail, tt.detail) {
					t.Errorf("rejections %+v, want %q", u.Rejections, tt.detail)
				}
			}
		})
	}
}

func priced(price float64) func(*planning.Batch, *instancetypes.InstanceTypes) {
	return func(_ *planning.Batch, s *instancetypes.InstanceTypes) {
		for _, types := range s.ByNodeClass {
			for i := range types {
				for j := range types[i].Offerings {
					types[i].Offerings[j].PricePerHour = price
				}
			}
		}
	}
}

// TestFreeTypes checks that a type with price 0 is used, and preferred.
func TestFreeTypes(t *testing.T) {
	batch := planningtest.NewBatch(planningtest.NewPods("web", 3, "500m", "64Mi"))
	stock := instancetypes.New(batch.Snapshot, planningtest.NewCatalogue())
	priced(0)(&batch, &stock)
	if result := solver.SolveWithTypes(batch, stock); len(result.Unplaced) > 0 || result.PricePerHour != 0 {
		t.Errorf("%d unplaced pods, $%v per hour", count(result.Unplaced), result.PricePerHour)
	}
}

// TestManyLabels bounds the time for thousands of label keys that no node has.
func TestManyLabels(t *testing.T) {
	var classes []planning.PodClass
	for i := range 10_000 {
		key := fmt.Sprintf("team-%d", i)
		classes = append(classes, planningtest.NewPods(key, 1, "100m", "1Mi", requireLabels(key, "x"), selecting(key, "x"), spreads(key, 1)))
	}
	batch := planningtest.NewBatch(classes...)
	batch.Snapshot.NodePools[0].Spec.Template.Labels = map[string]string{"team-7": "x"}
	result := solver.Solve(batch, planningtest.NewCatalogue())
	if len(result.Nodes) != 1 || len(result.Unplaced) != 9_999 {
		t.Errorf("%d nodes and %d unplaced classes, want one node for the class whose label the pool sets", len(result.Nodes), len(result.Unplaced))
	}
}

// FuzzRequirements reads arbitrary requirements; the output must have the same meaning when it is
// read again.
func FuzzRequirements(f *testing.F) {
	f.Add(`[{"key":"a","operator":"In","values":["x","y"]},{"key":"a","operator":"NotIn","values":["x"]}]`)
	f.Add(`[{"key":"n","operator":"Gt","values":["3"]},{"key":"n","operator":"Lte","values":["9223372036854775807"]},{"key":"n","operator":"Exists"}]`)
	f.Add(`[{"key":"n","operator":"Lt","values":["-9223372036854775808"]},{"key":"m","operator":"DoesNotExist"}]`)
	f.Add(`[{"key":"","operator":"","values":[""],"minValues":3}]`)
	f.Fuzz(func(t *testing.T, text string) {
		var list []karpenter.NodeSelectorRequirementWithMinValues
		if json.Unmarshal([]byte(text), &list) != nil || len(list) > 20 {
			return
		}
		once := planning.NewNodeClaimRequirements(list)
		again := planning.NewNodeClaimRequirements(once.NodeSelectorRequirements())
		for key, values := range once {
			other, ok := again[key]
			if !ok {
				other = planning.AnyValue()
			}
			for _, value := range []string{"", "x", "y", "0", "3", "4", "007", "-1", "9223372036854775807"} {
				if !values.IsEmpty() && values.Has(value) != other.Has(value) {
					t.Errorf("%s: %s.Has = %t for %q, and after a round trip %s.Has = %t", key, values, values.Has(value), value, other, other.Has(value))
				}
			}
			if !values.Intersect(values).IsSubset(values) || !values.IsSubset(values) {
				t.Errorf("%s: %s is not a subset of itself", key, values)
			}
		}
	})
}
