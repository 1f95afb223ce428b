package lifecycle_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
)

func cpuQuantity(n int) *resource.Quantity { return resource.NewQuantity(int64(n), resource.DecimalSI) }

// Two nodes are replaced by one. They are tainted first, and are deleted only when the
// replacement is initialized.
func TestReplacementComesFirst(t *testing.T) {
	s := newInitializedCluster(t, 3)
	s.setBudgetAndLimit("2", 2)
	m := s.startProposal(1, "old-0", "old-1")
	s.expectStates("proposed ", "old-0", "old-1")
	before := s.readOutbox()
	s.takeSent()
	m.deliver(event.Confirmed, "")
	s.expectStates(stateActing, "old-0", "old-1")
	s.expectStates(stateUntouched, "old-2")
	after := s.readOutbox()
	if after.State != outbox.Done || after.Seq != before.Seq+1 || !after.Batch.IsZero() || after.Plan != m.Plan.Digest || !slices.Equal(after.Claims, []string{"new-0"}) {
		t.Errorf("got outbox %+v", after.Outbox)
	}
	if diff := cmp.Diff([]string{"launch.requested.v1 intent/new"}, typesAndSubjects(s.takeSent())); diff != "" {
		t.Error(diff)
	}
	if p := planning.ReadProposal(s.getClaim("old-1")); !slices.Equal(p.Replacements, []string{"new-0"}) || p.Method != "MultiNode" || !p.ConfirmedAt.Equal(s.now) {
		t.Errorf("the claim has the proposal %+v", p)
	}
	version := s.Version()
	m.deliver(event.Confirmed, "")
	m.deliver(event.Dropped, "")
	if s.Version() != version {
		t.Error("a message about a proposal in execution wrote something")
	}

	s.advance(2 * time.Minute)
	s.expectStates(stateActing, "old-0", "old-1")
	s.handleMessage(s.newMessage(launchSettled("new", 1, "i-new")), "")
	s.advance(5 * time.Second)
	s.expectStates(stateActing, "old-0", "old-1")
	s.joinNode("new-0", "i-new")
	s.advance(8 * time.Second)
	s.expectStates("going", "old-0", "old-1")
	s.expectStates(stateUntouched, "old-2", "new-0")
	if until := s.getClaim("new-0").Annotations["joist.sh/nominated-until"]; until <= s.now.Format(time.RFC3339) {
		t.Errorf("the replacement is not nominated: nominated until %q", until)
	}
	s.checkInvariants(2, 2)
	for reason, want := range map[string][]string{
		"DisruptionLaunching":        {"NodeClaim new-0: Launching NodeClaim: Underutilized"},
		"DisruptionWaitingReadiness": {"NodeClaim new-0: Waiting on readiness to continue disruption"},
		"DisruptionTerminating": {
			"Node old-0: Disrupting Node: Underutilized", "NodeClaim old-0: Disrupting NodeClaim: Underutilized",
			"Node old-1: Disrupting Node: Underutilized", "NodeClaim old-1: Disrupting NodeClaim: Underutilized",
		},
	} {
		if diff := cmp.Diff(want, slices.Compact(s.eventsWithReason(reason))); diff != "" {
			t.Errorf("%s:\n%s", reason, diff)
		}
	}
}

// A replacement without its pods is empty and is nominated. Afterwards it is treated like any
// node.
func TestReplacementIsNominated(t *testing.T) {
	s := newInitializedCluster(t, 1)
	m := s.startProposal(1, "old-0")
	m.deliver(event.Confirmed, "")
	s.launchReplacement()
	for range 40 {
		s.advance(5 * time.Second)
		until, err := time.Parse(time.RFC3339, s.getClaim("new-0").Annotations["joist.sh/nominated-until"])
		if err != nil || !until.After(s.now) {
			t.Fatalf("at %s the replacement is nominated until %s (%v)", s.now, until, err)
		}
	}
	s.expectStates("going", "old-0")
	s.handleMessage(s.newMessage(event.InstanceGone{InstanceID: "i-0", Shown: s.now}), "")
	s.advance(70 * time.Second)
	s.expectStates("gone", "old-0")
	if until := s.getClaim("new-0").Annotations["joist.sh/nominated-until"]; until > s.now.Format(time.RFC3339) {
		t.Errorf("the old node is gone, but the replacement is nominated until %s", until)
	}
}

// A removal without replacements is executed at once.
func TestRemovalAlone(t *testing.T) {
	s := newInitializedCluster(t, 3)
	s.setBudgetAndLimit("2", 3)
	m := s.startProposal(0, "old-0", "old-2")
	seq := s.readOutbox().Seq
	m.deliver(event.Confirmed, "")
	s.expectStates("going", "old-0", "old-2")
	s.expectStates(stateUntouched, "old-1")
	if s.readOutbox().Seq != seq {
		t.Error("a removal without replacements used the outbox")
	}
	m.deliver(event.Confirmed, fault.Stale)
	s.checkInvariants(2, 3)
}

// If the replacement fails, the old nodes are restored and nothing is deleted.
func TestFailedReplacementRollsBack(t *testing.T) {
	refused := func(s *testCluster) { s.handleMessage(s.newMessage(launchSettled("new", 1)), "") }
	for _, c := range []struct {
		name  string
		fails func(*testCluster)
		why   string
	}{
		{"its launch is refused", refused, "new-0"},
		{"another client deletes it", func(s *testCluster) {
			if err := s.Delete(s.t.Context(), cluster.NodeClaims, cluster.Key{Name: "new-0"}, ""); err != nil {
				s.t.Fatal(err)
			}
		}, "replacement NodeClaim new-0 is being deleted"},
		{"it is deleted at once", func(s *testCluster) {
			s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "new-0"}, func(o cluster.Object) { o.SetFinalizers(nil) })
			if err := s.Delete(s.t.Context(), cluster.NodeClaims, cluster.Key{Name: "new-0"}, ""); err != nil {
				s.t.Fatal(err)
			}
		}, "replacement NodeClaim new-0 is gone"},
		{"it never joins the cluster", func(s *testCluster) {
			s.handleMessage(s.newMessage(launchSettled("new", 1, "i-new")), "")
			s.advance(10*time.Minute - 5*time.Second)
			s.expectStates(stateActing, "old-0", "old-1")
			s.advance(10 * time.Second)
		}, "replacement NodeClaim new-0 is not initialized after 10m0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newInitializedCluster(t, 3)
			m := s.startProposal(1, "old-0", "old-1")
			m.deliver(event.Confirmed, "")
			s.advance(2 * time.Second)
			c.fails(s)
			s.advance(5 * time.Second)
			s.expectStates(stateUntouched, "old-0", "old-1", "old-2")
			s.checkInvariants(2, 4)
			recorded := s.eventsWithReason("DisruptionBlocked")
			if len(recorded) != 4 || !strings.Contains(recorded[0], "Disruption was rolled back: ") || !strings.Contains(recorded[0], c.why) {
				t.Errorf("got the Events %q", recorded)
			}
			m.deliver(event.Confirmed, fault.Stale)
			s.advance(5 * time.Second)
			s.expectStates(stateUntouched, "old-0", "old-1", "old-2")
		})
	}
}

// An old claim that is deleted by another client does not delay the other.
func TestOldClaimDeletedByAnotherClient(t *testing.T) {
	s := newInitializedCluster(t, 2)
	m := s.startProposal(1, "old-0", "old-1")
	m.deliver(event.Confirmed, "")
	s.handleMessage(s.newMessage(event.InstanceGone{InstanceID: "i-0", Shown: s.now}), "")
	s.advance(5 * time.Second)
	s.expectStates("gone", "old-0")
	s.expectStates(stateActing, "old-1")
	s.launchReplacement()
	s.advance(8 * time.Second)
	s.expectStates("going", "old-1")
}

// Replacements wait until no batch is in flight and use the next sequence number. A plan with an
// earlier number is then stale, and the watcher continues with the following number.
func TestReplacementsUseOutbox(t *testing.T) {
	s := newInitializedCluster(t, 2)
	m := s.startProposal(1, "old-0")
	held := s.startBatch()
	m.deliver(event.Confirmed, fault.Retry)
	s.expectStates("proposed ", "old-0")
	made := s.planMessage(held, s.planIntent(held, "another", 1))
	s.handleMessage(made, "")
	m.deliver(event.Confirmed, "")
	s.expectStates(stateActing, "old-0")
	// The watcher may not have read the previous plan's claims either.
	if got := s.readOutbox(); got.Seq != held.Seq+1 || got.State != outbox.Done || !slices.Equal(got.Claims, []string{"another-0", "new-0"}) {
		t.Fatalf("got outbox %+v", got.Outbox)
	}
	s.handleMessage(made, fault.Stale)
	next := s.startBatch()
	if next.Seq != held.Seq+2 {
		t.Errorf("the next batch has sequence number %d, after %d", next.Seq, held.Seq)
	}
	s.handleMessage(s.planMessage(next, s.planIntent(next, "three", 1)), "")
	m.deliver(event.Confirmed, "")
	s.advance(2 * time.Second)
	s.expectStates(stateActing, "old-0")
	if c := s.getClaim("new-0"); c == nil || c.Annotations["joist.sh/batch"] != fmt.Sprintf("%s/%d", held.UID(), held.Seq+1) {
		t.Errorf("the replacement is %+v", c)
	}
}

// The live state may object to a proposal that the snapshot allowed.
func TestLiveObjections(t *testing.T) {
	node := func(name string, change func(*corev1.Node)) func(*testCluster) {
		return func(s *testCluster) {
			s.ChangeObject(cluster.Nodes, cluster.Key{Name: name}, func(o cluster.Object) { change(o.(*corev1.Node)) })
		}
	}
	pod := func(changes ...func(*corev1.Pod)) func(*testCluster) {
		return func(s *testCluster) {
			s.ChangeObject(cluster.Pods, cluster.Key{Namespace: "default", Name: "pod-of-old-1"}, func(o cluster.Object) {
				for _, change := range changes {
					change(o.(*corev1.Pod))
				}
			})
		}
	}
	protected := func(p *corev1.Pod) { p.Annotations = map[string]string{karpenter.DoNotDisruptAnnotationKey: "true"} }
	for _, c := range []struct {
		name string
		// changes happen between the snapshot and the confirmation.
		changes func(*testCluster)
		reason  karpenter.DisruptionReason
		method  string
		blocked string
	}{
		{name: "nothing", changes: func(*testCluster) {}},
		{name: "new pods were scheduled", changes: func(s *testCluster) { s.addPod("old-1", "late") }, blocked: "NodeClaim old-1: new pods were scheduled"},
		{name: "a DaemonSet pod was added", changes: func(s *testCluster) {
			s.addPod("old-1", "agent", func(p *corev1.Pod) {
				yes := true
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", Controller: &yes}}
			})
		}},
		{name: "the node is nominated", changes: func(s *testCluster) { s.nominateClaim("old-0", time.Minute) }, blocked: "NodeClaim old-0: node is nominated for a pending pod"},
		{name: "a pod has the do-not-disrupt annotation", changes: pod(protected), blocked: `NodeClaim old-1: pod has "karpenter.sh/do-not-disrupt" annotation (Pod=default/pod-of-old-1)`},
		{name: "a pod has the annotation, and has succeeded", changes: pod(protected, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })},
		{name: "a pod has the annotation, and has failed", changes: pod(protected, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })},
		{name: "a pod has the annotation, and is terminating", changes: pod(protected, func(p *corev1.Pod) { at := metav1.Now(); p.DeletionTimestamp = &at })},
		{name: "a PodDisruptionBudget allows no eviction", changes: blockByBudget, blocked: "NodeClaim old-1: pdb prevents pod evictions (PodDisruptionBudget=default/pdb, Pod=default/pod-of-old-1)"},
		{name: "a PodDisruptionBudget, and a drifted node with a grace period", reason: karpenter.DisruptionReasonDrifted, changes: blockByBudgetWithGrace},
		{name: "a PodDisruptionBudget, and an expiring node with a grace period", reason: karpenter.DisruptionReasonDrifted, method: planning.MethodExpiration, changes: blockByBudgetWithGrace,
			blocked: "NodeClaim old-1: pdb prevents pod evictions (PodDisruptionBudget=default/pdb, Pod=default/pod-of-old-1)"},
		{name: "the node has the do-not-disrupt annotation", changes: node("old-0", func(n *corev1.Node) {
			n.Annotations = map[string]string{karpenter.DoNotDisruptAnnotationKey: "true"}
		}), blocked: `NodeClaim old-0: disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation`},
		{name: "the node is another instance's", changes: node("old-0", func(n *corev1.Node) { n.Spec.ProviderID = "aws:///eu-west-1a/i-other" }), blocked: "NodeClaim old-0: nodeclaim does not have an associated node"},
		{name: "the claim names no node", changes: func(s *testCluster) { s.forgetNode("old-0") }, blocked: "NodeClaim old-0: nodeclaim does not have an associated node"},
		{name: "the budget is smaller now", changes: func(s *testCluster) { s.setBudgetAndLimit("1", 10) }, blocked: "NodePool default: No allowed disruptions for disruption reason Underutilized due to blocking budget"},
		{name: "the budget is invalid", changes: func(s *testCluster) { s.setBudgetAndLimit("some", 10) }, blocked: "NodePool default: spec.disruption.budgets[0]"},
		{name: "the budget's time zone is invalid", changes: func(s *testCluster) {
			s.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
				o.SetAnnotations(map[string]string{policy.BudgetTimeZone: "Mars/Olympus"})
			})
		}, blocked: "NodePool default: annotation joist.sh/budget-time-zone"},
		{name: "another node is not ready", changes: node("old-2", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }), blocked: "NodePool default: No allowed disruptions"},
		{name: "another node is being deleted", changes: func(s *testCluster) {
			if err := s.Delete(s.t.Context(), cluster.NodeClaims, cluster.Key{Name: "old-2"}, ""); err != nil {
				s.t.Fatal(err)
			}
		}, blocked: "NodePool default: No allowed disruptions"},
		{name: "another proposal is in execution", changes: func(s *testCluster) {
			other := s.newProposal("q", "old-2")
			other.deliver(event.Proposed, "")
			s.advance(planning.ConfirmAfter)
			other.Plan = s.storeReplacementPlan("other", 1)
			other.deliver(event.Confirmed, "")
		}, blocked: "NodePool default: No allowed disruptions"},
		{name: "the limit is reached", changes: func(s *testCluster) { s.setBudgetAndLimit("2", 3) }},
		{name: "the remaining nodes reach the limit", changes: func(s *testCluster) { s.setBudgetAndLimit("2", 1) }, blocked: "NodePool default: a replacement was not admitted: limit cpu=2 would be exceeded: 4"},
		{name: "strict limits count the replaced nodes", changes: func(s *testCluster) {
			s.setBudgetAndLimit("2", 3)
			s.setStrictLimits()
		}, blocked: "NodePool default: a replacement was not admitted: limit cpu=6 would be exceeded: 8"},
		{name: "the price limit is reached", changes: func(s *testCluster) { s.setBudgetAndPriceLimit("2", 3) }, blocked: "NodePool default: a replacement was not admitted: joist.sh/price-limit of $0.0903 an hour would be exceeded: $0.1204"},
		{name: "the pool is being deleted", changes: func(s *testCluster) {
			s.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) { o.SetFinalizers([]string{"x"}) })
			if err := s.Delete(s.t.Context(), cluster.NodePools, cluster.Key{Name: "default"}, ""); err != nil {
				s.t.Fatal(err)
			}
		}, blocked: `NodePool default: NodePool "default" does not exist or is being deleted`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newInitializedCluster(t, 3)
			s.setBudgetAndLimit("2", 5)
			m := s.startProposal(1, "old-0", "old-1")
			if c.reason != "" {
				m.Reason = string(c.reason)
			}
			if c.method != "" {
				m.Method = c.method
			}
			c.changes(s)
			m.deliver(event.Confirmed, "")
			if c.blocked == "" {
				s.expectStates(stateActing, "old-0", "old-1")
				return
			}
			s.expectStates(stateUntouched, "old-0", "old-1")
			if s.getClaim("new-0") != nil {
				t.Error("the replacement was created despite the objection")
			}
			if recorded := s.eventsWithReason("DisruptionBlocked"); !slices.ContainsFunc(recorded, func(text string) bool { return strings.HasPrefix(text, c.blocked) }) {
				t.Errorf("got the Events %q, want %q", recorded, c.blocked)
			}
		})
	}
}

func (s *testCluster) nominateClaim(name string, d time.Duration) {
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: name}, func(o cluster.Object) {
		o.GetAnnotations()["joist.sh/nominated-until"] = s.now.Add(d).Format(time.RFC3339)
	})
}

func blockByBudget(s *testCluster) {
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pdb"}}
	pdb.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "pod-of-old-1"}}
	s.SeedObjects(pdb)
}

// blockByBudgetWithGrace also sets a terminationGracePeriod on the claims.
func blockByBudgetWithGrace(s *testCluster) {
	blockByBudget(s)
	for _, name := range []string{"old-0", "old-1"} {
		s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: name}, func(o cluster.Object) {
			o.(*karpenter.NodeClaim).Spec.TerminationGracePeriod = &metav1.Duration{Duration: time.Hour}
		})
	}
}

// A node expires even while it is being replaced: the deletion does not wait for a late
// replacement.
func TestExpiryDoesNotWaitForReplacement(t *testing.T) {
	s := newInitializedCluster(t, 2)
	s.setBudgetAndLimit("1", 5)
	m := s.startProposal(1, "old-0")
	m.Reason, m.Method = string(karpenter.DisruptionReasonDrifted), planning.MethodExpiration
	m.deliver(event.Confirmed, "")
	s.expectStates(stateActing, "old-0")
	end := s.now.Add(time.Minute)
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "old-0"}, func(o cluster.Object) {
		o.(*karpenter.NodeClaim).Spec.ExpireAfter = karpenter.DurationOf(end.Sub(o.GetCreationTimestamp().Time))
	})
	s.advanceOnce(time.Minute - time.Second)
	if c := s.getClaim("old-0"); c == nil || c.DeletionTimestamp != nil {
		t.Fatalf("before its expiry, and before its replacement is initialized, the old claim is %+v", c)
	}
	s.advanceOnce(time.Second)
	if c := s.getClaim("old-0"); c != nil && c.DeletionTimestamp == nil {
		t.Error("the claim expired and was not deleted")
	}
	if c := s.getClaim("new-0"); c == nil || c.DeletionTimestamp != nil {
		t.Error("the replacement was deleted with the expired claim")
	}
}

// A claim that is deleted, or carries another proposal, makes the whole proposal stale.
func TestProposalIsStaleAsAWhole(t *testing.T) {
	s := newInitializedCluster(t, 3)
	s.newProposal("p", "old-0", "nobody").deliver(event.Proposed, fault.Stale)
	s.expectStates(stateUntouched, "old-0")
	first := s.newProposal("p", "old-0", "old-1")
	first.deliver(event.Proposed, "")
	s.newProposal("q", "old-1", "old-2").deliver(event.Proposed, fault.Stale)
	s.expectStates("proposed ", "old-0", "old-1")
	s.expectStates(stateUntouched, "old-2")
	s.newProposal("q", "old-0", "old-1").deliver(event.Dropped, "")
	s.expectStates("proposed ", "old-0", "old-1")
	s.advance(planning.ConfirmAfter)
	s.newProposal("p", "old-0", "old-1", "old-2").deliver(event.Confirmed, fault.Stale)
	s.expectStates(stateUntouched, "old-0", "old-1", "old-2")

	first.deliver(event.Proposed, "")
	s.advance(planning.ConfirmAfter)
	if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "old-0"}, ""); err != nil {
		t.Fatal(err)
	}
	first.deliver(event.Confirmed, fault.Stale)
	s.expectStates(stateUntouched, "old-1")
	wrong := s.newProposal("w", "old-1")
	wrong.Reason = "Whim"
	wrong.deliver(event.Proposed, fault.Poison)
}

// A second confirmation with other replacements does nothing, because the first one is being
// executed.
func TestOtherReplacements(t *testing.T) {
	s := newInitializedCluster(t, 1)
	m := s.startProposal(1, "old-0")
	m.deliver(event.Confirmed, "")
	m.Plan = s.storeReplacementPlan("other", 1)
	m.deliver(event.Confirmed, fault.Stale)
	s.expectStates(stateActing, "old-0")
	if s.getClaim("other-0") != nil {
		t.Error("a second replacement was created")
	}
}

// The marks of a disruption are removed if there is no proposal: a user removed it, or Karpenter
// began the disruption.
func TestLeftOverDisruptionMarksAreRemoved(t *testing.T) {
	s := newInitializedCluster(t, 1)
	m := s.startProposal(1, "old-0")
	m.deliver(event.Confirmed, "")
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "old-0"}, func(o cluster.Object) { delete(o.GetAnnotations(), planning.ProposalAnnotation) })
	s.advance(2 * time.Second)
	s.expectStates(stateUntouched, "old-0")
}

// A taint alone is removed too, unless the claim is being deleted.
func TestLeftOverTaintIsRemoved(t *testing.T) {
	s := newInitializedCluster(t, 2)
	for _, name := range []string{"old-0", "old-1"} {
		s.ChangeObject(cluster.Nodes, cluster.Key{Name: name}, func(o cluster.Object) {
			node := o.(*corev1.Node)
			node.Spec.Taints = append(node.Spec.Taints, karpenter.DisruptedTaint())
		})
	}
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "old-1"}, func(o cluster.Object) { o.SetDeletionTimestamp(&metav1.Time{Time: s.now}) })
	s.advance(2 * time.Second)
	s.expectStates(stateUntouched, "old-0")
	s.expectStates("going", "old-1")
	if !karpenter.HasTaint(s.getNode("old-1").Spec.Taints, karpenter.DisruptedTaint()) {
		t.Error("the taint was removed from the node of a claim that is being deleted")
	}
}

// A taint or a condition that a user removes is restored while the proposal is being executed.
func TestDisruptionMarksAreRestored(t *testing.T) {
	s := newInitializedCluster(t, 1)
	m := s.startProposal(1, "old-0")
	m.deliver(event.Confirmed, "")
	s.ChangeObject(cluster.Nodes, cluster.Key{Name: "old-0"}, func(o cluster.Object) { o.(*corev1.Node).Spec.Taints = nil })
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "old-0"}, func(o cluster.Object) {
		c := o.(*karpenter.NodeClaim)
		c.Status.Conditions = c.Status.Conditions.Without(karpenter.ConditionTypeDisruptionReason)
	})
	s.advance(2 * time.Second)
	s.expectStates(stateActing, "old-0")
}

// A lost swap is retried, because kubelets and users also write nodes and claims.
func TestLostSwapsAreRetried(t *testing.T) {
	for _, kind := range []cluster.Kind{cluster.Nodes, cluster.NodeClaims} {
		for _, verb := range []memcluster.Verb{memcluster.VerbUpdate, memcluster.VerbUpdateStatus} {
			s := newInitializedCluster(t, 1)
			m := s.startProposal(1, "old-0")
			s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: verb, Kind: kind, As: fault.Conflict, Times: 3})
			m.deliver(event.Confirmed, "")
			s.expectStates(stateActing, "old-0")
		}
	}
}

// If a claim is deleted while its proposal starts, it is not tainted, and the proposal does not
// continue without it.
func TestClaimDeletedWhileProposalStarts(t *testing.T) {
	s := newInitializedCluster(t, 2)
	m := s.startProposal(1, "old-0", "old-1")
	s.startService(&deletingClient{Client: s.ClientFor("lifecycle"), site: s, name: "old-1"})
	m.deliver(event.Confirmed, fault.Retry)
	m.deliver(event.Confirmed, fault.Stale)
	s.advance(3 * time.Minute)
	s.expectStates(stateUntouched, "old-0")
	s.expectStates("going", "old-1")
	if s.getClaim("new-0") != nil {
		t.Error("the proposal continued without one of its claims")
	}
}

// deletingClient loses the first swap of a claim, because another client deletes the claim.
type deletingClient struct {
	cluster.Client
	site *testCluster
	name string
}

func (d *deletingClient) Update(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	if o.GetName() == d.name && d.site != nil {
		if err := d.site.Delete(ctx, cluster.NodeClaims, cluster.Key{Name: d.name}, ""); err != nil {
			return nil, err
		}
		d.site = nil
	}
	return d.Client.Update(ctx, o)
}
