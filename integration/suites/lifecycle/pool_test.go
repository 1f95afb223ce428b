package lifecycle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
)

// pool creates a NodePool and the given number of claims, as planner and lifecycle do.
func (e *estate) pool(name string, claims int) *karpenter.NodePool {
	e.Helper()
	ref := &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "default"}
	pool := &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pool.Spec.Template.Spec.NodeClassRef = ref
	pool.Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{}
	made, err := e.admin.Create(e.Ctx, pool)
	e.RequireNoError(err)
	pool = made.(*karpenter.NodePool)
	for i := range claims {
		owned := true
		c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", name, i), Labels: map[string]string{karpenter.NodePoolLabelKey: name}, Finalizers: []string{karpenter.TerminationFinalizer},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: name, UID: pool.UID, BlockOwnerDeletion: &owned}},
		}}
		c.Spec.NodeClassRef, c.Spec.Requirements = ref, pool.Spec.Template.Spec.Requirements
		_, err := e.admin.Create(e.Ctx, c)
		e.RequireNoError(err)
	}
	return pool
}

// read returns the current pool, or nil if it is deleted.
func (e *estate) read(name string) *karpenter.NodePool {
	e.Helper()
	pool, err := cluster.Get[*karpenter.NodePool](e.Ctx, e.admin, cluster.NodePools, cluster.Key{Name: name})
	if fault.Is(err, fault.Missing) {
		return nil
	}
	e.RequireNoError(err)
	return pool
}

// of returns the pool's claims, and the number that are being deleted.
func (e *estate) of(name string) (all []*karpenter.NodeClaim, going int) {
	e.Helper()
	claims, err := cluster.List[*karpenter.NodeClaim](e.Ctx, e.admin, cluster.NodeClaims)
	e.RequireNoError(err)
	for _, c := range claims {
		if c.Labels[karpenter.NodePoolLabelKey] != name {
			continue
		}
		all = append(all, c)
		if c.DeletionTimestamp != nil {
			going++
		}
	}
	return all, going
}

func (e *estate) held(name string) bool {
	pool := e.read(name)
	return pool != nil && slices.Contains(pool.Finalizers, "joist.sh/gate")
}

func (e *estate) patch(name, patch string) {
	e.Helper()
	_, err := e.pools.Patch(e.Ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	e.RequireNoError(err)
}

func (e *estate) remove(name string, how metav1.DeletionPropagation) {
	e.Helper()
	e.RequireNoError(e.pools.Delete(e.Ctx, name, metav1.DeleteOptions{PropagationPolicy: &how}))
}

// collected waits until the garbage collector has deleted an object that was orphaned
// after all others.
func (e *estate) collected() {
	e.Helper()
	maps := e.Kube.CoreV1().ConfigMaps("default")
	owner, err := maps.Create(e.Ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "owner-"}}, metav1.CreateOptions{})
	e.RequireNoError(err)
	orphan, err := maps.Create(e.Ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "orphan-",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}}}, metav1.CreateOptions{})
	e.RequireNoError(err)
	e.RequireNoError(maps.Delete(e.Ctx, owner.Name, metav1.DeleteOptions{}))
	e.WaitUntil(time.Minute, "the garbage collector", func() bool {
		_, err := maps.Get(e.Ctx, orphan.Name, metav1.GetOptions{})
		return err != nil
	})
}

// ended removes the finalizers of deleted claims, as if EC2 had terminated their
// instances.
func (e *estate) ended(name string) {
	e.Helper()
	claims, _ := e.of(name)
	for _, c := range claims {
		if c.DeletionTimestamp == nil {
			continue
		}
		c.Finalizers = nil
		if _, err := e.admin.Update(e.Ctx, c); err != nil && !fault.Is(err, fault.Conflict, fault.Missing) {
			e.RequireNoError(err)
		}
	}
}

// TestNodePools tests behaviour that a model of the API server cannot prove: garbage
// collection, propagation policies, conflicts and upstream's schema.
func TestNodePools(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs a control plane")
	}
	e := newEstate(t, testbed.Options{})
	gate := lifecycle.DeletionApproval{On: true, Nodes: 5, Percent: 100}
	e.restart(gate, repair.PolicySet{})
	for _, scene := range []struct {
		name string
		play func()
	}{
		{"a deletion waits for approval; nodes are kept, then removed", func() { e.approveDeletion(gate) }},
		{"a foreground deletion is not delayed", e.foreground},
		{"another client applies the pool", e.applied},
		{"repair", func() { e.repaired(gate) }},
		{"the feature gate is off", e.deleteWithoutApproval},
	} {
		e.Logf("%s", scene.name)
		scene.play()
	}
}

func (e *estate) approveDeletion(gate lifecycle.DeletionApproval) {
	first := e.pool("web", 7)
	e.WaitUntil(time.Minute, "the finalizer", func() bool { return e.held("web") })
	e.remove("web", metav1.DeletePropagationBackground)
	e.WaitUntil(time.Minute, "the condition AwaitingApproval", func() bool {
		c, _ := e.read("web").Status.Conditions.Get("DeletionApproved")
		return c.Reason == "AwaitingApproval"
	})
	e.restart(gate, repair.PolicySet{})
	e.collected()
	if claims, going := e.of("web"); len(claims) != 7 || going != 0 {
		e.Fatalf("%d claims, %d being deleted, before the approval", len(claims), going)
	}
	e.patch("web", `{"metadata":{"annotations":{"joist.sh/approve":"keep"}}}`)
	e.WaitUntil(time.Minute, "the pool to be removed", func() bool { return e.read("web") == nil })
	e.collected()
	if claims, going := e.of("web"); len(claims) != 7 || going != 0 {
		e.Fatalf("%d claims, %d being deleted, after the approval to keep them", len(claims), going)
	}
	second := e.pool("web", 0)
	e.WaitUntil(time.Minute, "the next pool to adopt the claims", func() bool {
		claims, _ := e.of("web")
		return e.held("web") && !slices.ContainsFunc(claims, func(c *karpenter.NodeClaim) bool {
			return len(c.OwnerReferences) != 1 || c.OwnerReferences[0].UID != second.UID || second.UID == first.UID
		})
	})
	e.patch("web", `{"metadata":{"annotations":{"joist.sh/approve":"delete 3"}}}`)
	e.remove("web", metav1.DeletePropagationBackground)
	most := 0
	e.WaitUntil(time.Minute, "the pool and its claims to be removed", func() bool {
		claims, going := e.of("web")
		most = max(most, going)
		if going == 3 || going == len(claims) {
			e.ended("web")
		}
		return len(claims) == 0 && e.read("web") == nil
	})
	// A claim that was never launched is deleted quickly, so the test may observe fewer
	// than three.
	if most > 3 {
		e.Fatalf("%d claims were being deleted at once, 3 were approved", most)
	}
}

// foreground tests a documented limit.
func (e *estate) foreground() {
	e.pool("front", 7)
	e.WaitUntil(time.Minute, "the finalizer", func() bool { return e.held("front") })
	e.remove("front", metav1.DeletePropagationForeground)
	// The garbage collector looks for new kinds every 30 seconds, and starts again if that takes longer.
	e.WaitUntil(3*time.Minute, "Kubernetes to delete all claims", func() bool {
		claims, going := e.of("front")
		return going == len(claims)
	})
	e.ended("front")
	e.WaitUntil(time.Minute, "the pool to be removed", func() bool { return e.read("front") == nil })
}

func (e *estate) applied() {
	e.pool("busy", 2)
	for i := range 50 {
		e.patch("busy", fmt.Sprintf(`{"metadata":{"labels":{"applied":"%d"}},"spec":{"weight":%d}}`, i, i+1))
	}
	e.WaitUntil(time.Minute, "the status of the last generation", func() bool {
		pool := e.read("busy")
		valid, _ := pool.Status.Conditions.Get(karpenter.ConditionTypeValidationSucceeded)
		return valid.Status == metav1.ConditionTrue && valid.ObservedGeneration == pool.Generation && pool.Status.Nodes != nil &&
			pool.Labels["applied"] == "49" && pool.Annotations[karpenter.NodePoolHashAnnotationKey] != ""
	})
}

func (e *estate) repaired(gate lifecycle.DeletionApproval) {
	rules, err := repair.Parse("KernelReady=False:30m")
	e.RequireNoError(err)
	e.restart(gate, repair.PolicySet{Policies: rules, Unhealthy: intstr.FromString("20%")})
	e.pool("sick", 1)
	const provider = "aws:///ap-northeast-2a/i-0123456789abcdef0"
	claims, _ := e.of("sick")
	claims[0].Status.ProviderID = provider
	_, err = e.admin.UpdateStatus(e.Ctx, claims[0])
	e.RequireNoError(err)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "sick", Labels: map[string]string{karpenter.NodePoolLabelKey: "sick"}}}
	node.Spec.ProviderID = provider
	node, err = e.Kube.CoreV1().Nodes().Create(e.Ctx, node, metav1.CreateOptions{})
	e.RequireNoError(err)
	// Lifecycle writes the node, too.
	e.RequireNoError(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if node, err = e.Kube.CoreV1().Nodes().Get(e.Ctx, node.Name, metav1.GetOptions{}); err != nil {
			return err
		}
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: "KernelReady", Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(time.Now().Add(-31 * time.Minute)),
		})
		_, err = e.Kube.CoreV1().Nodes().UpdateStatus(e.Ctx, node, metav1.UpdateOptions{})
		return err
	}))
	e.WaitUntil(time.Minute, "the status to be restored", func() bool {
		claims, going := e.of("sick")
		return len(claims) == 0 || going == 1 && claims[0].Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey] != ""
	})
}

func (e *estate) deleteWithoutApproval() {
	e.pool("plain", 7)
	e.WaitUntil(time.Minute, "the finalizer", func() bool { return e.held("plain") })
	e.restart(lifecycle.DeletionApproval{}, repair.PolicySet{})
	e.WaitUntil(time.Minute, "the finalizer to be removed", func() bool { return !e.held("plain") })
	e.remove("plain", metav1.DeletePropagationBackground)
	// The garbage collector looks for new kinds every 30 seconds, and starts again if that takes longer.
	e.WaitUntil(3*time.Minute, "Kubernetes to delete all claims", func() bool {
		claims, going := e.of("plain")
		return e.read("plain") == nil && going == len(claims)
	})
}
