package lifecycle_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/garbagecollection"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

func TestLaunchResultBindsEachClaimOnce(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 3)
	e := s.newMessage(launchSettled("one", 3, "i-3", "i-1", "i-2"))
	s.handleMessage(e, "")
	want := map[string]string{"one-0": "i-1", "one-1": "i-2", "one-2": "i-3"}
	if diff := cmp.Diff(want, s.boundInstances()); diff != "" {
		t.Fatal(diff)
	}
	c := s.getClaim("one-0")
	labels := map[string]string{
		"kubernetes.io/arch": "amd64", "node.kubernetes.io/instance-type": "m6i.large", "topology.kubernetes.io/zone": "eu-west-1a",
		"topology.kubernetes.io/region": "eu-west-1", "topology.k8s.aws/zone-id": "euw1-az1", "karpenter.sh/capacity-type": "spot",
		"karpenter.sh/nodepool": "default",
	}
	if diff := cmp.Diff(labels, c.Labels); diff != "" {
		t.Error(diff)
	}
	if price, known := planning.ReadPrice(c); !known || price != 0.0301 {
		t.Errorf("got price %v", price)
	}
	if c.Status.ImageID != "ami-1" || !c.Status.Conditions.IsTrue(karpenter.ConditionTypeLaunched) || c.Status.Capacity.Cpu().Value() != 2 {
		t.Errorf("got status %+v", c.Status)
	}
	version := s.Version()
	s.handleMessage(e, "")
	if s.Version() != version || len(s.takeSent()) != 0 {
		t.Error("a repeated launch result changed something")
	}
}

// The result of a launch binds the first of two claims, and arrives again after the instance of that claim has ended. The claim stays until
// then, so that the other claim gets the other instance.
func TestLateLaunchResultBindsNoEndedInstance(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 2)
	result := s.newMessage(launchSettled("one", 2, "i-1", "i-2"))
	s.rejectCalls(memcluster.VerbUpdateStatus, cluster.NodeClaims, "one-1")
	s.handleMessage(result, fault.Denied)
	s.ClearFaults()
	s.handleMessage(s.newMessage(event.InstanceGone{InstanceID: "i-1", Shown: s.now}), "")
	s.advance(time.Minute)
	if diff := cmp.Diff(map[string]string{"one-0": "i-1", "one-1": ""}, s.boundInstances()); diff != "" {
		t.Fatal(diff)
	}
	s.handleMessage(result, "")
	s.advance(2 * time.Second)
	if diff := cmp.Diff(map[string]string{"one-1": "i-2"}, s.boundInstances()); diff != "" {
		t.Error(diff)
	}
	if c := s.getClaim("one-1"); c == nil || c.DeletionTimestamp != nil {
		t.Errorf("the claim with a running instance is %+v", c)
	}
}

// A claim without an intent, which Karpenter launched, does not wait for others without an intent.
func TestClaimWithoutIntentWaitsForNoOther(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 2)
	s.handleMessage(s.newMessage(launchSettled("one", 2, "i-1", "i-2")), "")
	for _, name := range []string{"one-0", "one-1"} {
		s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: name}, func(o cluster.Object) {
			for key := range o.GetAnnotations() {
				if strings.HasPrefix(key, "joist.sh/") {
					delete(o.GetAnnotations(), key)
				}
			}
			if name == "one-1" {
				o.(*karpenter.NodeClaim).Status.ProviderID = ""
			}
		})
	}
	s.handleMessage(s.newMessage(event.InstanceGone{InstanceID: "i-1", Shown: s.now}), "")
	s.advance(2 * time.Second)
	if c := s.getClaim("one-0"); c != nil {
		t.Errorf("the claim of the ended instance is %+v", c)
	}
}

// Labels of the pool's template take precedence over those of the instance type.
func TestTemplateLabelsTakePrecedence(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 1)
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "one-0"}, func(o cluster.Object) {
		o.GetLabels()["kubernetes.io/arch"] = "by-template"
	})
	s.handleMessage(s.newMessage(launchSettled("one", 1, "i-1")), "")
	labels := s.getClaim("one-0").Labels
	if labels["kubernetes.io/arch"] != "by-template" || labels[corev1.LabelInstanceTypeStable] != "m6i.large" {
		t.Errorf("got labels %v", labels)
	}
}

// A pool that requires one instance type sets its label on new claims. The other labels are added
// even after a crash, and no node is registered without them.
func TestLabelsOfRequiredInstanceType(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 1)
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "one-0"}, func(o cluster.Object) {
		o.GetLabels()[corev1.LabelInstanceTypeStable] = "m6i.large"
	})
	s.reconcile()
	s.crashAtWrite(1, false)
	if err := s.svc.Handle(t.Context(), s.newMessage(launchSettled("one", 1, "i-1"))); err == nil {
		t.Fatal("Handle returned no error, although the process crashed")
	}
	s.restartService()
	s.joinNode("node-1", "i-1")
	s.advance(3 * time.Second)
	if s.getNodeOf().Labels[karpenter.NodeRegisteredLabelKey] != "" {
		t.Error("the node was registered without the labels of the instance type")
	}
	s.now = s.now.Add(time.Minute)
	s.handleMessage(s.inventoryMessage(s.now, listedInstance("i-1", "one", "")), "")
	s.advance(3 * time.Second)
	if got := s.getNodeOf().Labels; got[karpenter.CapacityTypeLabelKey] != "spot" || got[karpenter.NodeRegisteredLabelKey] != "true" {
		t.Errorf("the node has the labels %v", got)
	}
}

// After a crash between any two writes of a launch result, no instance is bound twice or moved.
func TestCrashesWhileBinding(t *testing.T) {
	const writes = 4 // two bindings, each with its labels
	for n := range writes + 1 {
		for _, done := range []bool{false, true} {
			s := newTestCluster(t)
			s.launchIntent("one", 2)
			s.reconcile()
			s.crashAtWrite(n, done)
			e := s.newMessage(launchSettled("one", 2, "i-1", "i-2"))
			if err := s.svc.Handle(t.Context(), e); (err == nil) != (n == writes) {
				t.Fatalf("crash at write %d: Handle returned %v", n, err)
			}
			s.restartService()
			s.handleMessage(e, "")
			if diff := cmp.Diff(map[string]string{"one-0": "i-1", "one-1": "i-2"}, s.boundInstances()); diff != "" {
				t.Fatalf("write %d, done %t:\n%s", n, done, diff)
			}
			// The next inventory adds the labels that were lost in the crash.
			s.now = s.now.Add(time.Minute)
			s.handleMessage(s.inventoryMessage(s.now, listedInstance("i-1", "one", ""), listedInstance("i-2", "one", "")), "")
			for _, c := range s.listClaims() {
				if c.Labels[corev1.LabelInstanceTypeStable] != "m6i.large" {
					t.Errorf("crash at write %d, write took effect %t: %s has the labels %v", n, done, c.Name, c.Labels)
				}
			}
			if got := s.takeSent(); len(got) != 0 {
				t.Errorf("crash at write %d, write took effect %t: sent %v", n, done, typesAndSubjects(got))
			}
		}
	}
}

func listedInstance(instance, intent, claim string) event.Listed {
	return event.Listed{InstanceID: instance, State: "running", Intent: intent, Claim: claim, NodePool: "default", Offering: offering}
}

func TestLostSwapIsRetried(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 1)
	s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbUpdateStatus, As: fault.Conflict, Times: 1})
	e := s.newMessage(launchSettled("one", 1, "i-1"))
	s.handleMessage(e, fault.Conflict)
	s.handleMessage(e, "")
	if diff := cmp.Diff(map[string]string{"one-0": "i-1"}, s.boundInstances()); diff != "" {
		t.Error(diff)
	}
}

// EC2 launched some instances: they are bound, and the other claims are deleted after the
// unavailable offering is recorded.
func TestPartialLaunch(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 3)
	s.handleMessage(s.newMessage(launchSettled("one", 3, "i-1")), "")
	if diff := cmp.Diff(map[string]string{"one-0": "i-1", "one-1": "", "one-2": ""}, s.boundInstances()); diff != "" {
		t.Fatal(diff)
	}
	want := []planning.Unavailable{{Offering: offering, Until: s.now.Add(3 * time.Minute), Reason: "InsufficientInstanceCapacity"}}
	if diff := cmp.Diff(want, s.unavailableOfferings()); diff != "" {
		t.Error(diff)
	}
	writes := s.Effects()
	recorded := slices.IndexFunc(writes, func(e memcluster.Effect) bool { return e.Key.Name == planning.UnavailableConfigMapName })
	deleted := slices.IndexFunc(writes, func(e memcluster.Effect) bool { return e.Verb == memcluster.VerbDelete && e.Kind == cluster.NodeClaims })
	if recorded < 0 || deleted < recorded {
		t.Errorf("the unavailable offering was write %d, and the first deletion write %d; the next plan would request the offering again", recorded, deleted)
	}
	s.reconcile()
	s.reconcile()
	if diff := cmp.Diff(map[string]string{"one-0": "i-1"}, s.boundInstances()); diff != "" {
		t.Error(diff)
	}
}

func TestRefusedWithSpentToken(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 2)
	s.handleMessage(s.newMessage(launchSettled("one", 2)), "")
	s.reconcile()
	if diff := cmp.Diff(map[string]string{}, s.boundInstances()); diff != "" {
		t.Error(diff)
	}
	recorded := slices.ContainsFunc(s.Events(), func(e cluster.Event) bool {
		return e.Reason == "InsufficientCapacityError" && e.Message == "launch refused: InsufficientInstanceCapacity"
	})
	if !recorded {
		t.Errorf("no Event has the reason: %v", s.Events())
	}
}

// After a refusal with an unspent token the claims are kept until no copy of the request can
// launch any more.
func TestRefusedWithUnspentToken(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 1)
	denied := event.LaunchSettled{Intent: "one", Wanted: 1, Refusals: []event.Refusal{{Code: "denied"}}}
	s.handleMessage(s.newMessage(denied), "")
	s.advance(time.Minute)
	c := s.getClaim("one-0")
	if c == nil || c.DeletionTimestamp == nil || c.Annotations[lifecycle.RefusedAnnotation] != "unspent" {
		t.Fatalf("got claim %+v", c)
	}
	if got := s.takeSent(); len(got) != 0 {
		t.Errorf("the launch was requested again: %v", typesAndSubjects(got))
	}
	if got := s.unavailableOfferings(); got != nil {
		t.Errorf("a denial recorded unavailable offerings: %v", got)
	}
	t.Run("the token is spent later", func(t *testing.T) {
		s.handleMessage(s.newMessage(launchSettled("one", 1)), "")
		s.reconcile()
		if s.getClaim("one-0") != nil {
			t.Error("the claim was not deleted although its token is spent")
		}
	})
}

func TestUnspentRefusalEndsAtLaunchHorizon(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 1)
	s.handleMessage(s.newMessage(event.LaunchSettled{Intent: "one", Wanted: 1, Refusals: []event.Refusal{{Code: "denied"}}}), "")
	// Inventories that began before that time do not count.
	for last := s.now.Add(garbagecollection.LaunchHorizon + garbagecollection.SettleTime); !s.now.After(last); {
		s.now = s.now.Add(time.Minute)
		s.handleMessage(s.inventoryMessage(s.now), "")
		s.reconcile()
	}
	if s.getClaim("one-0") == nil {
		t.Fatal("deleted the claim while a copy of its request could still launch")
	}
	for range 2 {
		s.now = s.now.Add(time.Minute)
		s.handleMessage(s.inventoryMessage(s.now), "")
		s.reconcile()
	}
	s.reconcile()
	if s.getClaim("one-0") != nil {
		t.Error("the claim was never deleted")
	}
}

// After a crash between the mark and the deletion, the next reconcile or the redelivered message
// deletes the claim.
func TestCrashWhileRefusing(t *testing.T) {
	const writes = 3 // the shortage, the mark, the deletion
	for n := range writes {
		for _, again := range []bool{false, true} {
			if !again && n < writes-1 {
				continue
			}
			s := newTestCluster(t)
			s.launchIntent("one", 1)
			s.reconcile()
			s.crashAtWrite(n, false)
			e := s.newMessage(launchSettled("one", 1))
			if err := s.svc.Handle(t.Context(), e); err == nil {
				t.Fatalf("Handle returned no error, although the process crashed at write %d", n)
			}
			s.restartService()
			if again {
				s.handleMessage(e, "")
			}
			s.reconcile()
			s.reconcile()
			if c := s.getClaim("one-0"); c != nil {
				t.Errorf("crash at write %d, message redelivered %t: the claim was not deleted, and has the annotations %v", n, again, c.Annotations)
			}
		}
	}
}

// Instances without a claim are terminated at once.
func TestOrphanInLaunchResult(t *testing.T) {
	s := newTestCluster(t)
	s.handleMessage(s.newMessage(launchSettled("unknown", 1, "i-9")), "")
	s.launchIntent("one", 1)
	body := launchSettled("one", 3, "i-1", "i-2", "i-3")
	s.handleMessage(s.newMessage(body), "")
	sent := s.takeSent()
	if diff := cmp.Diff([]string{"terminate.requested.v1 instance/i-2", "terminate.requested.v1 instance/i-3"}, typesAndSubjects(sent)); diff != "" {
		t.Fatal(diff)
	}
	order, err := event.DecodeBody[event.TerminateRequested](sent[0])
	if err != nil || order.Claim != "" || order.Reason != "no NodeClaim of intent one exists for it" {
		t.Errorf("%+v, %v", order, err)
	}
}

// A late instance is bound to a claim that is being deleted, so that it is terminated like any
// other.
func TestLateInstanceOfDeletedClaim(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 2)
	if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "one-0"}, ""); err != nil {
		t.Fatal(err)
	}
	s.handleMessage(s.newMessage(launchSettled("one", 2, "i-1", "i-2")), "")
	if diff := cmp.Diff(map[string]string{"one-0": "i-2", "one-1": "i-1"}, s.boundInstances()); diff != "" {
		t.Error(diff)
	}
	s.reconcile()
	s.reconcile()
	if diff := cmp.Diff([]string{"terminate.requested.v1 instance/i-2"}, typesAndSubjects(s.takeSent())); diff != "" {
		t.Error(diff)
	}
	if s.getClaim("one-0") == nil {
		t.Error("the claim was deleted before its instance")
	}
}

// A claim that is being deleted and whose intent cannot be read is still bound to its instance,
// which is then terminated.
func TestUnreadableClaimEndsItsInstance(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 1)
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "one-0"}, func(o cluster.Object) {
		delete(o.GetAnnotations(), launchspec.IntentRefAnnotation)
	})
	e := s.inventoryMessage(s.now, listedInstance("i-1", "one", ""))
	s.handleMessage(e, fault.Bug)
	if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "one-0"}, ""); err != nil {
		t.Fatal(err)
	}
	s.handleMessage(e, "")
	s.advance(2 * time.Second)
	if diff := cmp.Diff([]string{"terminate.requested.v1 instance/i-1"}, typesAndSubjects(s.takeSent())); diff != "" {
		t.Error(diff)
	}
}

func TestUnexpectedInstanceType(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 1)
	body := launchSettled("one", 1, "i-1")
	body.Instances[0].InstanceType = "p5.48xlarge"
	s.handleMessage(s.newMessage(body), fault.Bug)
	if diff := cmp.Diff(map[string]string{"one-0": ""}, s.boundInstances()); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyTheLeaderActs(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 1)
	other := lifecycle.New(lifecycle.Config{
		Client: s.ClientFor("other"), Cache: s.cache, Blobs: s.blobs, Launcher: s.launcher, Cluster: clusterIdentity,
		Namespace: namespace, KarpenterNamespace: namespace, Holder: "pod-2", Now: func() time.Time { return s.now },
	})
	if err := other.Handle(t.Context(), s.newMessage(launchSettled("one", 1, "i-1"))); !fault.Is(err, fault.Retry) {
		t.Errorf("a standby replica returned %v", err)
	}
	version := s.Version()
	if err := other.Step(t.Context()); err != nil || s.Version() != version {
		t.Errorf("a reconcile of a standby replica returned %v, or wrote", err)
	}
	s.handleMessage(s.newMessage(event.Tick{Want: event.WantStatus, Due: s.now}), fault.Poison)
}

// Pods that wait for a NodeClaim have an Event when its launch finds no capacity, and none when it is
// denied.
func TestFailedLaunchesAreReportedOnPods(t *testing.T) {
	for _, tt := range []struct {
		refusal event.Refusal
		want    []string
	}{
		{event.Refusal{Code: "InsufficientInstanceCapacity", Blamed: []event.Offering{offering}}, []string{"NodeClaim one-0 nominated for this pod failed to launch: launch refused: InsufficientInstanceCapacity"}},
		{event.Refusal{Code: "UnauthorizedOperation"}, nil},
	} {
		s := newTestCluster(t)
		s.addPod("", "web", func(p *corev1.Pod) { p.UID, p.Status.Phase = "web", corev1.PodPending })
		s.reconcile()
		held := s.startBatch()
		plan := planning.Plan{Outbox: held.UID(), Seq: held.Seq, Batch: held.Batch, Intents: []planning.PlannedIntent{s.planIntent(held, "one", 1)}}
		plan.Nominations = []planning.Nomination{{Claim: "one-0", Namespace: "default", Pod: planning.PodRef{Name: "web", UID: "web"}}}
		s.handleMessage(s.planMadeMessage(held, plan), "")
		s.handleMessage(s.newMessage(event.LaunchSettled{Intent: "one", Wanted: 1, Refusals: []event.Refusal{tt.refusal}, Spent: true}), "")
		var got []string
		for _, e := range s.Events() {
			if e.Kind == cluster.Pods && e.Reason == "InsufficientCapacityError" {
				got = append(got, e.Message)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.refusal.Code, diff)
		}
	}
}

// The claims of an intent are listed unless the cache contains all of them: an instance whose claim the cache lacks
// is bound, not terminated as an orphan.
func TestLaunchResultWithStaleCache(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 2)
	late := s.getClaim("one-1").DeepCopy()
	s.ChangeObject(cluster.NodeClaims, cluster.KeyOf(late), func(o cluster.Object) { o.SetFinalizers(nil) })
	if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.KeyOf(late), ""); err != nil {
		t.Fatal(err)
	}
	s.cache.DeliverAll()
	s.SeedObjects(late) // The cache gets it later.
	if err := s.svc.Handle(t.Context(), s.newMessage(launchSettled("one", 2, "i-1", "i-2"))); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"one-0": "i-1", "one-1": "i-2"}, s.boundInstances()); diff != "" {
		t.Error(diff)
	}
	if got := s.takeSent(); len(got) != 0 {
		t.Errorf("sent %v", typesAndSubjects(got))
	}
}
