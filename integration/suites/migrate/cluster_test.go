package migrate

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/shared/cluster/lease"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// manifests are the demo's: a pool of small Graviton types that prefers spot.
const manifests = testbed.Root + "/services/cli/internal/demo/manifests/"

// movedCluster is a testbed whose nodes change their controller.
type movedCluster struct {
	*testbed.TestBed
	objects dynamic.Interface
}

func newMovedCluster(t *testing.T) *movedCluster {
	t.Helper()
	w := &movedCluster{TestBed: testbed.New(t, testbed.Options{})}
	var err error
	w.objects, err = dynamic.NewForConfig(w.Plane.Config)
	w.RequireNoError(err)
	return w
}

// resources of the kinds that the test changes.
var (
	poolResource  = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
	claimResource = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}
	classResource = schema.GroupVersionResource{Group: "karpenter.k8s.aws", Version: "v1", Resource: "ec2nodeclasses"}
)

func (w *movedCluster) patch(kind schema.GroupVersionResource, name, patch string) {
	w.Helper()
	_, err := w.objects.Resource(kind).Patch(w.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	w.RequireNoError(err)
}

func (w *movedCluster) scale(n int) {
	w.Helper()
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, n)
	_, err := w.Kube.AppsV1().Deployments("default").Patch(w.Context(), "inflate", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	w.RequireNoError(err)
}

// scaleKarpenter writes the Deployment of Karpenter's chart with a number of replicas. There are no
// kubelets, so the test starts the process.
func (w *movedCluster) scaleKarpenter(replicas int32) {
	w.Helper()
	labels := map[string]string{"app.kubernetes.io/name": "karpenter"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "karpenter", Namespace: testbed.KarpenterNamespace, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			// A paused Deployment creates no pods.
			Paused: true,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "controller", Image: "public.ecr.aws/karpenter/controller:1.15.1",
					Env: []corev1.EnvVar{{Name: "INTERRUPTION_QUEUE", Value: karpenterQueue}},
				}}},
			},
		},
	}
	deployments := w.Kube.AppsV1().Deployments(testbed.KarpenterNamespace)
	_, err := deployments.Create(w.Context(), d, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = deployments.Update(w.Context(), d, metav1.UpdateOptions{})
	}
	w.RequireNoError(err)
}

// waitForPods waits until n pods run, on nodes that are initialized and tagged.
func (w *movedCluster) waitForPods(n int) {
	w.Helper()
	w.WaitForPods("inflate", n)
}

// holder returns the holder of Karpenter's Lease.
func (w *movedCluster) holder() string {
	l, err := w.Kube.CoordinationV1().Leases(testbed.KarpenterNamespace).Get(w.Context(), lease.KarpenterName, metav1.GetOptions{})
	if err != nil || l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

func (w *movedCluster) waitForHolder(what string, holds func(holder string) bool) {
	w.Helper()
	w.WaitUntil(time.Minute, what, func() bool { return holds(w.holder()) })
	w.Logf("the holder of the Lease is %s", w.holder())
}

// launchedBy returns the names of the NodeClaims that Joist or Karpenter created. Joist's name the
// intent of their plan.
func (w *movedCluster) launchedBy(joist bool) []string {
	var names []string
	for _, c := range w.Claims() {
		if (c.Annotations[launchspec.IntentTag] != "") == joist {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

// possession identifies what must survive a change of the controller: the UIDs of NodeClaims and
// Nodes, and the running instances.
type possession map[string]string

func (w *movedCluster) takeStock() possession {
	out := possession{}
	for _, c := range w.Claims() {
		out["NodeClaim "+c.Name] = string(c.UID) + " " + c.Status.ProviderID
	}
	for _, n := range w.Nodes() {
		out["Node "+n.Name] = string(n.UID)
	}
	for _, r := range w.RunningInstances() {
		out["instance "+r.ID] = r.Launched.String()
	}
	return out
}

// requireKept fails the test if something was deleted, replaced, marked for removal, or has drifted.
func (w *movedCluster) requireKept(before possession) {
	w.Helper()
	now := w.takeStock()
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if now[name] != before[name] {
			w.Errorf("%s was %q, and is %q now", name, before[name], now[name])
		}
	}
	for _, c := range w.Claims() {
		drifted, _ := c.Status.Conditions.Get(karpenter.ConditionTypeDrifted)
		if c.DeletionTimestamp != nil || drifted.Status == metav1.ConditionTrue {
			w.Errorf("NodeClaim %s: deleted %v, drifted %s", c.Name, c.DeletionTimestamp, drifted.Reason)
		}
	}
	for _, n := range w.Nodes() {
		if n.DeletionTimestamp != nil || testbed.IsDisrupted(n) || n.Spec.Unschedulable {
			w.Errorf("Node %s: deleted %v, taints %v, unschedulable %v", n.Name, n.DeletionTimestamp, n.Spec.Taints, n.Spec.Unschedulable)
		}
	}
	w.RequireNoOrphans()
}
