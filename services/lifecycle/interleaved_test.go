package lifecycle_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/lease"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// interleavedList runs a function once, right after it has listed the NodeClaims.
type interleavedList struct {
	cluster.Client
	meanwhile func()
}

func (o *interleavedList) List(ctx context.Context, kind cluster.Kind, namespace string) ([]cluster.Object, error) {
	listed, err := o.Client.List(ctx, kind, namespace)
	if kind == cluster.NodeClaims && o.meanwhile != nil {
		meanwhile := o.meanwhile
		o.meanwhile = nil
		meanwhile()
	}
	return listed, err
}

// Two plans of one batch that are admitted concurrently use the same count, so only one of them may
// be admitted. The swap is at the version of the outbox that was read before counting.
func TestAdmissionComparesCountedOutboxVersion(t *testing.T) {
	s := newTestCluster(t)
	held := s.startBatch()
	first, second := s.planMessage(held, s.planIntent(held, "one", 1)), s.planMessage(held, s.planIntent(held, "two", 1))
	s.startService(&interleavedList{s.ClientFor("lifecycle"), func() {
		slow := s.svc
		s.restartService()
		s.handleMessage(second, "")
		s.svc = slow
	}})
	s.handleMessage(first, fault.Conflict)
	if diff := cmp.Diff(map[string]string{"two-0": ""}, s.boundInstances()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"launch.requested.v1 intent/two"}, typesAndSubjects(s.takeSent())); diff != "" {
		t.Error(diff)
	}
}

// A node is not deleted if its replacement is being deleted, although the replacement is still
// initialized in the cache.
func TestDeletedReplacementKeepsOldNode(t *testing.T) {
	s := newInitializedCluster(t, 3)
	m := s.startProposal(1, "old-0")
	m.deliver(event.Confirmed, "")
	s.handleMessage(s.newMessage(launchSettled("new", 1, "i-new")), "")
	s.joinNode("new-0", "i-new")
	deleted := false
	// The cache first contains the initialized replacement in the deciding reconcile. The
	// replacement is deleted before the second check.
	s.startService(&interleavedGet{Client: s.ClientFor("lifecycle"), before: func() {
		if !deleted {
			deleted = true
			if err := s.Delete(context.Background(), cluster.NodeClaims, cluster.Key{Name: "new-0"}, ""); err != nil {
				s.t.Fatal(err)
			}
		}
	}})
	for range 10 {
		s.advance(3 * time.Second)
	}
	if !deleted {
		t.Fatal("the old claim was not deleted within the test")
	}
	if s.getClaim("old-0") == nil || s.getClaim("old-0").DeletionTimestamp != nil {
		t.Error("the old node was deleted although its replacement is being deleted")
	}
	s.expectStates(stateUntouched, "old-0")
}

// A pod that is bound to a node between the check of its pods and its taint keeps the node, and no replacement is launched. Without such a
// pod the disruption begins.
func TestPodBoundBeforeTheTaint(t *testing.T) {
	for _, c := range []struct {
		replacements int
		came         bool
		want         string
	}{{0, false, "going"}, {1, false, stateActing}, {0, true, stateUntouched}, {1, true, stateUntouched}} {
		s := newInitializedCluster(t, 1)
		m := s.startProposal(c.replacements, "old-0")
		s.startService(&interleavedTaint{Client: s.ClientFor("lifecycle"), before: func() {
			if c.came {
				s.addPod("old-0", "late")
			}
		}})
		m.deliver(event.Confirmed, "")
		s.expectStates(c.want, "old-0")
		if launched := s.getClaim("new-0") != nil; launched != (c.want == stateActing) {
			t.Errorf("with %d replacements, and a pod that came (%t): the replacement was created: %t", c.replacements, c.came, launched)
		}
	}
}

// A pod that ends between the confirmation and the taint makes place for another. The count stays the same, but the new pod may block the
// disruption, as it would have before the confirmation. A drifted node with a terminationGracePeriod need not wait for such pods.
func TestPodReplacedBeforeTheTaint(t *testing.T) {
	protected := func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{karpenter.DoNotDisruptAnnotationKey: "true"}
	}
	const underutilized, drifted = karpenter.DisruptionReasonUnderutilized, karpenter.DisruptionReasonDrifted
	blocked := func(pod *corev1.Pod) { pod.Labels = map[string]string{"app": "blocked"} }
	for name, c := range map[string]struct {
		came   func(*corev1.Pod)
		reason karpenter.DisruptionReason
		begins bool
		why    string
	}{
		"any pod":                           {came: func(*corev1.Pod) {}, reason: underutilized, begins: true},
		"a protected pod":                   {came: protected, reason: underutilized, why: `pod has "karpenter.sh/do-not-disrupt" annotation (Pod=default/late)`},
		"a blocked pod":                     {came: blocked, reason: underutilized, why: "pdb prevents pod evictions (PodDisruptionBudget=default/none, Pod=default/late)"},
		"a protected pod on a drifted node": {came: protected, reason: drifted, begins: true},
	} {
		for replacements := range 2 {
			t.Run(fmt.Sprintf("%s, %d replacements", name, replacements), func(t *testing.T) {
				s := newInitializedCluster(t, 1)
				s.SeedObjects(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "none"}, Spec: policyv1.PodDisruptionBudgetSpec{
					Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "blocked"}}, MaxUnavailable: new(intstr.FromInt32(0)),
				}})
				s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "old-0"}, func(o cluster.Object) {
					o.(*karpenter.NodeClaim).Spec.TerminationGracePeriod = &metav1.Duration{Duration: time.Hour}
				})
				m := s.startProposalBy("", c.reason, replacements, "old-0")
				s.startService(&interleavedTaint{Client: s.ClientFor("lifecycle"), before: func() {
					s.removePodOf("old-0")
					s.addPod("old-0", "late", c.came)
				}})
				m.deliver(event.Confirmed, "")
				want := stateUntouched
				if c.begins {
					want = []string{"going", stateActing}[replacements]
				}
				s.expectStates(want, "old-0")
				if got := s.eventsWithReason("DisruptionBlocked"); c.why != "" && !slices.Contains(got, "NodeClaim old-0: "+c.why) {
					t.Errorf("Events %q, want one with %q", got, c.why)
				}
			})
		}
	}
}

// A claim is not deleted before the pods of its tainted node could be read again.
func TestPodsMustBeReadAfterTheTaint(t *testing.T) {
	for replacements := range 2 {
		s := newInitializedCluster(t, 1)
		m := s.startProposal(replacements, "old-0")
		s.startService(&interleavedTaint{Client: s.ClientFor("lifecycle"), before: func() { s.rejectCalls(memcluster.VerbList, cluster.Pods, "") }})
		m.deliver(event.Confirmed, fault.Denied)
		s.expectStates(stateActing, "old-0")
		s.ClearFaults()
		if replacements > 0 {
			m.deliver(event.Confirmed, "") // No plan was admitted, so the proposal is rolled back.
			s.expectStates(stateUntouched, "old-0")
			continue
		}
		s.advance(2 * time.Second)
		s.expectStates("going", "old-0")
	}
}

// A replica that was paused before the taint finds new pods, but another replica has begun to delete the claim. The node keeps its taint.
func TestPausedReplicaKeepsTaintOfDeletedClaim(t *testing.T) {
	s := newInitializedCluster(t, 1)
	m := s.startProposal(0, "old-0")
	s.startService(&interleavedTaint{Client: s.ClientFor("lifecycle"), before: func() {
		if err := s.Delete(context.Background(), cluster.NodeClaims, cluster.Key{Name: "old-0"}, ""); err != nil {
			s.t.Fatal(err)
		}
		s.addPod("old-0", "late")
	}})
	m.deliver(event.Confirmed, "")
	s.expectStates("going", "old-0")
	if !karpenter.HasTaint(s.getNode("old-0").Spec.Taints, karpenter.DisruptedTaint()) {
		t.Error("the taint was removed")
	}
}

// interleavedTaint runs a function before the first write of a node.
type interleavedTaint struct {
	cluster.Client
	before func()
}

func (c *interleavedTaint) Update(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	if _, isNode := o.(*corev1.Node); isNode && c.before != nil {
		c.before()
		c.before = nil
	}
	return c.Client.Update(ctx, o)
}

// A replica that is paused between its decision to evict a pod and the request does not evict it: by now the pod may be protected, and
// another replica may lead. The next reconcile decides again.
func TestPausedReplicaEvictsNoPod(t *testing.T) {
	s := newInitializedCluster(t, 1)
	s.addPod("old-0", "web")
	s.deleteClaim("old-0")
	s.startService(&interleavedDelete{Client: s.ClientFor("lifecycle"), before: func() { s.now = s.now.Add(lease.Duration) }})
	isEvicted := func() bool {
		pod, err := cluster.Get[*corev1.Pod](t.Context(), s.Server, cluster.Pods, cluster.Key{Namespace: "default", Name: "web"})
		return err != nil || pod.DeletionTimestamp != nil
	}
	s.reconcile()
	s.cache.DeliverAll()
	if err := s.svc.Step(t.Context()); !fault.Is(err, fault.Retry) || s.getNode("old-0").DeletionTimestamp == nil {
		t.Fatalf("the step that was paused returned %v", err)
	}
	if isEvicted() {
		t.Error("the pod was evicted after a pause")
	}
	s.advance(time.Second)
	if !isEvicted() {
		t.Error("the next reconciles did not evict the pod")
	}
}

// interleavedDelete runs a function before the first deletion of a node.
type interleavedDelete struct {
	cluster.Client
	before func()
}

func (c *interleavedDelete) Delete(ctx context.Context, kind cluster.Kind, key cluster.Key, uid types.UID) error {
	if kind == cluster.Nodes && c.before != nil {
		c.before()
		c.before = nil
	}
	return c.Client.Delete(ctx, kind, key, uid)
}

// interleavedGet runs a function before the claim old-0 is read while the claim new-0 is
// initialized.
type interleavedGet struct {
	cluster.Client
	before func()
}

func (c *interleavedGet) Get(ctx context.Context, kind cluster.Kind, key cluster.Key) (cluster.Object, error) {
	if kind == cluster.NodeClaims && key.Name == "old-0" {
		if o, err := c.Client.Get(ctx, kind, cluster.Key{Name: "new-0"}); err == nil && o.(*karpenter.NodeClaim).Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) {
			c.before()
		}
	}
	return c.Client.Get(ctx, kind, key)
}

// A claim of an abandoned plan is kept if another replica admits it between the reconcile and the
// deletion.
func TestClaimAdmittedBeforeItsRemovalStays(t *testing.T) {
	s := newTestCluster(t)
	held := s.startBatch()
	given := s.planIntent(held, "one", 1).Claims[0].Object
	given.Annotations[launchspec.BatchAnnotation] = admission.BatchID(held.UID(), held.Seq-1)
	s.handleMessage(s.planMessage(held), "")
	s.SeedObjects(&given)
	admitted := false
	s.startService(&pausedClient{s.ClientFor("lifecycle"), memcluster.VerbDelete, func() {
		admitted = true
		s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "one-0"}, func(o cluster.Object) {
			o.GetAnnotations()[admission.AdmittedAnnotation] = s.now.Format(time.RFC3339)
		})
	}})
	s.reconcile()
	if c := s.getClaim("one-0"); !admitted || c == nil || c.DeletionTimestamp != nil {
		t.Errorf("got admitted %t and claim %+v, want an admitted claim that is not deleted", admitted, c)
	}
}

// No claim is deleted as refused before the unavailable offering is recorded, because the next
// plan would request it again.
func TestUnavailableIsRecordedBeforeDeletion(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 2)
	s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Kind: cluster.ConfigMaps, Name: planning.UnavailableConfigMapName, As: fault.Denied})
	e := s.newMessage(launchSettled("one", 2, "i-1"))
	s.handleMessage(e, fault.Denied)
	if c := s.getClaim("one-1"); c == nil || c.DeletionTimestamp != nil {
		t.Fatal("deleted the claim before recording its offering as unavailable")
	}
	s.ClearFaults()
	s.handleMessage(e, "")
	if c := s.getClaim("one-1"); len(s.unavailableOfferings()) != 1 || c != nil && c.DeletionTimestamp == nil {
		t.Errorf("got unavailable offerings %v and claim %+v", s.unavailableOfferings(), c)
	}
}

// A launch result with some instances and an unspent token deletes no claim: further instances
// may appear later, and the inventory binds them.
func TestPartialLaunchResultDeletesNothing(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 2)
	body := launchSettled("one", 2, "i-1")
	body.Spent = false
	s.handleMessage(s.newMessage(body), "")
	if c := s.getClaim("one-1"); c == nil || c.DeletionTimestamp != nil {
		t.Fatal("deleted a claim whose instance may still appear")
	}
	s.now = s.now.Add(time.Minute)
	s.handleMessage(s.inventoryMessage(s.now, listedInstance("i-1", "one", ""), listedInstance("i-2", "one", "")), "")
	if diff := cmp.Diff(map[string]string{"one-0": "i-1", "one-1": "i-2"}, s.boundInstances()); diff != "" {
		t.Error(diff)
	}
}

// interleavedUpdate runs a function once before it writes a claim.
type interleavedUpdate struct {
	cluster.Client
	name string
	by   func()
}

func (p *interleavedUpdate) Update(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	if o.GetName() == p.name && p.by != nil {
		by := p.by
		p.by = nil
		by()
	}
	return p.Client.Update(ctx, o)
}

// No node of a proposal is tainted before all of its claims are marked: a user deletes one of them
// at that moment.
func TestNoNodeIsTaintedBeforeAllClaimsAreMarked(t *testing.T) {
	s := newInitializedCluster(t, 3)
	m := s.startProposal(0, "old-0", "old-1")
	s.startService(&interleavedUpdate{s.ClientFor("lifecycle"), "old-1", func() {
		if err := s.Delete(context.Background(), cluster.NodeClaims, cluster.Key{Name: "old-1"}, ""); err != nil {
			s.t.Fatal(err)
		}
	}})
	m.deliver(event.Confirmed, fault.Retry)
	if c := s.getClaim("old-0"); c.DeletionTimestamp != nil || c.Status.Conditions.IsTrue(karpenter.ConditionTypeDisruptionReason) {
		t.Errorf("old-0 is disrupted although a user deleted old-1: %+v", c.Status.Conditions)
	}
}

// interleavedStatus runs a function once, right before it writes the status of a NodeClaim.
type interleavedStatus struct {
	cluster.Client
	meanwhile func()
}

func (o *interleavedStatus) UpdateStatus(ctx context.Context, object cluster.Object) (cluster.Object, error) {
	if _, isClaim := object.(*karpenter.NodeClaim); isClaim && o.meanwhile != nil {
		meanwhile := o.meanwhile
		o.meanwhile = nil
		meanwhile()
	}
	return o.Client.UpdateStatus(ctx, object)
}

// While a replica binds the result of a launch, another one binds an inventory that lacks the first instance. Each
// instance gets one NodeClaim.
func TestResultAndInventoryBindDifferentClaims(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 2)
	result := s.newMessage(launchSettled("one", 2, "i-1", "i-2"))
	s.startService(&interleavedStatus{s.ClientFor("lifecycle"), func() {
		slow := s.svc
		s.restartService()
		s.handleMessage(s.inventoryMessage(s.now, listedInstance("i-2", "one", "")), "")
		s.svc = slow
	}})
	s.handleMessage(result, fault.Conflict)
	if diff := cmp.Diff(map[string]string{"one-0": "i-2", "one-1": ""}, s.boundInstances()); diff != "" {
		t.Error(diff)
	}
	s.handleMessage(result, "")
	if diff := cmp.Diff(map[string]string{"one-0": "i-2", "one-1": "i-1"}, s.boundInstances()); diff != "" {
		t.Error(diff)
	}
}

// A NodeClaim that a paused replica has created again is not admitted, and gets no instance.
func TestClaimCreatedAgainIsNotBound(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 2)
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "one-0"}, func(o cluster.Object) {
		delete(o.GetAnnotations(), admission.AdmittedAnnotation)
	})
	s.handleMessage(s.inventoryMessage(s.now, listedInstance("i-1", "one", "")), "")
	if diff := cmp.Diff(map[string]string{"one-0": "", "one-1": "i-1"}, s.boundInstances()); diff != "" {
		t.Error(diff)
	}
}

// A replica pauses before it creates a NodeClaim and resumes after another replica has created it, launched it and
// removed it. The second NodeClaim of that name is not launched, although its plan is still the latest.
func TestClaimCreatedAgainIsDeleted(t *testing.T) {
	s := newTestCluster(t)
	held := s.startBatch()
	s.handleMessage(s.planMessage(held, s.planIntent(held, "one", 2)), "")
	first := s.getClaim("one-0")
	again := first.DeepCopy()
	again.UID, again.ResourceVersion, again.Finalizers = "", "", nil
	delete(again.Annotations, admission.AdmittedAnnotation)
	s.ChangeObject(cluster.NodeClaims, cluster.KeyOf(first), func(o cluster.Object) { o.SetFinalizers(nil) })
	if err := s.ClientFor("user").Delete(t.Context(), cluster.NodeClaims, cluster.KeyOf(first), first.UID); err != nil {
		t.Fatal(err)
	}
	s.takeSent()
	s.SeedObjects(again)
	for range 3 {
		s.advanceOnce(31 * time.Second)
	}
	if c := s.getClaim("one-0"); c != nil {
		t.Errorf("NodeClaim one-0 has the annotations %v", c.Annotations)
	}
	if sent := s.takeSent(); len(sent) != 0 {
		t.Errorf("sent %v", typesAndSubjects(sent))
	}
}
