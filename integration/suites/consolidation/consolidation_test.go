package consolidation

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// scene is the cluster of the test, whose pods are scaled down.
type scene struct {
	*testbed.Timeline
	size size
	// prices are on-demand prices by instance type, equal in every zone.
	prices map[string]float64
	mu     sync.Mutex
	record
}

// sizes are about 14 nodes, which run for every change of Joist, and 200
// (JOIST_CONSOLIDATION=1).
var (
	small = size{apps: crowd(1, 15), budget: 50, patience: 1, rest: 45 * time.Second, dearest: 1.25, moves: 1.3}
	full  = size{apps: crowd(8, 32), budget: 10, saving: "5%", patience: 4, rest: 90 * time.Second, dearest: 1.15, moves: 2}
)

func TestConsolidation(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs a control plane, seven services and hundreds of pods")
	}
	apart := small
	if os.Getenv("JOIST_CONSOLIDATION") != "" {
		apart = full
	}
	dir, err := testbed.BuildBinaries()
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{size: apart, prices: map[string]float64{}, record: record{broken: map[string]bool{}}}
	s.Timeline = &testbed.Timeline{
		TestBed:  testbed.New(t, testbed.Options{Machines: 100 * time.Millisecond}),
		Patience: apart.patience, Broken: s.promises, Now: s.words,
	}
	for _, kind := range s.Catalogue.Types {
		for _, o := range kind.Offerings {
			if o.CapacityType == catalog.OnDemand {
				s.prices[kind.Name] = o.PricePerHour
			}
		}
	}
	t.Cleanup(s.keep)
	s.RunInBackground(watchEvery, s.watch)
	s.StartJoist(dir, false)
	s.RunPhase("up", s.up)
	s.RunPhase("apart", s.fallApart)
	s.RunPhase("together", s.together)
	s.RunPhase("shutdown", s.Stop)
}

// words describes the current state.
func (s *scene) words() string {
	now := s.latest()
	return fmt.Sprintf("$%.2f/h for %d nodes, %d of them being removed; %d pods without a node, %d running, %d moved",
		now.PerHour, now.Nodes, now.Going, now.Pending, now.Running, now.Evicted)
}

// await waits until a sample meets the condition.
func (s *scene) await(limit time.Duration, what string, holds func(Sample) bool) {
	s.Helper()
	s.WaitFor(limit, what, func() bool { return holds(s.latest()) })
}

func (s *scene) up() {
	s.Apply("testdata/pool.yaml", map[string]string{"EKS_CLUSTER_NAME": testbed.ClusterName, "KARPENTER_NODE_ROLE": s.AWS.Role})
	s.deploy()
	s.await(3*time.Minute, "every pod to run", func(now Sample) bool {
		return now.Running == s.size.pods(all) && now.Pending == 0
	})
	s.await(time.Minute, "every NodeClaim to be initialized", func(Sample) bool {
		for _, c := range s.Claims() {
			if !c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) {
				return false
			}
		}
		return true
	})
}

// fallApart removes most pods, and records the remaining ones.
func (s *scene) fallApart() {
	s.comeApart()
	s.await(time.Minute, "two thirds of the pods to be deleted", func(now Sample) bool {
		return now.Running == s.size.pods(staying) && len(cluster.ListCached[*corev1.Pod](s.Cache, cluster.Pods)) == now.Running
	})
	s.widen()
	fresh := s.fresh()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apart = true
	s.report.Pods, s.report.Fresh = s.size.pods(staying), fresh
	s.report.Before, s.report.NodesBefore = s.report.last().PerHour, s.report.last().Nodes
}

// widen permits other instance types in the pool, and starts consolidation.
func (s *scene) widen() {
	client, err := dynamic.NewForConfig(s.Plane.Config)
	s.RequireNoError(err)
	pools := client.Resource(schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"})
	patches := []string{
		`[{"op":"replace","path":"/spec/template/spec/requirements/1/values","value":["2","4","8"]}]`,
		fmt.Sprintf(`[{"op":"replace","path":"/spec/disruption/budgets/0/nodes","value":"%d%%"}]`, s.size.budget),
		`[{"op":"replace","path":"/spec/disruption/consolidateAfter","value":"5s"}]`,
	}
	if s.size.saving != "" {
		patches = append([]string{fmt.Sprintf(`[{"op":"add","path":"/metadata/annotations/%s","value":"%s"}]`,
			strings.ReplaceAll(policy.MinSavingPercent, "/", "~1"), s.size.saving)}, patches...)
	}
	for _, patch := range patches {
		_, err = pools.Patch(s.Context(), "default", types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		s.RequireNoError(err)
	}
}

// fresh returns the price of a new plan for the remaining pods, in US dollars per hour.
func (s *scene) fresh() float64 {
	s.Helper()
	batch := planning.Batch{Snapshot: planning.Snapshot{TakenAt: time.Now(), Cluster: s.ID.Name, UID: s.ID.UID}}
	s.WaitUntil(time.Minute, "the NodePool to allow more instance types", func() bool {
		pools := cluster.ListCached[*karpenter.NodePool](s.Cache, cluster.NodePools)
		return len(pools) == 1 && !pools[0].Spec.Disruption.ConsolidateAfter.IsNever()
	})
	for _, pool := range cluster.ListCached[*karpenter.NodePool](s.Cache, cluster.NodePools) {
		batch.Snapshot.NodePools = append(batch.Snapshot.NodePools, *pool)
	}
	for _, class := range cluster.ListCached[*karpenter.EC2NodeClass](s.Cache, cluster.NodeClasses) {
		batch.Snapshot.NodeClasses = append(batch.Snapshot.NodeClasses, *class)
	}
	batch.Pending = podspec.Group(cluster.ListCached[*corev1.Pod](s.Cache, cluster.Pods), podspec.SelectorKeys{}, nil)
	plan := solver.Solve(batch, s.Catalogue)
	if len(plan.Unplaced) > 0 {
		s.Fatalf("a new plan leaves pods unplaced: %v", plan.Unplaced[0].Rejections)
	}
	return plan.PricePerHour
}

// together waits until the fleet is at rest, and checks the result.
func (s *scene) together() {
	s.await(6*time.Minute, "consolidation to finish", func(now Sample) bool {
		return now.Evicted > 0 && s.quiet() > s.size.rest && now.Running == s.size.pods(staying)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.report
	r.After, r.NodesAfter = r.last().PerHour, r.last().Nodes
	if r.After > r.Fresh*s.size.dearest || r.After >= r.Before {
		s.Errorf("the cost fell from $%.2f/h to $%.2f/h, and a new plan costs $%.2f/h", r.Before, r.After, r.Fresh)
	}
	if moved := r.last().Evicted; float64(moved) > s.size.moves*float64(r.Pods) {
		s.Errorf("%d pods were moved %d times", r.Pods, moved)
	}
}

// keep writes the measurements, also of a failed run.
func (s *scene) keep() {
	s.mu.Lock()
	r := s.report
	s.mu.Unlock()
	r.Acts = s.Phases()
	drawing, err := SVG(r)
	if err != nil {
		s.Error(err)
	}
	s.WriteResults(os.Getenv("JOIST_CONSOLIDATION_INTO"), "consolidation", r, drawing, r.Summary())
}
