package lifecycle_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// Each transition of a claim counts once, including a drain that exceeds the notice's deadline.
func TestClaimTransitionsAreCounted(t *testing.T) {
	s := newTestCluster(t)
	recorded := s.countMetricsOf(func(name string) bool {
		return !slices.Contains([]string{metric.PoolUsage.Name, metric.PoolLimit.Name, metric.PoolCost.Name, metric.PoolAllowedDisruptions.Name, metric.PoolConsumedBudgets.Name}, name)
	})
	s.reconcile()
	s.runNode()
	expectCounts(t, "initialized", recorded, "karpenter_nodeclaims_created_total [provisioned default false] 1", "joist_nodeclaim_initialized_seconds [default] 1", "karpenter_nodes_created_total [default eu-west-1a] 1")
	s.addPodTo("web")
	s.handleMessage(s.noticeMessage(event.SpotInterruption, "i-1", "terminate"), "")
	s.advance(5 * time.Second)
	expectCounts(t, "notice handled", recorded, "karpenter_nodeclaims_disrupted_total [spot_interrupted default spot  graceful] 1", "karpenter_pods_drained_total [Forceful Termination] 1")
	s.handleMessage(s.noticeMessage(event.SpotInterruption, "i-1", "terminate"), "")
	s.advance(2 * time.Minute)
	expectCounts(t, "deadline passed", recorded, "joist_drains_overdue_total [default] 1")
	s.handleMessage(s.newMessage(event.InstanceGone{InstanceID: "i-1", Shown: s.now}), "")
	s.advance(5 * time.Second)
	if s.getClaim("one-0") != nil {
		t.Fatal("the claim was not deleted")
	}
	var what []string
	for _, line := range *recorded {
		word, _, _ := strings.Cut(line, " [")
		what = append(what, word)
	}
	slices.Sort(what)
	if want := []string{metric.ClaimsTerminated.Name, metric.ClaimTermination.Name, metric.NodesTerminated.Name, metric.NodeTermination.Name}; !slices.Equal(what, want) {
		t.Errorf("the termination counts %v", *recorded)
	}
}

// setLeader gives the Lease to a replica.
func (s *testCluster) setLeader(holder string) {
	s.t.Helper()
	lease, err := cluster.Get[*coordinationv1.Lease](s.t.Context(), s.Server, cluster.Leases, cluster.Key{Namespace: namespace, Name: "joist-lifecycle"})
	if err != nil {
		s.t.Fatal(err)
	}
	lease.Spec.HolderIdentity = &holder
	lease.Spec.RenewTime = &metav1.MicroTime{Time: s.now}
	if _, err := s.Update(s.t.Context(), lease); err != nil {
		s.t.Fatal(err)
	}
}

// A new process does not count the objects that exist at its start. A replica that no longer leads
// publishes no gauges, and does not count what another leader counted.
func TestOnlyTheLeaderCounts(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	gauges := []string{metric.PoolUsage.Name, metric.PoolAllowedDisruptions.Name, metric.PoolConsumedBudgets.Name}
	recorded := s.countMetricsOf(func(name string) bool { return !slices.Contains(gauges, name) })
	s.advance(time.Second)
	expectCounts(t, "counted by the former leader", recorded, "karpenter_nodepools_cost_total [default] 0.0301")
	if !s.svc.Reconciled() {
		t.Error("a reconcile of the leader is not reported")
	}
	s.setLeader("pod-2")
	s.advance(10 * time.Second)
	*recorded = slices.Compact(*recorded) // The Lease is checked now and then.
	expectCounts(t, "no longer leading", recorded, "karpenter_nodepools_cost_total [default] 0.0301", "karpenter_nodepools_cost_total [default] NaN")
	if s.svc.Reconciled() {
		t.Error("a standby replica reports a reconcile")
	}
	if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "one-0"}, ""); err != nil {
		t.Fatal(err)
	}
	s.setLeader("pod-1")
	s.advance(10 * time.Second)
	if !slices.Contains(*recorded, "karpenter_nodepools_cost_total [default] 0.0301") {
		t.Fatalf("the new leader reports no gauges: %v", *recorded)
	}
	*recorded = slices.DeleteFunc(*recorded, func(line string) bool { return strings.HasPrefix(line, metric.PoolCost.Name) })
	expectCounts(t, "leading again", recorded)
}

// NodePools report usage, limits and cost. Series that end are removed.
func TestNodePoolGauges(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	recorded := s.countMetricsOf(func(name string) bool {
		return name == metric.PoolLimit.Name || name == metric.PoolCost.Name
	})
	s.updatePool(func(np *karpenter.NodePool) {
		np.Spec.Limits = karpenter.Limits{corev1.ResourceCPU: resource.MustParse("2500m"), "nvidia.com/gpu": resource.MustParse("2")}
	})
	c := s.getClaim("one-0")
	c.Annotations[planning.PriceAnnotation] = "0.25"
	if _, err := s.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	s.advance(time.Second)
	slices.Sort(*recorded)
	expectCounts(t, "limits and cost", recorded, "karpenter_nodepools_cost_total [default] 0.25", "karpenter_nodepools_limit [cpu default] 2.5", "karpenter_nodepools_limit [nvidia.com/gpu default] 2")
	s.updatePool(func(np *karpenter.NodePool) { np.Spec.Limits = nil })
	s.advance(time.Second)
	slices.Sort(*recorded)
	expectCounts(t, "limits removed", recorded, "karpenter_nodepools_cost_total [default] 0.25", "karpenter_nodepools_limit [cpu default] NaN", "karpenter_nodepools_limit [nvidia.com/gpu default] NaN")
	if err := s.Delete(t.Context(), cluster.NodePools, cluster.Key{Name: "default"}, ""); err != nil {
		t.Fatal(err)
	}
	s.advance(2 * time.Second)
	if !slices.Contains(*recorded, "karpenter_nodepools_cost_total [default] NaN") {
		t.Errorf("after the pool was deleted got %v", *recorded)
	}
}

// The gauges of budgets count nodes that are being removed or are not ready. A NodePool without
// budgets has Karpenter's largest number.
func TestBudgetGauges(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	recorded := s.countMetricsOf(func(name string) bool {
		return name == metric.PoolAllowedDisruptions.Name || name == metric.PoolConsumedBudgets.Name
	})
	look := func(what string, want ...string) {
		t.Helper()
		*recorded = nil
		s.advance(time.Second)
		slices.Sort(*recorded)
		expectCounts(t, what, recorded, want...)
	}
	s.updatePool(func(np *karpenter.NodePool) {
		np.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "3"}, {Nodes: "0", Reasons: []karpenter.DisruptionReason{karpenter.DisruptionReasonDrifted}}}
	})
	look("two budgets", "karpenter_nodepools_allowed_disruptions [default drifted] 0", "karpenter_nodepools_allowed_disruptions [default empty] 3", "karpenter_nodepools_allowed_disruptions [default underutilized] 3",
		"karpenter_nodepools_nodes_consuming_budgets [default drifted] 0", "karpenter_nodepools_nodes_consuming_budgets [default empty] 0", "karpenter_nodepools_nodes_consuming_budgets [default underutilized] 0")
	s.updatePool(func(np *karpenter.NodePool) { np.Spec.Disruption.Budgets = nil })
	if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "one-0"}, ""); err != nil {
		t.Fatal(err)
	}
	look("no budgets, a node is being removed", "karpenter_nodepools_allowed_disruptions [default drifted] 2.147483647e+09", "karpenter_nodepools_allowed_disruptions [default empty] 2.147483647e+09",
		"karpenter_nodepools_allowed_disruptions [default underutilized] 2.147483647e+09", "karpenter_nodepools_nodes_consuming_budgets [default drifted] 1",
		"karpenter_nodepools_nodes_consuming_budgets [default empty] 1", "karpenter_nodepools_nodes_consuming_budgets [default underutilized] 1")
}

// The size of user data is that of the last verified launch, until the EC2NodeClass is deleted or another replica leads. A forged launch does
// not change it.
func TestUserDataGauge(t *testing.T) {
	for name, end := range map[string]func(*testCluster, string){
		"the EC2NodeClass is deleted": func(s *testCluster, class string) {
			s.ChangeObject(cluster.NodeClasses, cluster.Key{Name: class}, func(o cluster.Object) { o.SetFinalizers(nil) })
			if err := s.Delete(t.Context(), cluster.NodeClasses, cluster.Key{Name: class}, ""); err != nil {
				t.Fatal(err)
			}
		},
		"another replica leads": func(s *testCluster, _ string) {
			s.standBy()
			s.leadAgain()
		},
	} {
		t.Run(name, func(t *testing.T) {
			cat, batch := planningtest.NewCatalogue(), planningtest.NewBatch(planningtest.NewPods("inflate", 5, "1", "0"))
			s, configure := withCatalogue(t, batch)
			last, class := math.NaN(), batch.Snapshot.NodeClasses[0].Name
			s.startService(s.ClientFor("lifecycle"), func(c *lifecycle.Config) {
				configure(c)
				c.Metrics = func(m metric.Metric, value float64, labels ...string) {
					if m.Name == metric.UserDataSize.Name && slices.Equal(labels, []string{class}) {
						last = value
					}
				}
			})
			for _, forge := range []bool{false, true} {
				pool, err := cluster.Get[*karpenter.NodePool](t.Context(), s.Server, cluster.NodePools, cluster.Key{Name: "default"})
				if err != nil {
					t.Fatal(err)
				}
				held := s.startBatch()
				batch.Snapshot.NodePools[0], batch.Outbox, batch.Seq = *pool, held.UID(), held.Seq
				built, err := launchspec.Build(batch, held.Batch, solver.Solve(batch, cat), cat)
				if err != nil {
					t.Fatal(err)
				}
				size := float64(len(built.Intents[0].Templates[0].UserData))
				if forge {
					built.Intents[0].Templates[0].UserData += "x"
				}
				s.handleMessage(s.storeBuilt(held, built), "")
				s.advance(time.Second)
				if size == 0 || last != size {
					t.Errorf("forged %t: got %g bytes of user data, want %g", forge, last, size)
				}
			}
			end(s, class)
			s.advance(2 * time.Second)
			if !math.IsNaN(last) {
				t.Errorf("the gauge has the value %g", last)
			}
		})
	}
}

// Drained pods count once with the reason of the disruption, also if they are deleted by force.
func TestDrainedPodsAreCounted(t *testing.T) {
	s := newInitializedCluster(t, 2)
	recorded := s.countMetricsOf(func(name string) bool { return name == metric.PodsDrained.Name })
	web := func(pod *corev1.Pod) { pod.UID = types.UID(pod.Name) }
	s.addPod("old-0", "evicted", web)
	s.addPod("old-1", "protected", web, func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{karpenter.DoNotDisruptAnnotationKey: "true"}
	})
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "old-1"}, func(o cluster.Object) {
		o.(*karpenter.NodeClaim).Spec.TerminationGracePeriod = &metav1.Duration{Duration: 20 * time.Second}
	})
	s.reconcile()
	for _, name := range []string{"old-0", "old-1"} {
		if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: name}, ""); err != nil {
			t.Fatal(err)
		}
	}
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "old-0"}, func(o cluster.Object) {
		c := o.(*karpenter.NodeClaim)
		c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeDisruptionReason, Status: metav1.ConditionTrue, Reason: "Drifted"}, s.now)
	})
	s.advance(time.Minute)
	slices.Sort(*recorded)
	expectCounts(t, "drained", recorded, "karpenter_pods_drained_total [Drifted] 1", "karpenter_pods_drained_total [Forceful Termination] 1")
}

// A repaired node counts with the condition that made it unhealthy, and with its image.
func TestRepairsAreCounted(t *testing.T) {
	s := withNodeRepair(t)
	s.runNode()
	var got []string
	s.svc.Metrics = func(m metric.Metric, value float64, labels ...string) {
		if m.Name == metric.UnhealthyDisrupted.Name {
			got = append(got, strings.Join(labels, " "))
		}
	}
	s.makeNotReady("node-1")
	s.now = s.now.Add(31 * time.Minute)
	s.reconcile()
	s.advance(5 * time.Second)
	if want := []string{"ready default spot ami-1 graceful"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
