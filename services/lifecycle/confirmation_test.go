package lifecycle_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// rejectCalls makes the API server reject the calls of lifecycle about an object, or about all objects of the kind without a name.
func (s *testCluster) rejectCalls(verb memcluster.Verb, kind cluster.Kind, name string) {
	s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: verb, Kind: kind, Name: name, As: fault.Denied})
}

// forgetNode removes the name of the node from a claim's status.
func (s *testCluster) forgetNode(claim string) {
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: claim}, func(o cluster.Object) { o.(*karpenter.NodeClaim).Status.NodeName = "" })
}

// The confirmation of a removal arrives again after the claim was marked and could not be deleted. It is not counted again, and the next
// reconcile deletes the claim.
func TestRepeatedConfirmationOfRemoval(t *testing.T) {
	s := newInitializedCluster(t, 2)
	s.setBudgetAndLimit("1", 10)
	m := s.startProposal(0, "old-0")
	s.rejectCalls(memcluster.VerbDelete, cluster.NodeClaims, "old-0")
	m.deliver(event.Confirmed, fault.Denied)
	s.ClearFaults()
	version := s.Version()
	m.deliver(event.Confirmed, "")
	if s.Version() != version {
		t.Error("the second confirmation wrote something")
	}
	s.expectStates(stateActing, "old-0")
	s.advance(2 * time.Second)
	s.expectStates("going", "old-0")
}

// A replacement that could not be created is created when its confirmation arrives again.
func TestRepeatedConfirmationOfReplacement(t *testing.T) {
	s := newInitializedCluster(t, 1)
	m := s.startProposal(1, "old-0")
	s.rejectCalls(memcluster.VerbCreate, cluster.NodeClaims, "")
	for range 2 {
		m.deliver(event.Confirmed, fault.Denied)
		s.expectStates(stateActing, "old-0")
		if held := s.readOutbox(); held.State != outbox.Applying || held.Plan != m.Plan.Digest {
			t.Fatalf("got outbox %+v", held.Outbox)
		}
	}
	s.ClearFaults()
	s.takeSent()
	m.deliver(event.Confirmed, "")
	if diff := cmp.Diff([]string{"launch.requested.v1 intent/new"}, typesAndSubjects(s.takeSent())); diff != "" || s.getClaim("new-0") == nil {
		t.Errorf("the replacement was not created and requested:\n%s", diff)
	}
	s.expectStates(stateActing, "old-0")
}

// A replacement that is missing although the outbox has another plan can never be created, so that its confirmation rolls the proposal back.
// It does nothing before it could read the outbox and the replacement.
func TestConfirmationOfMissingReplacement(t *testing.T) {
	s := newInitializedCluster(t, 1)
	m := s.startProposal(1, "old-0")
	m.deliver(event.Confirmed, "")
	s.startBatch()
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "new-0"}, func(o cluster.Object) { o.SetFinalizers(nil) })
	if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "new-0"}, ""); err != nil {
		t.Fatal(err)
	}
	for _, unread := range []struct {
		kind cluster.Kind
		name string
	}{{cluster.ConfigMaps, ""}, {cluster.NodeClaims, "new-0"}} {
		s.rejectCalls(memcluster.VerbGet, unread.kind, unread.name)
		m.deliver(event.Confirmed, fault.Denied)
		s.expectStates(stateActing, "old-0")
		s.ClearFaults()
	}
	m.deliver(event.Confirmed, "")
	s.expectStates(stateUntouched, "old-0")
}

// A proposal with a replacement does not start if something that it needs cannot be read.
func TestReplacementNeedsLiveState(t *testing.T) {
	for name, c := range map[string]struct {
		verb memcluster.Verb
		kind cluster.Kind
	}{
		"the outbox":   {memcluster.VerbGet, cluster.ConfigMaps},
		"the NodePool": {memcluster.VerbList, cluster.NodePools},
	} {
		t.Run(name, func(t *testing.T) {
			s := newInitializedCluster(t, 1)
			m := s.startProposal(1, "old-0")
			s.rejectCalls(c.verb, c.kind, "")
			m.deliver(event.Confirmed, fault.Denied)
			s.ClearFaults()
			s.expectStates("proposed ", "old-0")
			if s.getClaim("new-0") != nil {
				t.Error("the replacement was created")
			}
			m.deliver(event.Confirmed, "")
			s.expectStates(stateActing, "old-0")
		})
	}
}

// A replacement counts against the disruptions per hour, like a removal.
func TestHourlyBudgetOfReplacements(t *testing.T) {
	s := newInitializedCluster(t, 1)
	s.setRate("0")
	m := s.startProposal(1, "old-0")
	m.deliver(event.Confirmed, "")
	s.expectStates(stateUntouched, "old-0")
	if s.getClaim("new-0") != nil {
		t.Error("the replacement was created")
	}
}

// A proposal that was confirmed on one of its claims only is rolled back there if its next confirmation is rejected.
func TestRejectionRollsBackPartialConfirmation(t *testing.T) {
	s := newInitializedCluster(t, 3)
	s.setBudgetAndLimit("2", 5)
	m := s.startProposal(1, "old-0", "old-1")
	s.crashAtWrite(3, false)
	_ = s.svc.Handle(t.Context(), m.envelope(event.Confirmed))
	s.restartService()
	s.expectStates("proposed confirmed ", "old-0")
	s.expectStates("proposed ", "old-1")
	s.setBudgetAndLimit("1", 5)
	m.deliver(event.Confirmed, "")
	s.expectStates(stateUntouched, "old-0", "old-1")
	if s.getClaim("new-0") != nil {
		t.Error("the replacement was created")
	}
}

// The admission of replacements keeps and launches the claims of an abandoned plan, like that of a batch.
func TestReplacementsKeepIntentLeftBehind(t *testing.T) {
	s := newInitializedCluster(t, 1)
	m := s.startProposal(1, "old-0")
	held := s.startBatch()
	s.reconcile()
	s.crashAtWrite(3, false)
	_ = s.svc.Handle(t.Context(), s.planMessage(held, s.planIntent(held, "left", 2)))
	s.restartService()
	if _, err := s.readOutbox().Swap(t.Context(), s.Server, outbox.Outbox{Epoch: 1, Seq: held.Seq + 1, State: outbox.Done}); err != nil {
		t.Fatal(err)
	}
	m.deliver(event.Confirmed, "")
	after := s.readOutbox()
	if diff := cmp.Diff([]string{"left-0", "left-1", "new-0"}, after.Claims); diff != "" {
		t.Error(diff)
	}
	for _, name := range after.Claims {
		if c := s.getClaim(name); c == nil || after.UIDs[name] != c.UID {
			t.Errorf("the outbox has the UID %q of %s", after.UIDs[name], name)
		}
	}
	if sent := typesAndSubjects(s.takeSent()); !slices.Contains(sent, "launch.requested.v1 intent/left") {
		t.Errorf("the intent that was left behind is not launched: sent %v", sent)
	}
}

// After a rollback a proposal may be recorded again under its ID. A late copy of its first confirmation must not start it:
// the replacements of that confirmation have failed, and the client token of their launch is used.
func TestLateConfirmationAfterRollback(t *testing.T) {
	for _, c := range []struct {
		name   string
		copied func(event.DisruptionProposed) event.DisruptionProposed
		want   fault.Kind
		state  string
	}{
		{"a late copy", func(b event.DisruptionProposed) event.DisruptionProposed { return b }, fault.Stale, "proposed "},
		{"a confirmation of an older version, which has no time", func(b event.DisruptionProposed) event.DisruptionProposed { b.ProposedAt = time.Time{}; return b }, "", stateActing},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newInitializedCluster(t, 3)
			m := s.startProposal(1, "old-0", "old-1")
			first := m.envelope(event.Confirmed)
			s.handleMessage(first, "")
			s.advance(2 * time.Second)
			s.handleMessage(s.newMessage(launchSettled("new", 1)), "") // EC2 refuses the launch.
			s.advance(5 * time.Second)
			s.expectStates(stateUntouched, "old-0", "old-1")
			m.deliver(event.Proposed, "")
			s.advanceOnce(planning.ConfirmAfter)
			body, err := event.DecodeBody[event.DisruptionProposed](first)
			if err != nil {
				t.Fatal(err)
			}
			seq := s.readOutbox().Seq
			s.handleMessage(s.newMessage(c.copied(body)), c.want)
			if started := s.readOutbox().Seq != seq; started != (c.want == "") {
				t.Errorf("the replacements were admitted: %v", started)
			}
			s.expectStates(c.state, "old-0", "old-1")
			if c.want == "" {
				return
			}
			m.Plan = s.storeReplacementPlan("newer", 1)
			m.deliver(event.Confirmed, "")
			s.expectStates(stateActing, "old-0", "old-1")
			s.checkInvariants(2, 4)
		})
	}
}

// The process stops after it confirmed a proposal without replacements and before it taints the node. If pods come meanwhile, no
// capacity was planned for them, and they may be protected: the proposal is rolled back. Pods that belong to the node do not keep it.
func TestPodsThatCameBeforeTheTaint(t *testing.T) {
	for name, c := range map[string]struct {
		comes func(*corev1.Pod)
		ends  bool
		want  string
		why   string
	}{
		"none":  {want: "going"},
		"a pod": {comes: func(*corev1.Pod) {}, want: stateUntouched, why: "new pods were scheduled before the node was tainted: 2 must move, 1 were planned"},
		"a protected pod instead of another": {comes: func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{karpenter.DoNotDisruptAnnotationKey: "true"}
		}, ends: true, want: stateUntouched, why: `pod has "karpenter.sh/do-not-disrupt" annotation (Pod=default/late)`},
		"a pod of a DaemonSet": {comes: func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "agent"}}
		}, want: "going"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newInitializedCluster(t, 1)
			m := s.startProposal(0, "old-0")
			s.rejectCalls(memcluster.VerbUpdate, cluster.Nodes, "old-0")
			m.deliver(event.Confirmed, fault.Denied)
			s.expectStates("proposed confirmed condition ", "old-0")
			if c.ends {
				s.removePodOf("old-0")
			}
			if c.comes != nil {
				s.addPod("old-0", "late", c.comes)
			}
			s.restartService()
			s.ClearFaults()
			s.advance(3 * time.Second)
			s.expectStates(c.want, "old-0")
			if c.want == "going" {
				return
			}
			if got := s.eventsWithReason("DisruptionBlocked"); !slices.Contains(got, "NodeClaim old-0: Disruption was rolled back: "+c.why) {
				t.Errorf("Events %q, want one with %q", got, c.why)
			}
		})
	}
}
