package lifecycle

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// TestReplacementsOnAPIServer applies proposals for two claims on a real API server, while kubelets
// and people write the same objects: one whose replacement becomes ready, and one whose
// replacement is rejected and cannot even be deleted.
func TestReplacementsOnAPIServer(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs a control plane")
	}
	t.Parallel()
	s := newSite(t)
	s.createPoolAndClass("moved")
	t.Run("concurrently", func(t *testing.T) {
		t.Run("the replacement becomes ready", func(t *testing.T) {
			t.Parallel()
			replacedByOne(s.in(t))
		})
		t.Run("the replacement is refused", func(t *testing.T) {
			t.Parallel()
			rolledBack(s.in(t))
		})
	})
}

// createPoolAndClass creates the pool and the class of the replaced machines.
func (s *site) createPoolAndClass(name string) {
	s.Helper()
	profile := "profile"
	class := &karpenter.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	class.Spec.InstanceProfile = &profile
	class.Spec.SubnetSelectorTerms = []karpenter.SubnetSelectorTerm{{ID: "subnet-1"}}
	class.Spec.SecurityGroupSelectorTerms = []karpenter.SecurityGroupSelectorTerm{{ID: "sg-1"}}
	class.Spec.AMISelectorTerms = []karpenter.AMISelectorTerm{{Alias: "al2023@latest"}}
	_, err := s.admin.Create(s.Context(), class)
	s.check(err)
	pool := &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pool.Spec.Template.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: name}
	pool.Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{}
	pool.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "4"}}
	_, err = s.admin.Create(s.Context(), pool)
	s.check(err)
}

// newReplaceableNode returns a ready machine of that pool with one pod.
func (s *site) newReplaceableNode(name string) machine {
	s.Helper()
	m := s.machine(name, func(c *karpenter.NodeClaim) {
		c.Labels[karpenter.NodePoolLabelKey] = "moved"
		c.Spec.NodeClassRef.Name = "moved"
	})
	m.initializeNode()
	m.pod(name)
	return m
}

func (m machine) initializeNode() {
	m.Helper()
	at := time.Now().UTC().Format(time.RFC3339)
	beat := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","lastHeartbeatTime":%q,"lastTransitionTime":%q}]}}`, at, at)
	_, err := m.kube.CoreV1().Nodes().Patch(m.Context(), m.name, types.StrategicMergePatchType, beat, metav1.PatchOptions{}, "status")
	m.check(err)
}

// requireDisrupted writes the machine's node and claim repeatedly until the end of the test, as
// kubelets and people do.
func (m machine) requireDisrupted() {
	ctx, stop := context.WithCancel(context.Background())
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			mark := fmt.Appendf(nil, `{"metadata":{"annotations":{"theirs":"%d"}}}`, i)
			_, _ = m.kube.CoreV1().Nodes().Patch(ctx, m.name, types.MergePatchType, mark, metav1.PatchOptions{})
			if c, err := cluster.Get[*karpenter.NodeClaim](ctx, m.admin, cluster.NodeClaims, cluster.Key{Name: m.name}); err == nil {
				metav1.SetMetaDataAnnotation(&c.ObjectMeta, "theirs", strconv.Itoa(i))
				_, _ = m.admin.Update(ctx, c)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	m.Cleanup(func() { stop(); writing.Wait() })
}

// intended stores the intent of one claim, and returns its reference and the claim's
// annotations for it.
func intended(t *testing.T, blobs blob.Store, pool, name string) (event.Ref, map[string]string) {
	t.Helper()
	capacity := corev1.ResourceList{"cpu": resource.MustParse("2")}
	ref, err := blob.Put(t.Context(), blobs, time.Now(), launchspec.Kind, launchspec.Intent{
		ID: name, Cluster: "life", NodePool: pool, Claims: []string{name},
		Fleet: cloud.FleetRequest{Token: name, Count: 1, CapacityType: cloud.Spot},
		Types: map[string]launchspec.TypeFacts{"m6i.large": {Capacity: capacity, Allocatable: capacity, ZoneIDs: map[string]string{"eu-west-1a": "euw1-az1"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return ref, map[string]string{
		launchspec.IntentTag: name, launchspec.IntentRefAnnotation: launchspec.FormatRef(ref), launchspec.BatchAnnotation: "/0",
		launchspec.ClaimsAnnotation: "1", launchspec.CeilingAnnotation: `{"cpu":"2"}`,
	}
}

// replacement stores a plan with one claim that replaces others.
func (s *site) replacement(name string) event.Ref {
	s.Helper()
	ref, asked := intended(s.T, s.blobs, "moved", name)
	c := karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: name, Finalizers: []string{karpenter.TerminationFinalizer}, Labels: map[string]string{karpenter.NodePoolLabelKey: "moved"},
		Annotations: asked,
	}}
	c.Annotations[karpenter.InstanceTaggedAnnotationKey] = "true"
	c.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "moved"}
	c.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{}
	plan, err := blob.Put(s.Context(), s.blobs, time.Now(), planning.PlanKind, planning.Plan{Intents: []planning.PlannedIntent{{
		ID: name, Ref: ref, NodePool: "moved", Claims: []planning.PlannedClaim{{Object: c, Ceiling: corev1.ResourceList{"cpu": resource.MustParse("2")}, Pods: 2}},
	}}})
	s.check(err)
	return plan
}

// deliverMessage sends lifecycle a fact until it is processed.
func (s *site) deliverMessage(body event.Body) {
	s.Helper()
	e, err := event.Maker{Service: "test", Cluster: s.id}.New(time.Now(), body, nil)
	s.check(err)
	var last error
	s.waitUntil(30*time.Second, "the condition", func() bool {
		if last = s.service.ConcurrentHandler(s.gate)(s.Context(), e); last != nil {
			s.Logf("repeated message: %v", last)
		}
		return last == nil
	})
}

// proposeReplacement sends a proposal for the machines until it takes effect.
func (s *site) proposeReplacement(id string, machines ...machine) {
	s.Helper()
	b := event.DisruptionProposed{
		Proposal: id, Phase: event.Proposed, Reason: string(karpenter.DisruptionReasonUnderutilized), Method: "MultiNode", Moved: len(machines),
		Snapshot: event.Ref{Kind: planning.SnapshotKind, Digest: event.DigestOf([]byte(id)), Size: 1}, Decided: time.Now(),
	}
	for _, m := range machines {
		b.Claims = append(b.Claims, m.name)
		m.requireDisrupted()
	}
	s.deliverMessage(b)
	time.Sleep(planning.ConfirmAfter + time.Second)
	b.Phase, b.Plan = event.Confirmed, s.replacement("new-"+id)
	s.deliverMessage(b)
	for _, m := range machines {
		m.waitForTaint()
		if got := m.condition(karpenter.ConditionTypeDisruptionReason); got.Status != metav1.ConditionTrue || got.Reason != b.Reason {
			s.Errorf("%s: got condition %+v", m.name, got)
		}
	}
}

func replacedByOne(s *site) {
	a, b := s.newReplaceableNode("whole-a"), s.newReplaceableNode("whole-b")
	s.proposeReplacement("whole", a, b)
	next := machine{s, "new-whole", "i-newwhole"}
	s.waitUntil(20*time.Second, "admitted", func() bool { return next.claim() != nil && next.claim().Annotations["joist.sh/admitted"] != "" })
	s.deliverMessage(event.LaunchSettled{Intent: "new-whole", Wanted: 1, Spent: true, Instances: []event.Launched{{
		InstanceID: next.instance, ImageID: "ami-1", Offering: event.Offering{InstanceType: "m6i.large", Zone: "eu-west-1a", CapacityType: cloud.Spot},
	}}})
	time.Sleep(2 * time.Second)
	if a.claim().DeletionTimestamp != nil || b.claim().DeletionTimestamp != nil {
		s.Fatal("a node was deleted before its replacement was initialized")
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: next.name}}
	node.Spec.ProviderID, node.Spec.Taints = "aws:///eu-west-1a/"+next.instance, []corev1.Taint{karpenter.UnregisteredTaint()}
	_, err := s.admin.Create(s.Context(), node)
	s.check(err)
	next.initializeNode()
	for _, m := range []machine{a, b} {
		m.waitUntil(30*time.Second, "going", func() bool { return m.claim() == nil || m.claim().DeletionTimestamp != nil })
		m.waitForEvent(10*time.Second, karpenter.ReasonDisruptionTerminating, "Disrupting Node: Underutilized")
		m.waitUntil(30*time.Second, "evicted", func() bool { gone, _ := m.podDeletion(m.name); return gone })
		m.endPod(m.name)
		m.requireTermination()
	}
	if c := next.claim(); c == nil || c.DeletionTimestamp != nil || !c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) {
		s.Errorf("got replacement %+v", c)
	}
}

func rolledBack(s *site) {
	a, b := s.newReplaceableNode("back-a"), s.newReplaceableNode("back-b")
	s.proposeReplacement("back", a, b)
	next := machine{s, "new-back", "i-newback"}
	s.waitUntil(20*time.Second, "admitted", func() bool { return next.claim() != nil && next.claim().Annotations["joist.sh/admitted"] != "" })
	// Another controller's finalizer keeps the rejected claim.
	next.swap(cluster.NodeClaims, func(o cluster.Object) cluster.Object {
		o.SetFinalizers(append(o.GetFinalizers(), "example.com/keep"))
		return o
	}, s.admin.Update)
	s.deliverMessage(event.LaunchSettled{Intent: "new-back", Wanted: 1, Spent: true, Refusals: []event.Refusal{{Code: "InsufficientInstanceCapacity"}}})
	for _, m := range []machine{a, b} {
		m.waitUntil(30*time.Second, "restored", func() bool {
			return !karpenter.HasTaint(m.node().Spec.Taints, karpenter.DisruptedTaint()) && planning.ReadProposal(m.claim()) == nil &&
				m.condition(karpenter.ConditionTypeDisruptionReason).Status == ""
		})
		m.waitForEvent(10*time.Second, karpenter.ReasonDisruptionBlocked, "Disruption was rolled back: replacement NodeClaim new-back is being deleted")
		if gone, _ := m.podDeletion(m.name); gone || m.claim().DeletionTimestamp != nil {
			s.Errorf("%s was evicted or deleted", m.name)
		}
	}
	if next.claim() == nil {
		s.Error("the finalizer did not keep the replacement, so the rollback is not tested")
	}
	next.swap(cluster.NodeClaims, func(o cluster.Object) cluster.Object {
		o.SetFinalizers(nil)
		return o
	}, s.admin.Update)
}
