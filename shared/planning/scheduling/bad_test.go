package scheduling_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/scheduling"
	"github.com/joist-autoscaler/joist/shared/planning/schedulingtest"
)

// TestBadInput gives every pod a place or a reason, and ends.
func TestBadInput(t *testing.T) {
	web := func(edits ...func(*scheduling.PodSpec)) scheduling.PodClass {
		return schedulingtest.Pods("web", 2, "500m", "64Mi", edits...)
	}
	requests := func(cpu string) func(*scheduling.PodSpec) {
		return func(s *scheduling.PodSpec) { s.Requests[corev1.ResourceCPU] = resource.MustParse(cpu) }
	}
	to := func(app string) func(*scheduling.PodSpec) {
		return affine(corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selector("app", app)})
	}
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Resembles"}}}
	for _, tt := range []struct {
		name    string
		classes []scheduling.PodClass
		edit    func(*scheduling.Batch, *scheduling.Stock)
		detail  string
	}{
		{"negative", []scheduling.PodClass{web(requests("-1"))}, nil, "requests must not be negative"},
		{"more than there is", []scheduling.PodClass{web(requests("9000000000000"))}, nil, "and the closest type"},
		{"more than a number holds", []scheduling.PodClass{web(requests("1e30"))}, nil, "and the closest type"},
		{"contradiction", []scheduling.PodClass{web(selecting("kubernetes.io/arch", "amd64"), func(s *scheduling.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{term("kubernetes.io/arch", "arm64")}}}}
		})}, nil, "kubernetes.io/arch"},
		{"each beside the other", []scheduling.PodClass{
			schedulingtest.Pods("a", 1, "100m", "1Mi", labelled("app", "a"), to("b")), schedulingtest.Pods("b", 1, "100m", "1Mi", labelled("app", "b"), to("a"))},
			nil, "affinity over host names"},
		{"a selector that cannot be read", []scheduling.PodClass{web(func(s *scheduling.PodSpec) {
			s.Spread = []corev1.TopologySpreadConstraint{{TopologyKey: corev1.LabelTopologyZone, MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: broken}}
		})}, nil, "cannot be read"},
		{"no class", []scheduling.PodClass{web()}, func(b *scheduling.Batch, _ *scheduling.Stock) { b.Snapshot.NodeClasses = nil }, `there is no EC2NodeClass "default"`},
		{"no pool", []scheduling.PodClass{web()}, func(b *scheduling.Batch, _ *scheduling.Stock) { b.Snapshot.NodePools = nil }, "no NodePool"},
		{"an empty catalogue", []scheduling.PodClass{web()}, func(_ *scheduling.Batch, s *scheduling.Stock) { s.Types = nil }, "no instance type suits"},
		{"prices that are no numbers", []scheduling.PodClass{web()}, priced(math.NaN()), "can be bought"},
		{"prices below nothing", []scheduling.PodClass{web()}, priced(-1), "can be bought"},
		{"endless prices", []scheduling.PodClass{web()}, priced(math.Inf(1)), "can be bought"},
		{"types without room", []scheduling.PodClass{web()}, func(_ *scheduling.Batch, s *scheduling.Stock) {
			for i := range s.Types["default"] {
				s.Types["default"][i].Allocatable = nil
			}
		}, "and the closest type"},
		{"a skew of nothing", []scheduling.PodClass{web(labelled("app", "web"), spreads(corev1.LabelHostname, 0))}, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch := schedulingtest.Seed(tt.classes...)
			stock := scheduling.NewStock(batch.Snapshot, schedulingtest.Catalogue())
			if tt.edit != nil {
				tt.edit(&batch, &stock)
			}
			result := scheduling.SolveStock(batch, stock)
			if len(result.Unplaced) == 0 || len(result.Nodes) > 0 {
				t.Fatalf("%d nodes and %d classes without: nobody can hold these", len(result.Nodes), len(result.Unplaced))
			}
			for _, u := range result.Unplaced {
				if len(u.Rejections) == 0 || !strings.Contains(u.Rejections[0].Detail, tt.detail) {
					t.Errorf("refused with %+v, want %q", u.Rejections, tt.detail)
				}
			}
		})
	}
}

func priced(price float64) func(*scheduling.Batch, *scheduling.Stock) {
	return func(_ *scheduling.Batch, s *scheduling.Stock) {
		for _, types := range s.Types {
			for i := range types {
				for j := range types[i].Offers {
					types[i].Offers[j].PricePerHour = price
				}
			}
		}
	}
}

// TestFreeTypes: what costs nothing is still a type, and the best one.
func TestFreeTypes(t *testing.T) {
	batch := schedulingtest.Seed(schedulingtest.Pods("web", 3, "500m", "64Mi"))
	stock := scheduling.NewStock(batch.Snapshot, schedulingtest.Catalogue())
	priced(0)(&batch, &stock)
	if result := scheduling.SolveStock(batch, stock); len(result.Unplaced) > 0 || result.PricePerHour != 0 {
		t.Errorf("%d without a place, $%v an hour", count(result.Unplaced), result.PricePerHour)
	}
}

// TestManyLabels: thousands of keys that nobody has cost time, and not much of it.
func TestManyLabels(t *testing.T) {
	var classes []scheduling.PodClass
	for i := range 10_000 {
		key := fmt.Sprintf("team-%d", i)
		classes = append(classes, schedulingtest.Pods(key, 1, "100m", "1Mi", labelled(key, "x"), selecting(key, "x"), spreads(key, 1)))
	}
	batch := schedulingtest.Seed(classes...)
	batch.Snapshot.NodePools[0].Spec.Template.Labels = map[string]string{"team-7": "x"}
	result := scheduling.Solve(batch, schedulingtest.Catalogue())
	if len(result.Nodes) != 1 || len(result.Unplaced) != 9_999 {
		t.Errorf("%d nodes and %d classes without, want the one that the pool has a label for", len(result.Nodes), len(result.Unplaced))
	}
}

// FuzzRequirements reads what anybody may write, and what comes out must say the
// same when it is read again.
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
		once := scheduling.FromClaim(list)
		again := scheduling.FromClaim(once.List())
		for key, values := range once {
			other, ok := again[key]
			if !ok {
				other = scheduling.Any()
			}
			for _, value := range []string{"", "x", "y", "0", "3", "4", "007", "-1", "9223372036854775807"} {
				if !values.Empty() && values.Has(value) != other.Has(value) {
					t.Errorf("%s: %s says %t of %q, and %s, which was written from it, %t", key, values, values.Has(value), value, other, other.Has(value))
				}
			}
			if !values.Intersect(values).Subset(values) || !values.Subset(values) {
				t.Errorf("%s: %s is no part of itself", key, values)
			}
		}
	})
}
