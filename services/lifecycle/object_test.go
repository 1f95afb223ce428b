package lifecycle_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// A plan that places pods on an existing claim nominates it.
func TestNominationByPlan(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	s.advance(time.Minute)
	before := s.getClaim("one-0").Annotations["joist.sh/nominated-until"]
	held := s.startBatch()
	plan := planning.Plan{Outbox: held.UID(), Seq: held.Seq, Batch: held.Batch, Nominations: []planning.Nomination{{Claim: "one-0", Pod: planning.PodRef{Buffer: "spare"}}}}
	s.handleMessage(s.planMadeMessage(held, plan), "")
	if got := s.getClaim("one-0").Annotations["joist.sh/nominated-until"]; got != before {
		t.Errorf("capacity for a buffer nominates the claim until %s", got)
	}
	held = s.startBatch()
	plan = planning.Plan{Outbox: held.UID(), Seq: held.Seq, Batch: held.Batch, Nominations: []planning.Nomination{{Claim: "one-0"}, {Claim: "one-0"}, {Claim: "nobody"}, {Node: "foreign"}}}
	s.handleMessage(s.planMadeMessage(held, plan), "")
	if got, want := s.getClaim("one-0").Annotations["joist.sh/nominated-until"], s.now.Add(20*time.Second).Format(time.RFC3339); got != want {
		t.Errorf("got nominated until %s, want %s", got, want)
	}
}

// addNodeClass creates a node class with a role.
func (s *testCluster) addNodeClass(role string) *karpenter.EC2NodeClass {
	s.t.Helper()
	class := &karpenter.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	class.Spec.Role = role
	if role == "" {
		profile := "mine"
		class.Spec.InstanceProfile = &profile
	}
	s.SeedObjects(class)
	s.reconcile()
	return s.getNodeClass()
}

func (s *testCluster) getNodeClass() *karpenter.EC2NodeClass {
	s.t.Helper()
	class, err := cluster.Get[*karpenter.EC2NodeClass](s.t.Context(), s.Server, cluster.NodeClasses, cluster.Key{Name: "default"})
	if fault.Is(err, fault.Missing) {
		return nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return class
}

func (s *testCluster) resolvedMessage(class *karpenter.EC2NodeClass, problems ...event.Problem) event.Envelope {
	s.t.Helper()
	return s.newMessage(event.NodeClassResolved{
		Name: class.Name, UID: string(class.UID), Generation: class.Generation, Asked: s.now, Problems: problems,
		Subnets: []event.Subnet{{ID: "subnet-1", Zone: "eu-west-1a"}}, SecurityGroups: []event.SecurityGroup{{ID: "sg-1"}},
		Images: []event.Image{{ID: "ami-1", Requirements: []byte(`[{"key":"kubernetes.io/arch","operator":"In","values":["amd64"]}]`)}},
	})
}

// A node class with a role requests a profile, and the resolved resources are written. When the
// class is deleted, its profile is deleted first.
func TestNodeClassWithRole(t *testing.T) {
	s := newTestCluster(t)
	class := s.addNodeClass("node")
	if !slices.Contains(class.Finalizers, karpenter.EC2NodeClassTerminationFinalizer) {
		t.Fatal("the class has no finalizer")
	}
	s.reconcile()
	sent := s.takeSent()
	if diff := cmp.Diff([]string{"nodeclass.ensure.v1 ec2nodeclass/default"}, typesAndSubjects(sent)); diff != "" {
		t.Fatal(diff)
	}
	ask, err := event.DecodeBody[event.NodeClassEnsure](sent[0])
	if err != nil || ask.Role != "node" || ask.Delete || ask.Tags["kubernetes.io/cluster/prod"] != "owned" {
		t.Fatalf("%+v, %v", ask, err)
	}
	class = s.getNodeClass()
	s.handleMessage(s.resolvedMessage(class), "")
	if s.getNodeClass().Status.Conditions.IsTrue(karpenter.ConditionTypeReady) {
		t.Error("the class is Ready without a profile")
	}
	problem := &event.Problem{Condition: karpenter.ConditionTypeInstanceProfileReady, Reason: "InstanceProfileRefused", Message: "no"}
	ensured := event.NodeClassEnsured{Name: class.Name, UID: string(class.UID), Role: "node", Profile: ask.Profile, Problem: problem, Asked: s.now}
	s.handleMessage(s.newMessage(ensured), "")
	if s.getNodeClass().Status.Conditions.IsTrue(karpenter.ConditionTypeInstanceProfileReady) || s.getNodeClass().Status.InstanceProfile != "" {
		t.Error("a denied request made the profile ready")
	}
	ensured.Problem = nil
	s.handleMessage(s.newMessage(ensured), "")
	if got := s.getNodeClass(); got.Status.InstanceProfile != ask.Profile || !got.Status.Conditions.IsTrue(karpenter.ConditionTypeReady) {
		t.Errorf("got status %+v", got.Status)
	}
	ensured.Role = "another"
	s.handleMessage(s.newMessage(ensured), fault.Stale)

	s.launchIntent("one", 1)
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "one-0"}, func(o cluster.Object) {
		o.(*karpenter.NodeClaim).Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "default"}
	})
	if err := s.Delete(t.Context(), cluster.NodeClasses, cluster.Key{Name: "default"}, ""); err != nil {
		t.Fatal(err)
	}
	s.reconcile()
	if got := typesAndSubjects(s.takeSent()); slices.Contains(got, "nodeclass.ensure.v1 ec2nodeclass/default") {
		t.Error("requested the deletion of the profile while a claim uses it")
	}
	s.handleMessage(s.newMessage(launchSettled("one", 1)), "")
	s.advance(2 * time.Second)
	sent = s.takeSent()
	ask, err = event.DecodeBody[event.NodeClassEnsure](sent[len(sent)-1])
	if err != nil || !ask.Delete {
		t.Fatalf("%+v, %v", ask, err)
	}
	ensured = event.NodeClassEnsured{Name: class.Name, UID: string(class.UID), Role: "node", Profile: ask.Profile, Problem: problem, Asked: s.now}
	s.handleMessage(s.newMessage(ensured), "")
	if s.getNodeClass() == nil {
		t.Fatal("the class was deleted before its profile")
	}
	ensured.Problem, ensured.Deleted = nil, true
	s.handleMessage(s.newMessage(ensured), "")
	if s.getNodeClass() != nil {
		t.Error("the class was never deleted")
	}
	s.handleMessage(s.newMessage(ensured), "")
}

func TestNodeClassWithProfile(t *testing.T) {
	s := newTestCluster(t)
	class := s.addNodeClass("")
	s.reconcile()
	if got := typesAndSubjects(s.takeSent()); len(got) != 0 {
		t.Fatalf("sent a request about an unmanaged profile: %v", got)
	}
	s.handleMessage(s.resolvedMessage(class, event.Problem{Condition: karpenter.ConditionTypeSubnetsReady, Reason: "SubnetsNotFound", Message: "none"}), "")
	got := s.getNodeClass().Status
	subnets, _ := got.Conditions.Get(karpenter.ConditionTypeSubnetsReady)
	if subnets.Status != metav1.ConditionFalse || subnets.Reason != "SubnetsNotFound" || got.Conditions.IsTrue(karpenter.ConditionTypeReady) {
		t.Errorf("got conditions %+v", got.Conditions)
	}
	s.handleMessage(s.resolvedMessage(s.getNodeClass()), "")
	if got := s.getNodeClass().Status; !got.Conditions.IsTrue(karpenter.ConditionTypeReady) || got.InstanceProfile != "mine" || len(got.AMIs) != 1 {
		t.Errorf("got status %+v", got)
	}
	version := s.Version()
	s.handleMessage(s.resolvedMessage(s.getNodeClass()), "")
	if s.Version() != version {
		t.Error("an unchanged result was written")
	}
	old := s.getNodeClass()
	old.Generation--
	s.handleMessage(s.resolvedMessage(old), fault.Stale)
	other := s.getNodeClass()
	other.UID = "other"
	s.handleMessage(s.resolvedMessage(other), "")
	if err := s.Delete(t.Context(), cluster.NodeClasses, cluster.Key{Name: "default"}, ""); err != nil {
		t.Fatal(err)
	}
	s.reconcile()
	ask := s.lastEnsureRequest()
	if ask.Role != "" || ask.Profile != "mine" || !ask.Delete {
		t.Fatalf("%+v", ask)
	}
	s.handleMessage(s.newMessage(event.NodeClassEnsured{Name: class.Name, UID: string(class.UID), Profile: "mine", Deleted: true, Asked: s.now}), "")
	if s.getNodeClass() != nil {
		t.Error("the class was never deleted")
	}
}
