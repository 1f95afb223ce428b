package lifecycle_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// personalClaim returns a NodeClaim as a user writes it.
func personalClaim(name string, edits ...func(*karpenter.NodeClaim)) *karpenter.NodeClaim {
	out := &karpenter.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{karpenter.NodePoolLabelKey: "default", "team": "a"}},
		Spec: karpenter.NodeClaimSpec{
			NodeClassRef: planningtest.NewNodePool().Spec.Template.Spec.NodeClassRef,
			Requirements: []karpenter.NodeSelectorRequirementWithMinValues{
				{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"m6i.large", "m6i.xlarge"}},
				{Key: karpenter.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{karpenter.CapacityTypeOnDemand}},
			},
			Resources: karpenter.ResourceRequirements{Requests: cpu("1")},
		},
	}
	for _, edit := range edits {
		edit(out)
	}
	return out
}

// createClaim creates NodeClaims as a user.
func (s *testCluster) createClaim(claims ...*karpenter.NodeClaim) {
	s.t.Helper()
	for _, c := range claims {
		if _, err := s.ClientFor("person").Create(s.t.Context(), c); err != nil {
			s.t.Fatal(err)
		}
	}
}

// planUnplanned plans user-created NodeClaims, as the planner does, and returns the message with the edited plan.
func (s *testCluster) planUnplanned(snapshot planning.Snapshot, edits ...func(*planning.PlannedClaim)) event.Envelope {
	s.t.Helper()
	held := s.startBatch()
	batch := planning.Batch{Outbox: held.UID(), Seq: held.Seq, Snapshot: snapshot}
	for _, c := range s.listClaims() {
		if launchspec.WaitsUnplanned(c) {
			batch.Unplanned = append(batch.Unplanned, *c)
		}
	}
	built, err := launchspec.Build(batch, held.Batch, planning.Result{}, planningtest.NewCatalogue())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, edit := range edits {
		edit(&built.Plan.Intents[0].Claims[0])
	}
	return s.storeBuilt(held, built)
}

// readIntent reads the intent of a claim.
func (s *testCluster) readIntent(name string) launchspec.Intent {
	s.t.Helper()
	ref, err := launchspec.ParseRef(s.getClaim(name).Annotations[launchspec.IntentRefAnnotation])
	if err != nil {
		s.t.Fatal(err)
	}
	intent, err := blob.Get[launchspec.Intent](s.t.Context(), s.blobs, ref)
	if err != nil {
		s.t.Fatal(err)
	}
	return intent
}

// A NodeClaim that a user creates is launched as specified, and keeps its labels and annotations.
func TestUnplannedClaimIsLaunched(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(*karpenter.NodeClaim)
		pool string
	}{
		{"in a NodePool", func(*karpenter.NodeClaim) {}, "default"},
		{"without a NodePool", func(c *karpenter.NodeClaim) { delete(c.Labels, karpenter.NodePoolLabelKey) }, ""},
		{"the instance type as a label", func(c *karpenter.NodeClaim) {
			c.Labels[corev1.LabelInstanceTypeStable], c.Spec.Requirements = "m6i.large", c.Spec.Requirements[1:]
		}, "default"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch := planningtest.NewBatch()
			s, _ := withCatalogue(t, batch)
			s.createClaim(personalClaim("mine", tt.edit))
			made := s.planUnplanned(batch.Snapshot)
			s.reconcile() // It gets its finalizer, and the label of its node class.
			s.handleMessage(made, "")
			sent := s.takeSent()
			if len(launchTexts(sent)) != 1 {
				t.Fatalf("sent %v; the claim has %v, Events %v", typesAndSubjects(sent), s.getClaim("mine").Status.Conditions, s.Events())
			}
			if got := s.getClaim("mine").Labels[corev1.LabelInstanceTypeStable]; got != "" {
				t.Errorf("before the launch the claim has the instance type %s", got)
			}
			intent := s.readIntent("mine")
			if intent.Fleet.Count != 1 || intent.Fleet.Token != intent.ID || intent.NodePool != tt.pool || intent.Claims[0] != "mine" {
				t.Errorf("got launch %+v", intent.Fleet)
			}
			for _, config := range intent.Fleet.Configs {
				for _, o := range config.Overrides {
					if !slices.Contains([]string{"m6i.large", "m6i.xlarge"}, o.InstanceType) {
						t.Errorf("the launch tries %s", o.InstanceType)
					}
				}
			}
			if held := s.readOutbox(); held.State != outbox.Done || !held.ListsClaim("mine") || held.Seq != 1 {
				t.Errorf("got outbox %+v", held.Outbox)
			}
			instance := event.Launched{InstanceID: "i-1", ImageID: "ami-1", Offering: event.Offering{
				InstanceType: "m6i.large", Zone: intent.Fleet.Configs[0].Overrides[0].Zone, CapacityType: intent.Fleet.CapacityType,
			}}
			s.handleMessage(s.newMessage(event.LaunchSettled{Intent: intent.ID, Wanted: 1, Spent: true, Instances: []event.Launched{instance}}), "")
			s.advance(2 * time.Second)
			c := s.getClaim("mine")
			labels := fmt.Sprint(c.Labels[corev1.LabelInstanceTypeStable], " ", c.Labels["team"], " ", c.Labels[karpenter.LabelEC2NodeClass])
			if id, _ := c.Instance(); id.InstanceID != "i-1" || labels != "m6i.large a "+c.Spec.NodeClassRef.Name || !slices.Contains(c.Finalizers, karpenter.TerminationFinalizer) {
				t.Errorf("the claim has the instance %s and the labels %v", id, c.Labels)
			}
		})
	}
}

// A planned claim may have no labels, where no catalogue verifies the plan.
func TestUnplannedClaimKeepsItsLabelsIfThePlanHasNone(t *testing.T) {
	s := newTestCluster(t)
	s.createClaim(personalClaim("mine"))
	made := s.planUnplanned(planningtest.NewBatch().Snapshot, func(c *planning.PlannedClaim) { c.Object.Labels = nil })
	s.reconcile()
	s.handleMessage(made, "")
	if c := s.getClaim("mine"); c.Annotations[launchspec.IntentRefAnnotation] == "" || c.Labels["team"] != "a" {
		t.Errorf("the claim has the annotations %v and the labels %v", c.Annotations, c.Labels)
	}
}

// claimGet runs a function before the first claim is read.
type claimGet struct {
	cluster.Client
	before func()
}

func (c *claimGet) Get(ctx context.Context, kind cluster.Kind, key cluster.Key) (cluster.Object, error) {
	if before := c.before; before != nil && kind == cluster.NodeClaims {
		c.before = nil
		before()
	}
	return c.Client.Get(ctx, kind, key)
}

// A NodeClaim that its user deletes after it was admitted, and before its launch is written on it, is not launched.
func TestUnplannedClaimIsDeletedMeanwhile(t *testing.T) {
	batch := planningtest.NewBatch()
	s, configure := withCatalogue(t, batch)
	s.createClaim(personalClaim("mine"))
	made := s.planUnplanned(batch.Snapshot)
	s.reconcile() // It gets its finalizer.
	deleted := false
	s.startService(&claimGet{s.ClientFor("lifecycle"), func() {
		deleted = true
		if err := s.ClientFor("person").Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "mine"}, ""); err != nil {
			t.Fatal(err)
		}
	}}, configure)
	s.handleMessage(made, "")
	if c := s.getClaim("mine"); !deleted || c.Annotations[launchspec.IntentRefAnnotation] != "" {
		t.Errorf("the claim was deleted: %t, and the launch was written on it: %v", deleted, c.Annotations)
	}
	if sent := launchTexts(s.takeSent()); len(sent) != 0 {
		t.Errorf("sent %v", sent)
	}
}

// A NodeClaim that cannot be launched reports why, and is deleted after its timeout.
func TestUnplannedClaimReportsRefusal(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(*karpenter.NodeClaim)
		why  string
	}{
		{"requests too large", func(c *karpenter.NodeClaim) { c.Spec.Resources.Requests = cpu("900") }, "large enough"},
		{"unknown instance type", func(c *karpenter.NodeClaim) { c.Spec.Requirements[0].Values = []string{"m99.large"} }, "no instance type has all of the required labels"},
		{"unknown zone", func(c *karpenter.NodeClaim) {
			c.Spec.Requirements = append(c.Spec.Requirements, karpenter.NodeSelectorRequirementWithMinValues{
				Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"us-east-1a"},
			})
		}, "the required topology.kubernetes.io/zone"},
		{"no node class", func(c *karpenter.NodeClaim) {
			c.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "none"}
		}, `EC2NodeClass "none" does not exist`},
		{"no NodePool", func(c *karpenter.NodeClaim) { c.Labels[karpenter.NodePoolLabelKey] = "none" }, "the NodePool does not exist"},
		{"limit exceeded", func(c *karpenter.NodeClaim) { c.Spec.Requirements[0].Values = []string{"m6i.32xlarge"} }, "limit cpu=100"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch := planningtest.NewBatch()
			batch.Snapshot.NodePools[0].Spec.Limits = karpenter.Limits(cpu("100"))
			s, _ := withCatalogue(t, batch)
			s.createClaim(personalClaim("mine", tt.edit))
			s.handleMessage(s.planUnplanned(batch.Snapshot), "")
			s.advance(2 * time.Second)
			launched, _ := s.getClaim("mine").Status.Conditions.Get(karpenter.ConditionTypeLaunched)
			if !strings.Contains(launched.Message, tt.why) || launched.Reason != "LaunchFailed" {
				t.Errorf("got reason %s: %s", launched.Reason, launched.Message)
			}
			if !slices.ContainsFunc(s.Events(), func(e cluster.Event) bool { return e.Reason == "LaunchFailed" && strings.Contains(e.Message, tt.why) }) {
				t.Errorf("got Events %v", s.Events())
			}
			s.advance(nodeclaim.LaunchTimeout + time.Second)
			if c := s.getClaim("mine"); c != nil || len(launchTexts(s.takeSent())) != 0 {
				t.Errorf("the claim was not deleted, or was launched: %+v", c)
			}
		})
	}
}

// Two NodeClaims that a user creates together count against one limit. Only the one that is not launched has an Event.
func TestUnplannedClaimsShareLimits(t *testing.T) {
	batch := planningtest.NewBatch()
	batch.Snapshot.NodePools[0].Spec.Limits = karpenter.Limits(cpu("3"))
	s, _ := withCatalogue(t, batch)
	large := func(c *karpenter.NodeClaim) { c.Spec.Requirements[0].Values = []string{"m6i.large"} }
	s.createClaim(personalClaim("a", large), personalClaim("b", large))
	s.handleMessage(s.planUnplanned(batch.Snapshot), "")
	if sent := launchTexts(s.takeSent()); len(sent) != 1 {
		t.Errorf("sent %v", sent)
	}
	if failed := s.eventsWithReason("LaunchFailed"); len(failed) != 1 {
		t.Errorf("got the Events %q", failed)
	}
}

// After a crash at any write, the redelivered or the next plan launches the claim once.
func TestUnplannedClaimAfterCrash(t *testing.T) {
	for n := range 8 {
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprintf("crash at write %d, message redelivered %t", n, again), func(t *testing.T) {
				batch := planningtest.NewBatch()
				s, configure := withCatalogue(t, batch)
				s.createClaim(personalClaim("mine"))
				made := s.planUnplanned(batch.Snapshot)
				s.startService(&crashingClient{Client: s.ClientFor("lifecycle"), writesLeft: n}, configure)
				s.cache.DeliverAll()
				_ = s.svc.Handle(t.Context(), made)
				s.startService(s.ClientFor("lifecycle"), configure)
				s.advance(2 * time.Second)
				if again {
					s.handleMessage(made, "")
				} else if s.getClaim("mine").Annotations[launchspec.AdmittedAnnotation] == "" {
					s.handleMessage(s.planUnplanned(batch.Snapshot), "")
				}
				s.advance(2 * time.Second)
				intents := map[string]bool{}
				for _, e := range s.takeSent() {
					if e.Type == event.LaunchRequestedType {
						intents[e.Subject] = true
					}
				}
				if len(intents) != 1 || !intents["intent/"+s.readIntent("mine").ID] {
					t.Errorf("sent %v", intents)
				}
			})
		}
	}
}

// A compromised planner can launch for a user's NodeClaim only the instances that the claim specifies.
func TestForgedUnplannedLaunchIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name  string
		forge func(*launchspec.Built)
	}{
		{"other instance type", func(b *launchspec.Built) { b.Intents[0].Fleet.Configs[0].Overrides[0].InstanceType = "m6i.2xlarge" }},
		{"other user data", func(b *launchspec.Built) { b.Intents[0].Templates[0].UserData = "ZXZpbA==" }},
		{"other claim's name", func(b *launchspec.Built) { b.Intents[0].Claims[0] = "yours" }},
		{"no ceiling", func(b *launchspec.Built) { b.Plan.Intents[0].Claims[0].Ceiling = nil }},
		{"unknown UID", func(b *launchspec.Built) { b.Plan.Intents[0].Claims[0].Object.UID = "none" }},
		{"no UID", func(b *launchspec.Built) { b.Plan.Intents[0].Claims[0].Object.UID = "" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch := planningtest.NewBatch()
			s, _ := withCatalogue(t, batch)
			s.createClaim(personalClaim("mine"))
			held := s.startBatch()
			batch.Outbox, batch.Seq, batch.Unplanned = held.UID(), held.Seq, []karpenter.NodeClaim{*s.getClaim("mine")}
			built, err := launchspec.Build(batch, held.Batch, planning.Result{}, planningtest.NewCatalogue())
			if err != nil {
				t.Fatal(err)
			}
			tt.forge(&built)
			s.handleMessage(s.storeBuilt(held, built), "")
			if sent := launchTexts(s.takeSent()); len(sent) != 0 || s.getClaim("mine").DeletionTimestamp != nil {
				t.Errorf("sent %v", sent)
			}
		})
	}
}
