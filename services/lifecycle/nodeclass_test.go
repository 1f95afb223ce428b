package lifecycle_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// withDryRuns returns a cluster whose lifecycle waits for dry runs.
func withDryRuns(t *testing.T) *testCluster {
	t.Helper()
	s := newTestCluster(t)
	s.svc = lifecycle.New(lifecycle.Config{
		Client: s.ClientFor("lifecycle"), Cache: s.cache, Blobs: s.blobs, Launcher: s.launcher, Cluster: clusterIdentity,
		Namespace: namespace, KarpenterNamespace: namespace, Holder: "pod-1", Region: "eu-west-1",
		ReservedCapacity: true, DryRuns: true, Catalogues: &blob.DocumentCache[catalog.Catalogue]{}, Now: func() time.Time { return s.now },
	})
	return s
}

// lastEnsureRequest returns the last request for a node class.
func (s *testCluster) lastEnsureRequest() event.NodeClassEnsure {
	s.t.Helper()
	sent := s.takeSent()
	for _, e := range slices.Backward(sent) {
		if e.Type == event.NodeClassEnsureType {
			ask, err := event.DecodeBody[event.NodeClassEnsure](e)
			if err != nil {
				s.t.Fatal(err)
			}
			return ask
		}
	}
	s.t.Fatal("no request about a node class was sent")
	return event.NodeClassEnsure{}
}

func (s *testCluster) classStatus(kind string) metav1.Condition {
	s.t.Helper()
	c, _ := s.getNodeClass().Status.Conditions.Get(kind)
	return c
}

// A class with a role needs its profile first, then dry runs; then it is ready. Both are checked
// again at their intervals.
func TestNodeClassDryRuns(t *testing.T) {
	s := withDryRuns(t)
	class := s.addNodeClass("node")
	s.reconcile()
	ask := s.lastEnsureRequest()
	if len(ask.Class) > 0 || ask.Generation != class.Generation {
		t.Fatalf("before the selectors are resolved got request %+v", ask)
	}
	answer := event.NodeClassEnsured{Name: class.Name, UID: string(class.UID), Role: "node", Profile: ask.Profile, Generation: class.Generation, Asked: s.now}
	s.handleMessage(s.newMessage(answer), "")
	if c := s.classStatus("ValidationSucceeded"); c.Status != metav1.ConditionUnknown || c.Reason != "DependenciesNotReady" || !strings.Contains(c.Message, "SubnetsReady") {
		t.Fatalf("before the selectors are resolved got condition %+v", c)
	}
	s.handleMessage(s.resolvedMessage(s.getNodeClass()), "")
	if c := s.classStatus("ValidationSucceeded"); c.Status != metav1.ConditionUnknown || c.Reason != "AwaitingReconciliation" {
		t.Fatalf("before the dry runs got condition %+v", c)
	}
	s.reconcile()
	ask = s.lastEnsureRequest()
	var tried karpenter.EC2NodeClass
	if err := json.Unmarshal(ask.Class, &tried); err != nil || ask.Tenancy != "" || tried.Name != "default" || tried.Spec.Role != "node" ||
		len(tried.Status.Subnets) != 1 || len(tried.Status.Conditions) != 0 {
		t.Fatalf("the request has the class %s (%v)", ask.Class, err)
	}
	answer.Validated = true
	answer.Invalid = &event.Problem{Condition: "ValidationSucceeded", Reason: event.CreateFleetAuthCheckFailed, Message: "allow ec2:CreateFleet"}
	s.handleMessage(s.newMessage(answer), "")
	if c := s.classStatus("ValidationSucceeded"); c.Status != metav1.ConditionFalse || c.Reason != event.CreateFleetAuthCheckFailed || c.Message != "allow ec2:CreateFleet" {
		t.Fatalf("after a denied dry run got condition %+v", c)
	}
	if s.requestsWithin(59*time.Second) != 0 || s.requestsWithin(2*time.Second) != 1 {
		t.Error("failed dry runs are not repeated after a minute")
	}
	answer.Invalid = &event.Problem{Condition: "ValidationSucceeded", Reason: event.InstanceProfileNotFound, Message: `Instance profile "nodes" not found`}
	s.handleMessage(s.newMessage(answer), "")
	if n := s.requestsWithin(31 * time.Second); n != 1 {
		t.Errorf("with a missing instance profile %d dry runs are requested within 31 seconds, want 1", n)
	}
	answer.Invalid = nil
	s.handleMessage(s.newMessage(answer), "")
	if !s.getNodeClass().Status.Conditions.IsTrue("Ready") {
		t.Fatalf("the class is not Ready: %+v", s.getNodeClass().Status.Conditions)
	}
	s.requestsWithin(time.Second)
	if n := s.requestsWithin(9 * time.Minute); n != 0 {
		t.Errorf("sent %d requests in nine minutes", n)
	}
	if n := s.requestsWithin(time.Minute + time.Second); n != 1 {
		t.Errorf("sent %d requests in the tenth minute", n)
	}
}

// Dry runs request dedicated instances if a NodePool of the class allows them.
func TestDryRunsOfDedicatedInstances(t *testing.T) {
	s := withDryRuns(t)
	class := s.addNodeClass("node")
	for name, of := range map[string]string{"dedicated": class.Name, "elsewhere": "another"} {
		pool := &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
		pool.Spec.Template.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: of}
		pool.Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
			{Key: karpenter.LabelInstanceTenancy, Operator: karpenter.NodeSelectorOpIn, Values: []string{"default", "dedicated"}},
		}
		if name == "elsewhere" {
			pool.Spec.Template.Spec.Requirements = nil
		}
		s.SeedObjects(pool)
	}
	s.reconcile()
	s.handleMessage(s.newMessage(event.NodeClassEnsured{
		Name: class.Name, UID: string(class.UID), Role: "node", Profile: s.lastEnsureRequest().Profile, Generation: class.Generation, Asked: s.now,
	}), "")
	s.handleMessage(s.resolvedMessage(s.getNodeClass()), "")
	s.reconcile()
	if ask := s.lastEnsureRequest(); len(ask.Class) == 0 || ask.Tenancy != "dedicated" {
		t.Errorf("requested tenancy %q and %d bytes of the class", ask.Tenancy, len(ask.Class))
	}
}

// Dry runs have an instance type that a NodePool of the class allows, by the latest catalogue; none without
// a catalogue.
func TestDryRunsHaveATypeOfTheNodePools(t *testing.T) {
	for _, readable := range []bool{true, false} {
		s := withDryRuns(t)
		cat, err := catalog.EmbeddedCatalogue("eu-west-1")
		if err != nil {
			t.Fatal(err)
		}
		if ref, err := blob.Put(t.Context(), s.blobs, s.now, catalog.Kind, cat); err != nil || readable && blob.SetLatest(t.Context(), s.blobs, ref) != nil {
			t.Fatalf("storing the catalogue: %v", err)
		}
		class := s.addNodeClass("node")
		pool := &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		pool.Spec.Template.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: class.Name}
		pool.Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
			{Key: karpenter.LabelInstanceFamily, Operator: karpenter.NodeSelectorOpIn, Values: []string{"c6i"}},
		}
		s.SeedObjects(pool)
		s.reconcile()
		s.handleMessage(s.newMessage(event.NodeClassEnsured{
			Name: class.Name, UID: string(class.UID), Role: "node", Profile: s.lastEnsureRequest().Profile, Generation: class.Generation, Asked: s.now,
		}), "")
		s.handleMessage(s.resolvedMessage(s.getNodeClass()), "")
		s.reconcile()
		want := ""
		if readable {
			want = "c6i.large"
		}
		if ask := s.lastEnsureRequest(); len(ask.Class) == 0 || ask.InstanceType != want {
			t.Errorf("requested the type %q with %d bytes of the class, want %q", ask.InstanceType, len(ask.Class), want)
		}
	}
}

// requestsWithin advances the time and counts the requests for node classes.
func (s *testCluster) requestsWithin(d time.Duration) int {
	s.t.Helper()
	s.advance(d)
	count := 0
	for _, e := range s.takeSent() {
		if e.Type == event.NodeClassEnsureType {
			count++
		}
	}
	return count
}

// A profile that the user created is used in dry runs and never changed.
func TestDryRunsWithUnmanagedProfile(t *testing.T) {
	s := withDryRuns(t)
	class := s.addNodeClass("")
	s.handleMessage(s.resolvedMessage(class), "")
	s.reconcile()
	if ask := s.lastEnsureRequest(); ask.Role != "" || ask.Profile != "mine" || len(ask.Class) == 0 {
		t.Fatalf("got request %+v", ask)
	}
	s.handleMessage(s.newMessage(event.NodeClassEnsured{
		Name: class.Name, UID: string(class.UID), Profile: "mine", Generation: class.Generation, Validated: true, Asked: s.now,
	}), "")
	if got := s.getNodeClass().Status; !got.Conditions.IsTrue("Ready") || got.InstanceProfile != "mine" {
		t.Errorf("got status %+v", got)
	}
}

// A class that switches from a role to its own profile requests the deletion of the managed
// profile until that is confirmed. A class that never had a role requests nothing.
func TestSwitchFromRoleToProfile(t *testing.T) {
	s := newTestCluster(t)
	class := s.addNodeClass("node")
	managed := class.Annotations["joist.sh/instance-profile"]
	if managed == "" {
		t.Fatal("the profile's name was not recorded before its creation was requested")
	}
	s.reconcile()
	if ask := s.lastEnsureRequest(); ask.Profile != managed || ask.Former != "" {
		t.Fatalf("got request %+v", ask)
	}
	s.ChangeObject(cluster.NodeClasses, cluster.Key{Name: "default"}, func(o cluster.Object) {
		mine := "mine"
		o.(*karpenter.EC2NodeClass).Spec.Role, o.(*karpenter.EC2NodeClass).Spec.InstanceProfile = "", &mine
		o.(*karpenter.EC2NodeClass).Generation++
	})
	s.reconcile()
	ask := s.lastEnsureRequest()
	if ask.Role != "" || ask.Profile != "mine" || ask.Former != managed || ask.Delete {
		t.Fatalf("got request %+v", ask)
	}
	answer := event.NodeClassEnsured{Name: "default", UID: string(class.UID), Profile: "mine", Generation: ask.Generation, Asked: s.now}
	s.handleMessage(s.newMessage(answer), "")
	if n := s.requestsWithin(16 * time.Minute); n != 1 {
		t.Errorf("sent %d deletion requests within 16 minutes while the profile exists", n)
	}
	answer.Retired, answer.Asked = true, s.now
	s.handleMessage(s.newMessage(answer), "")
	if got := s.getNodeClass(); got.Annotations["joist.sh/instance-profile"] != "" {
		t.Errorf("got annotations %v", got.Annotations)
	}
	if n := s.requestsWithin(time.Hour); n != 0 {
		t.Errorf("sent %d requests after the profile was deleted", n)
	}
}

// The hash is written with the resolved resources. Claims with a hash of another version adopt
// it, unless they have drifted.
func TestNodeClassHash(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 2)
	for i, name := range []string{"one-0", "one-1"} {
		s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: name}, func(o cluster.Object) {
			claim := o.(*karpenter.NodeClaim)
			claim.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "default"}
			claim.Labels[karpenter.LabelEC2NodeClass] = "default"
			claim.Annotations[karpenter.EC2NodeClassHashAnnotationKey] = "old"
			claim.Annotations[karpenter.EC2NodeClassHashVersionAnnotationKey] = "v5"
			if i == 1 {
				claim.Status.Conditions = claim.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeDrifted, Status: metav1.ConditionTrue, Reason: "Drifted"}, s.now)
			}
		})
	}
	class := s.addNodeClass("")
	answer := event.NodeClassResolved{Name: class.Name, UID: string(class.UID), Generation: class.Generation, Asked: s.now, Hash: "122", HashVersion: "v5"}
	s.handleMessage(s.newMessage(answer), "")
	if got := s.getNodeClass().Annotations; got[karpenter.EC2NodeClassHashAnnotationKey] != "" {
		t.Errorf("a hash of version v5 was written: %v", got)
	}
	s.reconcile()
	answer.Subnets = []event.Subnet{{ID: "subnet-1", Zone: "eu-west-1a"}}
	answer.Hash, answer.HashVersion, answer.Asked = "123", karpenter.EC2NodeClassHashVersion, s.now
	s.handleMessage(s.newMessage(answer), "")
	got := s.getNodeClass()
	if got.Annotations[karpenter.EC2NodeClassHashAnnotationKey] != "123" || got.Annotations[karpenter.EC2NodeClassHashVersionAnnotationKey] != "v6" {
		t.Errorf("got annotations %v", got.Annotations)
	}
	if len(got.Status.Subnets) != 1 {
		t.Errorf("the status was not written together with the hash: %+v", got.Status)
	}
	s.reconcile()
	for name, want := range map[string]string{"one-0": "123", "one-1": "old"} {
		a := s.getClaim(name).Annotations
		if a[karpenter.EC2NodeClassHashAnnotationKey] != want || a[karpenter.EC2NodeClassHashVersionAnnotationKey] != "v6" {
			t.Errorf("%s: got annotations %v", name, a)
		}
	}
	answer.Hash = ""
	version := s.Version()
	s.handleMessage(s.newMessage(answer), "")
	if s.Version() != version {
		t.Error("a reconcile with an unreadable cluster changed the hash")
	}
}

// An Event on the class reports why it is not deleted.
func TestWaitingOnNodeClaimTermination(t *testing.T) {
	s := newTestCluster(t)
	s.addNodeClass("")
	s.launchIntent("one", 7)
	for _, c := range []string{"one-0", "one-1", "one-2", "one-3", "one-4", "one-5", "one-6"} {
		s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: c}, func(o cluster.Object) {
			o.(*karpenter.NodeClaim).Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "default"}
		})
	}
	if err := s.Delete(t.Context(), cluster.NodeClasses, cluster.Key{Name: "default"}, ""); err != nil {
		t.Fatal(err)
	}
	s.reconcile()
	const want = "Waiting on NodeClaim termination for one-0, one-1, one-2, one-3, one-4 and 2 more"
	found := false
	for _, e := range s.Events() {
		found = found || e.Reason == "WaitingOnNodeClaimTermination" && e.Message == want
	}
	if !found {
		t.Errorf("got Events %+v", s.Events())
	}
	if s.getNodeClass() == nil {
		t.Error("the class was deleted before its claims")
	}
}

// SQS and EventBridge may deliver an older result after a newer one. It does not replace the newer one: nodes with the
// new image would count as drifted.
func TestLateResultIsDropped(t *testing.T) {
	for name, test := range map[string]struct {
		// older and newer are when the results were asked and read, in minutes.
		older, newer [2]int
		stale        fault.Kind
		image        string
	}{
		"read earlier":                             {[2]int{1, 1}, [2]int{2, 2}, fault.Stale, "ami-new"},
		"an older request was delivered again":     {[2]int{1, 3}, [2]int{2, 2}, "", "ami-old"},
		"the same message again":                   {[2]int{2, 2}, [2]int{2, 2}, "", "ami-old"},
		"an older release does not state the time": {[2]int{1, 0}, [2]int{2, 0}, fault.Stale, "ami-new"},
		"the clock of the first is far ahead":      {[2]int{5, 5}, [2]int{2, 600}, "", "ami-old"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestCluster(t)
			class, start := s.addNodeClass(""), s.now
			result := func(image string, minutes [2]int) event.Envelope {
				e := s.resolvedMessage(class)
				b, err := event.DecodeBody[event.NodeClassResolved](e)
				if err != nil {
					t.Fatal(err)
				}
				b.Asked, b.Images[0].ID = start.Add(time.Duration(minutes[0])*time.Minute), image
				if minutes[1] > 0 {
					b.Read = start.Add(time.Duration(minutes[1]) * time.Minute)
				}
				return s.newMessage(b)
			}
			s.now = start.Add(4 * time.Minute)
			s.handleMessage(result("ami-new", test.newer), "")
			s.now = start.Add(6 * time.Minute)
			s.handleMessage(result("ami-old", test.older), test.stale)
			if got := s.getNodeClass().Status.AMIs; len(got) != 1 || got[0].ID != test.image {
				t.Errorf("the class has the images %+v, want %s", got, test.image)
			}
		})
	}
}

// readsOnce fails every read of an EC2NodeClass after the first one.
type readsOnce struct {
	cluster.Client
	as    fault.Kind
	reads int
}

func (c *readsOnce) Get(ctx context.Context, kind cluster.Kind, key cluster.Key) (cluster.Object, error) {
	if kind == cluster.NodeClasses {
		if c.reads++; c.reads > 1 {
			return nil, fault.F("reading "+key.Name, c.as, "the class was read before")
		}
	}
	return c.Client.Get(ctx, kind, key)
}

// The class is read again after its hash is written. Until then it may have been deleted.
func TestNodeClassThatIsGoneAfterItsHash(t *testing.T) {
	for as, want := range map[fault.Kind]fault.Kind{fault.Missing: "", fault.Throttled: fault.Throttled} {
		s := newTestCluster(t)
		class := s.addNodeClass("")
		b, err := event.DecodeBody[event.NodeClassResolved](s.resolvedMessage(class))
		if err != nil {
			t.Fatal(err)
		}
		b.Hash, b.HashVersion = "1234", karpenter.EC2NodeClassHashVersion
		s.configureService(func(c *lifecycle.Config) { c.Client = &readsOnce{Client: c.Client, as: as} })
		s.handleMessage(s.newMessage(b), want)
		if got := s.getNodeClass(); got.Annotations[karpenter.EC2NodeClassHashAnnotationKey] != "1234" || len(got.Status.AMIs) > 0 {
			t.Errorf("%s: the class has the annotations %v and the images %v", as, got.Annotations, got.Status.AMIs)
		}
	}
}

// Resources that cannot be parsed are parked, and change nothing.
func TestInvalidResolvedImages(t *testing.T) {
	s := newTestCluster(t)
	class := s.addNodeClass("")
	version := s.Version()
	s.handleMessage(s.newMessage(event.NodeClassResolved{
		Name: class.Name, UID: string(class.UID), Generation: class.Generation, Asked: s.now, Images: []event.Image{{ID: "ami-1", Requirements: []byte(`{}`)}},
	}), fault.Poison)
	if s.Version() != version {
		t.Error("the class was written")
	}
}

// A message that says that the profile is deleted does not release a class that is not being deleted.
func TestProfileDeletedForExistingClass(t *testing.T) {
	s := newTestCluster(t)
	class := s.addNodeClass("node")
	s.handleMessage(s.newMessage(event.NodeClassEnsured{Name: class.Name, UID: string(class.UID), Role: "node", Profile: "managed", Deleted: true, Asked: s.now}), "")
	if !slices.Contains(s.getNodeClass().Finalizers, karpenter.EC2NodeClassTerminationFinalizer) {
		t.Error("the finalizer was removed")
	}
}

// A profile of the user has precedence over a role: Joist manages none for such a class.
func TestProfileHasPrecedenceOverRole(t *testing.T) {
	s := newTestCluster(t)
	s.addNodeClass("")
	s.ChangeObject(cluster.NodeClasses, cluster.Key{Name: "default"}, func(o cluster.Object) { o.(*karpenter.EC2NodeClass).Spec.Role = "node" })
	s.reconcile()
	if got := s.takeSent(); len(got) != 0 {
		t.Errorf("sent %v", typesAndSubjects(got))
	}
	if got := s.getNodeClass().Annotations[launchspec.ProfileAnnotation]; got != "" {
		t.Errorf("the class records the managed profile %s", got)
	}
}
