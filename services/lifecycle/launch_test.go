package lifecycle_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// failingClient fails to write one claim.
type failingClient struct {
	cluster.Client
	name string
	kind fault.Kind
}

func (p failingClient) Update(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	if o.GetName() == p.name {
		return nil, fault.F("updating "+p.name, p.kind, "an admission webhook denied it")
	}
	return p.Client.Update(ctx, o)
}

func (p failingClient) UpdateStatus(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	if o.GetName() == p.name {
		return nil, fault.F("updating the status of "+p.name, p.kind, "an admission webhook denied it")
	}
	return p.Client.UpdateStatus(ctx, o)
}

// A claim that cannot be written does not stop the launch of others.
func TestLaunchContinuesAfterFailedAdmission(t *testing.T) {
	s := newTestCluster(t)
	held := s.startBatch()
	plan := s.planMessage(held, s.planIntent(held, "one", 1), s.planIntent(held, "two", 1))
	s.startService(failingClient{s.ClientFor("lifecycle"), "one-0", fault.Denied})
	if err := s.svc.Handle(t.Context(), plan); !fault.Is(err, fault.Denied) {
		t.Errorf("the error was not returned: %v", err)
	}
	if diff := cmp.Diff([]string{"launch.requested.v1 intent/two"}, typesAndSubjects(s.takeSent())); diff != "" {
		t.Error(diff)
	}
}

// An invalid request does not stop others.
func TestLaunchContinuesAfterInvalidRequest(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 1)
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "one-0"}, func(o cluster.Object) {
		o.GetAnnotations()[launchspec.ClaimsAnnotation] = "0"
	})
	s.cache.DeliverAll()
	held := s.startBatch()
	s.now = s.now.Add(31 * time.Second)
	if err := s.svc.Handle(t.Context(), s.planMessage(held, s.planIntent(held, "two", 1))); !fault.Is(err, fault.Bug) {
		t.Errorf("the error was not returned: %v", err)
	}
	if diff := cmp.Diff([]string{"launch.requested.v1 intent/two"}, typesAndSubjects(s.takeSent())); diff != "" {
		t.Error(diff)
	}
}

// A claim that cannot be bound does not stop the binding of other instances, and no claim is
// deleted before all instances are bound.
func TestBindingContinuesAfterFailedWrite(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 3)
	body := launchSettled("one", 3, "i-1", "i-2")
	body.Instances[0].InstanceType = "p5.48xlarge"
	s.handleMessage(s.newMessage(body), fault.Bug)
	if diff := cmp.Diff(map[string]string{"one-0": "", "one-1": "i-2", "one-2": ""}, s.boundInstances()); diff != "" {
		t.Error(diff)
	}
	for _, c := range s.listClaims() {
		if c.DeletionTimestamp != nil {
			t.Errorf("deleted %s as refused, although an instance may be bound to it", c.Name)
		}
	}
	if got := s.unavailableOfferings(); len(got) != 1 {
		t.Errorf("the unavailable offering is not recorded if a claim cannot be bound: %v", got)
	}
}

// unreadableClient fails to read one claim.
type unreadableClient struct {
	cluster.Client
	name string
}

func (u unreadableClient) Get(ctx context.Context, kind cluster.Kind, key cluster.Key) (cluster.Object, error) {
	if key.Name == u.name {
		return nil, fault.F("reading "+u.name, fault.Denied, "access denied")
	}
	return u.Client.Get(ctx, kind, key)
}

// A claim that cannot be read individually does not stop the admission and launch of a plan's
// claims in a reconcile, because they are listed together.
func TestLaunchContinuesAfterUnreadableClaim(t *testing.T) {
	s := newTestCluster(t)
	held := s.startBatch()
	plan := s.planMessage(held, s.planIntent(held, "one", 1), s.planIntent(held, "two", 1))
	s.crashAtWrite(4, false) // The swap, two claims and the second swap are written.
	if err := s.svc.Handle(t.Context(), plan); err == nil {
		t.Fatal("Handle returned no error")
	}
	s.startService(unreadableClient{s.ClientFor("lifecycle"), "one-0"})
	s.cache.DeliverAll()
	if err := s.svc.Step(t.Context()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"launch.requested.v1 intent/one", "launch.requested.v1 intent/two"}, typesAndSubjects(s.takeSent())); diff != "" {
		t.Error(diff)
	}
}

func TestRefusalContinuesAfterFailedWrite(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 2)
	s.startService(failingClient{s.ClientFor("lifecycle"), "one-0", fault.Denied})
	s.handleMessage(s.newMessage(launchSettled("one", 2)), fault.Denied)
	s.restartService()
	s.reconcile()
	if c := s.getClaim("one-0"); c == nil || c.DeletionTimestamp != nil {
		t.Error("a claim was deleted before its status reported the reason")
	}
	if c := s.getClaim("one-1"); c != nil {
		t.Errorf("the other claim was not deleted: %+v", c.ObjectMeta)
	}
}

// InsufficientCapacityError is reported only for insufficient capacity, because another type or
// zone does not help with other errors.
func TestRefusalReasons(t *testing.T) {
	short := event.Refusal{Code: "InsufficientInstanceCapacity", Message: "no m6i.large", Blamed: []event.Offering{offering}}
	full := event.Refusal{Code: "InsufficientFreeAddressesInSubnet", Subnet: "subnet-1"}
	silent := event.Refusal{Code: "Unfulfilled"}
	denied := event.Refusal{Code: "UnauthorizedOperation", Message: "ask your administrator"}
	for _, test := range []struct {
		name     string
		refusals []event.Refusal
		want     string
	}{
		{"a shortage", []event.Refusal{short}, "InsufficientCapacityError"},
		{"no free addresses", []event.Refusal{full}, "InsufficientCapacityError"},
		{"no error of EC2", []event.Refusal{silent, short}, "InsufficientCapacityError"},
		{"a denial", []event.Refusal{denied}, "LaunchFailed"},
		{"a denial and insufficient capacity", []event.Refusal{short, denied}, "LaunchFailed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newTestCluster(t)
			s.launchIntent("one", 1)
			s.handleMessage(s.newMessage(event.LaunchSettled{Intent: "one", Wanted: 1, Refusals: test.refusals, Spent: true}), "")
			var got []string
			for _, e := range s.Events() {
				if e.Kind == cluster.NodeClaims {
					got = append(got, e.Reason)
				}
			}
			if diff := cmp.Diff([]string{test.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A claim that waits until its request has expired reports the launch error in the meantime.
func TestLaunchFailedCondition(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 1)
	denied := event.LaunchSettled{Intent: "one", Wanted: 1, Refusals: []event.Refusal{{Code: "UnauthorizedOperation", Message: "no"}}}
	s.handleMessage(s.newMessage(denied), "")
	s.reconcile()
	launched, _ := s.getClaim("one-0").Status.Conditions.Get(karpenter.ConditionTypeLaunched)
	if launched.Reason != "LaunchFailed" || launched.Message != "launch refused: UnauthorizedOperation no" || launched.Status != "Unknown" {
		t.Errorf("got condition %+v", launched)
	}
	if !slices.ContainsFunc(s.Events(), func(e cluster.Event) bool { return e.Reason == "LaunchFailed" }) {
		t.Errorf("no Event has the reason LaunchFailed: %v", s.Events())
	}
}

// Claims whose node class is no longer ready are deleted before the launch, so that their pods
// are planned again.
func TestNodeClassNotReady(t *testing.T) {
	for _, test := range []struct {
		name  string
		ready metav1.ConditionStatus
		want  []string
	}{
		{"ready", metav1.ConditionTrue, []string{"launch.requested.v1 intent/one"}},
		{"without conditions", metav1.ConditionUnknown, []string{"launch.requested.v1 intent/one"}},
		{"not ready", metav1.ConditionFalse, nil},
		{"gone", "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newTestCluster(t)
			if test.ready != "" {
				class := &karpenter.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
				class.Status.Conditions = class.Status.Conditions.With(metav1.Condition{
					Type: karpenter.ConditionTypeReady, Status: test.ready, Reason: "Test", Message: "no subnets",
				}, s.now)
				s.SeedObjects(class)
			}
			held := s.startBatch()
			intent := s.planIntent(held, "one", 1)
			intent.Claims[0].Object.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "default"}
			s.handleMessage(s.planMessage(held, intent), "")
			if diff := cmp.Diff(test.want, launchTexts(s.takeSent())); diff != "" {
				t.Error(diff)
			}
			s.reconcile()
			s.reconcile()
			recorded := slices.ContainsFunc(s.Events(), func(e cluster.Event) bool { return e.Reason == "NodeClassNotReady" })
			if gone := s.getClaim("one-0") == nil; gone != (test.want == nil) || recorded != gone {
				t.Errorf("claim deleted: %t, Event published: %t", gone, recorded)
			}
		})
	}
}

// launchTexts returns the launch requests.
func launchTexts(sent []event.Envelope) []string {
	return slices.DeleteFunc(typesAndSubjects(sent), func(w string) bool { return !strings.HasPrefix(w, "launch.") })
}

// missingQueue is a launcher's queue that does not exist.
type missingQueue struct{}

func (missingQueue) Send(context.Context, ...queue.Outgoing) error {
	return fault.E("sending to the launcher", fault.Missing, nil)
}

// A missing launcher queue is reported by each sender. It does not count as a missing object.
func TestMissingQueueIsReported(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	held := s.startBatch()
	lost := func(c *lifecycle.Config) { c.Launcher = missingQueue{} }
	s.startService(s.ClientFor("lifecycle"), lost)
	s.handleMessage(s.planMessage(held, s.planIntent(held, "two", 1)), fault.Missing)
	s.handleMessage(s.inventoryMessage(s.now, listedInstance("i-1", "one", "one-0"), listedInstance("i-9", "lost", "")), fault.Missing)
	if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "one-0"}, ""); err != nil {
		t.Fatal(err)
	}
	reported := map[string]bool{}
	for range 30 {
		s.now = s.now.Add(time.Second)
		s.cache.DeliverAll()
		err := s.svc.Step(t.Context())
		for _, sent := range []string{"launch.requested.v1", "terminate.requested.v1"} {
			reported[sent] = reported[sent] || err != nil && strings.Contains(err.Error(), "sending "+sent)
		}
	}
	if !reported["launch.requested.v1"] || !reported["terminate.requested.v1"] {
		t.Errorf("reconciles returned errors for %v", reported)
	}
}

// The claims that a plan created are launched without another list of all claims, also if the watch is late. A claim that
// was changed since is launched by the next reconcile, which lists them.
func TestCreatedClaimsAreLaunchedWithoutList(t *testing.T) {
	for _, test := range []struct {
		name    string
		changed bool
		want    []string
	}{
		{"unchanged", false, []string{"launch.requested.v1 intent/one", "launch.requested.v1 intent/two"}},
		{"changed", true, []string{"launch.requested.v1 intent/two"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newTestCluster(t)
			held := s.startBatch()
			plan := s.planMessage(held, s.planIntent(held, "one", 2), s.planIntent(held, "two", 1))
			client := &countingClient{Client: s.ClientFor("lifecycle")}
			s.startService(client)
			if test.changed {
				s.startService(&editAfterCreate{client, s})
			}
			if err := s.svc.Handle(t.Context(), plan); err != nil {
				t.Fatal(err)
			}
			if client.lists != 1 {
				t.Errorf("%d lists of all NodeClaims, want one for the admission", client.lists)
			}
			if diff := cmp.Diff(test.want, typesAndSubjects(s.takeSent())); diff != "" {
				t.Error(diff)
			}
			s.advance(2 * time.Second)
			if sent := typesAndSubjects(s.takeSent()); test.changed != (len(sent) == 1) {
				t.Errorf("the next reconciles requested %v", sent)
			}
		})
	}
}

// editAfterCreate lets another client change the claim one-0 right after its creation.
type editAfterCreate struct {
	*countingClient
	s *testCluster
}

func (c *editAfterCreate) Create(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	stored, err := c.countingClient.Create(ctx, o)
	if err == nil && o.GetName() == "one-0" {
		c.s.ChangeObject(cluster.NodeClaims, cluster.KeyOf(o), func(o cluster.Object) { o.GetAnnotations()["edited"] = "true" })
	}
	return stored, err
}
