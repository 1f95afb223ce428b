package solver_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// BenchmarkSolve plans generated pods, without the network, the disk or JSON:
//
//	go test -run '^$' -bench Solve -count 6 ./planning/solver | tee new.txt
//	benchstat old.txt new.txt
//
// `make bench` compares with Karpenter, and includes the grouping of pods.
func BenchmarkSolve(b *testing.B) {
	for _, kind := range []struct {
		name string
		pods func(*drawing, int) []planning.PodClass
	}{{"a", (*drawing).identical}, {"b", (*drawing).deployments}, {"u", (*drawing).unique}, {"c", (*drawing).mixed}} {
		for _, pods := range []int{100, 1000, 5000} {
			b.Run(fmt.Sprintf("kind=%s/pods=%d", kind.name, pods), func(b *testing.B) {
				batch := benchBatch(kind.pods(newDrawing(), pods))
				stock := instancetypes.New(batch.Snapshot, planningtest.NewCatalogue())
				var result planning.Result
				b.ReportAllocs()
				for b.Loop() {
					result = solver.SolveWithTypes(batch, stock)
				}
				b.ReportMetric(result.PricePerHour, "dollars/h")
				b.ReportMetric(float64(len(result.Nodes)), "nodes")
				b.ReportMetric(float64(countUnplaced(result)), "unplaced")
			})
		}
	}
}

// BenchmarkLonePod plans one pod that fits on no node of a large cluster.
func BenchmarkLonePod(b *testing.B) {
	for _, count := range []int{1000, 5000, 20_000} {
		s := planningtest.GenerateCluster(rand.New(rand.NewPCG(1, 2)), count, 15*count)
		batch := planning.Batch{Snapshot: s, Pending: []planning.PodClass{planningtest.NewPods("lone", 1, "30", "32Gi")}}
		cat := planningtest.NewCatalogue()
		b.Run(fmt.Sprintf("nodes=%d", count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := solver.Solve(batch, cat); len(got.Nodes) != 1 {
					b.Fatal(len(got.Nodes))
				}
			}
		})
	}
}

// benchBatch returns a batch whose pool allows any ordinary on-demand type.
func benchBatch(pending []planning.PodClass) planning.Batch {
	batch := planningtest.NewBatch(pending...)
	pool := &batch.Snapshot.NodePools[0]
	pool.Spec.Limits = nil
	pool.Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
		{Key: karpenter.LabelInstanceCategory, Operator: corev1.NodeSelectorOpIn, Values: []string{"c", "m", "r"}},
		{Key: karpenter.LabelInstanceGeneration, Operator: corev1.NodeSelectorOpGt, Values: []string{"2"}},
		{Key: karpenter.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{karpenter.CapacityTypeOnDemand}},
		{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{karpenter.ArchitectureAMD64, karpenter.ArchitectureARM64}},
	}
	return batch
}

func countUnplaced(result planning.Result) (count int) {
	for _, u := range result.Unplaced {
		count += len(u.Pods)
	}
	return count
}

// drawing generates pods like integration/bench/scenarios, which this package cannot import.
type drawing struct{ *rand.Rand }

func newDrawing() *drawing { return &drawing{rand.New(rand.NewPCG(42, 0))} }

func (d *drawing) identical(pods int) []planning.PodClass {
	return []planning.PodClass{planningtest.NewPods("inflate", pods, "1", "0")}
}

// deployments have replica counts and sizes with heavy tails.
func (d *drawing) deployments(pods int) (out []planning.PodClass) {
	for left := pods; left > 0; {
		replicas := min(left, max(10, pods/20), int(math.Pow(1-d.Float64(), -0.8)))
		out = append(out, d.class(len(out), replicas, 0))
		left -= replicas
	}
	return out
}

// unique returns pods that all differ.
func (d *drawing) unique(pods int) (out []planning.PodClass) {
	for n := range pods {
		out = append(out, d.class(n, 1, 0.25))
	}
	return out
}

// class returns a class of pods whose size varies randomly by up to the given part.
func (d *drawing) class(n, pods int, part float64) planning.PodClass {
	cpu := []float64{50, 100, 100, 200, 250, 500, 500, 1000, 1000, 2000, 4000}[d.IntN(11)]
	memory := cpu * 3 * min(5, math.Exp(0.8*d.NormFloat64()))
	moved := func(amount float64) int { return int(amount * (1 + part*(2*d.Float64()-1))) }
	return planningtest.NewPods(fmt.Sprint("d", n), pods, fmt.Sprintf("%dm", moved(cpu)), fmt.Sprintf("%dMi", moved(memory)))
}

// mixed returns the pods of Karpenter's own benchmark, each in a class of its own.
func (d *drawing) mixed(pods int) (out []planning.PodClass) {
	for n := range pods {
		label := func() map[string]string { return map[string]string{"my-label": string(rune('a' + d.IntN(7)))} }
		own, other := label(), label()
		rules := []func(*planning.PodSpec){
			func(*planning.PodSpec) {},
			func(s *planning.PodSpec) { s.Spread = spreadOver(corev1.LabelTopologyZone, other) },
			func(s *planning.PodSpec) { s.Spread = spreadOver(corev1.LabelHostname, other) },
			func(s *planning.PodSpec) {
				s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms(corev1.LabelTopologyZone, own)}}
			},
			func(s *planning.PodSpec) {
				own = map[string]string{"app": "nginx"}
				s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms(corev1.LabelHostname, own)}}
			},
		}
		cpu, memory := []string{"100m", "250m", "500m", "1", "1500m"}[d.IntN(5)], []string{"100Mi", "256Mi", "512Mi", "1Gi", "2Gi", "4Gi"}[d.IntN(6)]
		out = append(out, planningtest.NewPods(fmt.Sprint("m", n), 1, cpu, memory, rules[n*len(rules)/pods], func(s *planning.PodSpec) { s.Labels = own }))
	}
	return out
}

func spreadOver(key string, selected map[string]string) []corev1.TopologySpreadConstraint {
	return []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: selected},
	}}
}

func terms(key string, selected map[string]string) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: selected}}}
}
