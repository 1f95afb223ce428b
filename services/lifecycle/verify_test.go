package lifecycle_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// withCatalogue returns a cluster with the catalogue and the node class of the batch, and a
// matching configuration.
func withCatalogue(t *testing.T, batch planning.Batch) (*testCluster, func(*lifecycle.Config)) {
	t.Helper()
	s := newTestCluster(t)
	configure := s.storeCatalogue(batch)
	s.startService(s.ClientFor("lifecycle"), configure)
	return s, configure
}

// storeCatalogue stores the catalogue, the NodePool and the node class of the batch, and returns a
// matching configuration.
func (s *testCluster) storeCatalogue(batch planning.Batch) func(*lifecycle.Config) {
	s.t.Helper()
	ref, err := blob.Put(s.t.Context(), s.blobs, s.now, catalog.Kind, planningtest.NewCatalogue())
	if err == nil {
		err = blob.SetLatest(s.t.Context(), s.blobs, ref)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
		pool := o.(*karpenter.NodePool)
		pool.Spec, pool.Status = batch.Snapshot.NodePools[0].Spec, batch.Snapshot.NodePools[0].Status
	})
	s.SeedObjects(&batch.Snapshot.NodeClasses[0])
	return func(c *lifecycle.Config) {
		c.Settings, c.Catalogues = batch.Snapshot.Settings, &blob.DocumentCache[catalog.Catalogue]{}
	}
}

// newVerifyingCluster returns such a cluster, its outbox, and the planner's result for a batch with these nodes.
func newVerifyingCluster(t *testing.T, nodes ...planning.Node) (*testCluster, outbox.Stored, launchspec.Built) {
	t.Helper()
	cat, batch := planningtest.NewCatalogue(), planningtest.NewBatch(planningtest.NewPods("inflate", 5, "1", "0"))
	batch.Snapshot.Nodes = nodes
	s, _ := withCatalogue(t, batch)
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
	return s, held, built
}

// storeBuilt stores the documents of a plan and returns its message.
func (s *testCluster) storeBuilt(held outbox.Stored, built launchspec.Built) event.Envelope {
	s.t.Helper()
	for i, intent := range built.Intents {
		ref, err := blob.Put(s.t.Context(), s.blobs, s.now, launchspec.Kind, intent)
		if err != nil {
			s.t.Fatal(err)
		}
		built.Plan.Intents[i].Ref = ref
		for k := range built.Plan.Intents[i].Claims {
			built.Plan.Intents[i].Claims[k].Object.Annotations[launchspec.IntentRefAnnotation] = launchspec.FormatRef(ref)
		}
	}
	return s.planMadeMessage(held, built.Plan)
}

// The planner's result is admitted. A forged intent is rejected, and the NodePool reports why.
// Limits count the resources in the catalogue.
func TestForgedLaunchesAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name  string
		forge func(*launchspec.Built)
		why   string
	}{
		{"nothing", func(*launchspec.Built) {}, ""},
		{"other user data", func(b *launchspec.Built) { b.Intents[0].Templates[0].UserData = "ZXZpbA==" }, "launch template"},
		{"a subnet", func(b *launchspec.Built) { b.Intents[0].Fleet.Configs[0].Overrides[0].SubnetID = "subnet-evil" }, "subnet-evil"},
		{"no ceiling", func(b *launchspec.Built) { b.Plan.Intents[0].Claims[0].Ceiling = nil }, "usage for limits"},
		{"another NodePool's label", func(b *launchspec.Built) {
			b.Plan.Intents[0].Claims[0].Object.Labels[karpenter.NodePoolLabelKey] = "other"
		}, "its labels differ"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, held, built := newVerifyingCluster(t)
			tt.forge(&built)
			s.handleMessage(s.storeBuilt(held, built), "")
			requests := launchTexts(s.takeSent())
			if forged := slices.Contains(requests, "launch.requested.v1 intent/"+built.Intents[0].ID); forged != (tt.why == "") {
				t.Fatalf("sent %v", requests)
			}
			recorded := slices.ContainsFunc(s.Events(), func(e cluster.Event) bool {
				return e.Reason == "LaunchNotVerified" && strings.Contains(e.Message, tt.why)
			})
			if recorded != (tt.why != "") {
				t.Errorf("the NodePool has the Events %v", s.Events())
			}
			if s.readOutbox().State != outbox.Done {
				t.Errorf("got outbox state %s", s.readOutbox().State)
			}
		})
	}
}

// Nodes report half of the memory that the catalogue has, because their kernel reserves the rest. Plans count what nodes report, and are
// admitted while such a node exists.
func TestLaunchWithLittleReportedMemory(t *testing.T) {
	class := planningtest.NewNodeClass()
	var reports []planning.Node
	for _, one := range planningtest.NewCatalogue().Types {
		image, _ := instancetypes.FindImage(catalog.TypeLabels(one), class.Status.AMIs)
		memory := resource.NewQuantity(one.MemoryMiB<<19, resource.BinarySI)
		reports = append(reports, planning.Node{
			Name: "node-" + one.Name, Initialized: true, Image: image.ID, Labels: map[string]string{corev1.LabelInstanceTypeStable: one.Name},
			Capacity: corev1.ResourceList{corev1.ResourceMemory: *memory},
		})
	}
	for _, exist := range []bool{true, false} {
		s, held, built := newVerifyingCluster(t, reports...)
		for _, report := range reports {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: report.Name, Labels: report.Labels}}
			node.Spec.ProviderID, node.Status.Capacity = "aws:///eu-west-1a/i-"+report.Name, report.Capacity
			claim := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: report.Name, Labels: map[string]string{karpenter.NodePoolLabelKey: "other"}}}
			claim.Status.ProviderID, claim.Status.ImageID = node.Spec.ProviderID, report.Image
			claim.Status.Conditions = karpenter.Conditions{{Type: karpenter.ConditionTypeInitialized, Status: metav1.ConditionTrue}}
			if exist {
				s.SeedObjects(node, claim)
			}
		}
		s.cache.DeliverAll()
		s.handleMessage(s.storeBuilt(held, built), "")
		if requests := launchTexts(s.takeSent()); slices.Contains(requests, "launch.requested.v1 intent/"+built.Intents[0].ID) != exist {
			t.Errorf("with nodes that report the memory: %t: sent %v, Events %+v", exist, requests, s.Events())
		}
	}
}

// A plan for a NodePool of EKS Auto Mode is refused, although an EC2NodeClass has the name of its node class: both providers would
// launch instances for the NodeClaims, and Joist would never register its own.
func TestPlansForOtherProvidersAreRefused(t *testing.T) {
	for _, verifies := range []bool{true, false} {
		cat, batch := planningtest.NewCatalogue(), planningtest.NewBatch(planningtest.NewPods("inflate", 2, "1", "0"))
		result := solver.Solve(batch, cat)
		batch.Snapshot.NodePools[0].Spec.Template.Spec.NodeClassRef = autoModeClass
		s, _ := withCatalogue(t, batch)
		if !verifies {
			s.configureService(func(c *lifecycle.Config) { c.Catalogues = nil })
		}
		held := s.startBatch()
		batch.Outbox, batch.Seq = held.UID(), held.Seq
		built, err := launchspec.Build(batch, held.Batch, result, cat)
		if err != nil {
			t.Fatal(err)
		}
		s.handleMessage(s.storeBuilt(held, built), "")
		if claims, sent := s.listClaims(), launchTexts(s.takeSent()); len(claims) > 0 || len(sent) > 0 {
			t.Errorf("verifies launches %t: %d NodeClaims were created, sent %v", verifies, len(claims), sent)
		}
	}
}
