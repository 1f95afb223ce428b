package lifecycle_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
)

// listCounter counts how often all NodeClaims are read from the cache, which each reconcile does that is not skipped. It may
// hide that objects have changed.
type listCounter struct {
	cluster.Feed
	reads        int
	hidesChanges bool
}

func (c *listCounter) TakeChanges(kind cluster.Kind) cluster.Changed {
	changed := c.Feed.TakeChanges(kind)
	if c.hidesChanges {
		return cluster.Changed{}
	}
	return changed
}

func (c *listCounter) List(kind cluster.Kind) []cluster.Object {
	if kind == cluster.NodeClaims {
		c.reads++
	}
	return c.Feed.List(kind)
}

// restCluster returns a cluster with a running, tagged node, lifecycle as in production, and the counter of its
// reconciles. Nothing has happened for two minutes.
func restCluster(t *testing.T, verify bool) (*testCluster, *listCounter) {
	t.Helper()
	s := withClassHash(t)
	s.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
		o.(*karpenter.NodePool).Spec.Disruption.ConsolidateAfter = karpenter.DurationOf(time.Hour)
	})
	s.editClaim(func(c *karpenter.NodeClaim) {
		c.Annotations[karpenter.InstanceTaggedAnnotationKey], c.Labels[karpenter.LabelEC2NodeClass] = "true", "default"
	})
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "one-0"}, func(o cluster.Object) {
		o.(*karpenter.NodeClaim).Spec.ExpireAfter = karpenter.DurationOf(24 * time.Hour)
	})
	counter := &listCounter{Feed: s.cache}
	s.startService(s.ClientFor("lifecycle"), func(c *lifecycle.Config) {
		c.Cache, c.Rest, c.VerifySettled = counter, lifecycle.ReconcileInterval, verify
	})
	s.advance(2*time.Minute + 20*time.Second) // Not at the time when all claims are decided.
	counter.reads = 0
	return s, counter
}

// Without a change most reconciles do not read the cluster. Each minute all claims are decided.
func TestQuietReconcilesAreSkipped(t *testing.T) {
	s, counter := restCluster(t, false)
	s.advance(time.Minute)
	// NodePools are reconciled every ten seconds, and read the claims a few times.
	if counter.reads == 0 || counter.reads > 30 {
		t.Errorf("%d reads of all NodeClaims in a minute", counter.reads)
	}
	// A heartbeat is no change.
	before := counter.reads
	for range 60 {
		s.sendHeartbeat()
		s.advance(time.Second)
	}
	if counter.reads-before > 30 {
		t.Errorf("%d reads of all NodeClaims in a minute with heartbeats", counter.reads-before)
	}
}

// sendHeartbeat updates the node's status as its kubelet does.
func (s *testCluster) sendHeartbeat() {
	s.t.Helper()
	s.updateNode(func(n *corev1.Node) {
		n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(s.now)
		n.Status.Images = []corev1.ContainerImage{{Names: []string{s.now.String()}}}
	})
}

// removeNodeLabel removes a label of the node that lifecycle maintains, and hasNodeLabel reports whether it was added again.
func (s *testCluster) removeNodeLabel() {
	s.t.Helper()
	s.updateNode(func(n *corev1.Node) {
		delete(n.Labels, karpenter.LabelEC2NodeClass)
		n.Labels["changed"] = "true"
	})
}

func (s *testCluster) hasNodeLabel() bool {
	labels := s.getNodeOf().Labels
	return labels["changed"] != "" && labels[karpenter.LabelEC2NodeClass] != ""
}

// A change of which the cache does not notify has its effect within a minute.
func TestMissedChangeHasItsEffect(t *testing.T) {
	s, counter := restCluster(t, false)
	counter.hidesChanges = true
	s.removeNodeLabel()
	if s.advance(time.Minute); !s.hasNodeLabel() {
		t.Errorf("the node has the labels %v", s.getNodeOf().Labels)
	}
}

// With VerifySettled, a reconcile that would miss a change panics. A heartbeat is not one.
func TestMissedChangePanics(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*testCluster)
		want   string
	}{
		"a heartbeat": {(*testCluster).sendHeartbeat, "<nil>"},
		"the node":    {(*testCluster).removeNodeLabel, "NodeClaim one-0 is settled until"},
		"the NodeClaim": {func(s *testCluster) {
			s.setClaim("one-0", func(c *karpenter.NodeClaim) { c.Spec.ExpireAfter = karpenter.DurationOf(time.Second) })
		}, "although NodeClaim one-0 is not settled"},
	} {
		t.Run(name, func(t *testing.T) {
			s, counter := restCluster(t, true)
			counter.hidesChanges = true
			test.change(s)
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, test.want) {
					t.Errorf("the reconcile panics with %s, want %s", got, test.want)
				}
			}()
			s.advance(time.Second)
		})
	}
}

// A node's capacity is compared with its claim's every ten minutes, also if nothing else happens.
func TestConsistencyIsCheckedInQuiet(t *testing.T) {
	s, _ := restCluster(t, true)
	s.setClaim("one-0", func(c *karpenter.NodeClaim) { c.Spec.Resources.Requests = cpu("1") })
	isSmall := func() bool {
		condition, _ := s.getClaim("one-0").Status.Conditions.Get(karpenter.ConditionTypeConsistentStateFound)
		return condition.Status == metav1.ConditionFalse
	}
	s.updateNode(func(n *corev1.Node) { n.Status.Capacity = cpu("1") })
	s.advanceOnce(90 * time.Second) // All claims are decided now, and so not when the capacity is compared.
	for end := s.now.Add(8 * time.Minute); !isSmall() && s.now.Before(end); {
		s.advance(time.Second)
	}
	if !isSmall() {
		t.Fatal("a node with half of the capacity was not found within ten minutes")
	}
	s.updateNode(func(n *corev1.Node) { n.Status.Capacity = cpu("2") })
	if s.advance(10*time.Minute - time.Second); !isSmall() {
		t.Error("the capacity was compared again within ten minutes")
	}
	if s.advance(time.Second); isSmall() {
		t.Error("the capacity was not compared again after ten minutes")
	}
}

// Without a change, NodePools are reconciled every ten seconds, and with a feature that does a part of its work each time in
// every full reconcile.
func TestNodePoolsAreReconciledInQuiet(t *testing.T) {
	const measured = 2 * time.Minute
	always := int(measured / lifecycle.ReconcileInterval)
	for name, tt := range map[string]struct {
		configure func(*lifecycle.Config)
		want      int
	}{
		"without features": {func(*lifecycle.Config) {}, 12},
		"deletion costs":   {func(c *lifecycle.Config) { c.PodDeletionCosts = true }, always},
		"legacy repair":    {func(c *lifecycle.Config) { c.LegacyRepair.Policies = repair.LegacyProvider()[:1] }, always},
		"without Rest":     {func(c *lifecycle.Config) { c.Rest = 0 }, 120},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := restCluster(t, false)
			reconciled := 0
			s.startService(s.ClientFor("lifecycle"), func(c *lifecycle.Config) {
				c.Rest, c.VerifySettled = lifecycle.ReconcileInterval, false
				c.Metrics = func(m metric.Metric, _ float64, _ ...string) {
					if m.Name == metric.DrainsOverdue.Name {
						reconciled++
					}
				}
				tt.configure(c)
			})
			s.advance(2*time.Minute + 20*time.Second)
			reconciled = 0
			s.advance(measured)
			if reconciled != tt.want {
				t.Errorf("the NodePool is reconciled %d times in %s, want %d", reconciled, measured, tt.want)
			}
		})
	}
}

// A changed NodePool does not wait until the next full reconcile is due.
func TestChangedNodePoolIsReconciledAtOnce(t *testing.T) {
	s, _ := restCluster(t, false)
	s.startService(s.ClientFor("lifecycle"), func(c *lifecycle.Config) { c.Rest, c.VerifySettled = time.Hour, false })
	s.advance(10 * time.Second)
	if s.getClaim("one-0").Status.Conditions.IsTrue(karpenter.ConditionTypeConsolidatable) {
		t.Fatal("the claim is consolidatable already")
	}
	s.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
		o.SetGeneration(o.GetGeneration() + 1)
		o.(*karpenter.NodePool).Spec.Disruption.ConsolidateAfter = karpenter.DurationOf(time.Second)
	})
	s.advance(2 * time.Second)
	if !s.getClaim("one-0").Status.Conditions.IsTrue(karpenter.ConditionTypeConsolidatable) {
		t.Error("the claim is not consolidatable two seconds after consolidateAfter was shortened")
	}
}

// Each change of an input has its effect within two seconds, as it has without skipped reconciles.
func TestChangesEndTheQuiet(t *testing.T) {
	begun := func(s *testCluster) bool { return s.getClaim("one-0").DeletionTimestamp != nil }
	is := func(kind string) func(*testCluster) bool {
		return func(s *testCluster) bool { return s.getClaim("one-0").Status.Conditions.IsTrue(kind) }
	}
	for _, test := range []struct {
		name   string
		change func(*testCluster)
		// effect reports whether the change had its effect. wait is how long nothing happens before.
		effect func(*testCluster) bool
		wait   time.Duration
	}{
		{"a pod comes", func(s *testCluster) { s.addPodTo("web-1") }, func(s *testCluster) bool {
			return s.getClaim("one-0").Status.LastPodEventTime.After(s.now.Add(-10 * time.Second))
		}, 0},
		{"the node is deleted", func(s *testCluster) {
			_ = s.Delete(context.Background(), cluster.Nodes, cluster.Key{Name: "node-1"}, "")
		}, begun, 0},
		{"the claim is deleted", func(s *testCluster) {
			_ = s.Delete(context.Background(), cluster.NodeClaims, cluster.Key{Name: "one-0"}, "")
		}, func(s *testCluster) bool { return len(s.getNodeOf().Spec.Taints) > 0 }, 0},
		{"the claim expires", func(*testCluster) {}, begun, 24*time.Hour - 5*time.Second},
		{"consolidateAfter passes", func(*testCluster) {}, is(karpenter.ConditionTypeConsolidatable), time.Hour - 10*time.Second},
		{"consolidateAfter is shorter", func(s *testCluster) {
			s.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
				o.(*karpenter.NodePool).Spec.Disruption.ConsolidateAfter = karpenter.DurationOf(time.Second)
			})
		}, is(karpenter.ConditionTypeConsolidatable), 0},
		{"the node lacks its label", (*testCluster).removeNodeLabel, (*testCluster).hasNodeLabel, 0},
		{"the instance has drifted", func(s *testCluster) { s.deliverInventory("subnet-2") }, is(karpenter.ConditionTypeDrifted), 0},
		{"the NodePool is another", func(s *testCluster) {
			s.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
				o.(*karpenter.NodePool).Spec.Template.Spec.NodeClassRef.Name = "other"
			})
		}, func(s *testCluster) bool {
			pool, _ := cluster.Get[*karpenter.NodePool](context.Background(), s.Server, cluster.NodePools, cluster.Key{Name: "default"})
			condition, _ := pool.Status.Conditions.Get(karpenter.ConditionTypeNodeClassReady)
			return condition.Reason == "NodeClassNotFound"
		}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, _ := restCluster(t, true)
			if begin := s.getClaim("one-0").CreationTimestamp.Time; test.wait > 0 {
				s.now = begin.Add(test.wait)
				s.advance(time.Second)
			}
			if test.effect(s) {
				t.Fatal("the effect is there before the change")
			}
			test.change(s)
			s.advance(map[bool]time.Duration{false: 2 * time.Second, true: 15 * time.Second}[test.wait > 0])
			if !test.effect(s) {
				t.Errorf("the change has no effect: %+v", s.getClaim("one-0"))
			}
		})
	}
}
