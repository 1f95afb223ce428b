package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
)

// slow is a startup taint.
var slow = corev1.Taint{Key: "slow", Effect: corev1.TaintEffectNoSchedule}

// launchedClaim is a launched claim and its instance, both created by the test.
type launchedClaim struct {
	*estate
	name, provider string
}

// newClaim creates a claim with its instance, as a binding writes it. Until its status is
// written the claim can be launched, so it has an intent for which lifecycle may request
// the launch.
func (e *estate) newClaim(name string, serial int, startup ...corev1.Taint) launchedClaim {
	e.Helper()
	b := launchedClaim{e, name, fmt.Sprintf("aws:///ap-northeast-2a/i-%017x", serial)}
	_, asked := intended(e.T, e.config.Blobs, "births", name)
	c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: name, Finalizers: []string{karpenter.TerminationFinalizer},
		Labels: map[string]string{
			karpenter.NodePoolLabelKey: "births", corev1.LabelInstanceTypeStable: "m6i.large", corev1.LabelTopologyZone: "ap-northeast-2a",
			corev1.LabelTopologyRegion: "ap-northeast-2", karpenter.CapacityTypeLabelKey: karpenter.CapacityTypeSpot,
		},
		Annotations: asked,
	}}
	c.Annotations["joist.sh/admitted"] = time.Now().UTC().Format(time.RFC3339)
	c.Annotations[karpenter.InstanceTaggedAnnotationKey] = "true"
	c.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "default"}
	c.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{}
	c.Spec.StartupTaints = startup
	made, err := e.admin.Create(e.Ctx, c)
	e.RequireNoError(err)
	// Lifecycle reconciles at once, and may have written the claim in between.
	e.RequireNoError(b.write(func(c *karpenter.NodeClaim) { c.Status.ProviderID = b.provider }, made.(*karpenter.NodeClaim)))
	return b
}

// write changes the claim's status and retries conflicts.
func (b launchedClaim) write(change func(*karpenter.NodeClaim), c *karpenter.NodeClaim) error {
	for {
		change(c)
		_, err := b.admin.UpdateStatus(b.Ctx, c)
		if !fault.Is(err, fault.Conflict) {
			return err
		}
		c = b.claim()
	}
}

func (b launchedClaim) claim() *karpenter.NodeClaim {
	b.Helper()
	c, err := cluster.Get[*karpenter.NodeClaim](b.Ctx, b.admin, cluster.NodeClaims, cluster.Key{Name: b.name})
	b.RequireNoError(err)
	return c
}

// conditionText returns a condition of the claim: its status and reason.
func (b launchedClaim) conditionText(kind string) string {
	b.Helper()
	c, _ := b.claim().Status.Conditions.Get(kind)
	return string(c.Status) + " " + c.Reason
}

// waitForCondition waits for a condition of the claim.
func (b launchedClaim) waitForCondition(kind, want string) {
	b.Helper()
	b.WaitUntil(time.Minute, fmt.Sprintf("%s to be %s %s", b.name, kind, want), func() bool { return b.conditionText(kind) == want })
}

// joinNode creates a Node for the instance, as a kubelet does at registration.
func (b launchedClaim) joinNode(node string) {
	b.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{"kubelet": "set"}}}
	n.Spec.ProviderID = b.provider
	n.Spec.Taints = []corev1.Taint{karpenter.UnregisteredTaint()}
	_, err := b.Kube.CoreV1().Nodes().Create(b.Ctx, n, metav1.CreateOptions{})
	b.RequireNoError(err)
	b.kubelet(node)
}

// kubelet sets the node ready.
func (b launchedClaim) kubelet(node string) {
	b.Helper()
	at := time.Now().UTC().Format(time.RFC3339)
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","lastHeartbeatTime":%q,"lastTransitionTime":%q}]}}`, at, at)
	_, err := b.Kube.CoreV1().Nodes().Patch(b.Ctx, node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	b.RequireNoError(err)
}

// started removes the startup taint, as the daemon that owns it does.
func (b launchedClaim) started(node string) {
	b.Helper()
	for {
		n := b.node(node)
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "slow" })
		if _, err := b.Kube.CoreV1().Nodes().Update(b.Ctx, n, metav1.UpdateOptions{}); err == nil {
			return
		}
	}
}

func (b launchedClaim) node(name string) *corev1.Node {
	b.Helper()
	n, err := b.Kube.CoreV1().Nodes().Get(b.Ctx, name, metav1.GetOptions{})
	b.RequireNoError(err)
	return n
}

// requireRegistered fails unless the node has everything from its claim.
func (b launchedClaim) requireRegistered(node string) {
	b.Helper()
	n, c := b.node(node), b.claim()
	for key, value := range c.Labels {
		if n.Labels[key] != value {
			b.Errorf("%s: label %s is %q on the node and %q on the claim", node, key, n.Labels[key], value)
		}
	}
	owned := slices.ContainsFunc(n.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == c.UID && o.Kind == "NodeClaim" })
	if !owned || !slices.Contains(n.Finalizers, karpenter.TerminationFinalizer) || n.Labels["kubelet"] != "set" ||
		n.Labels[karpenter.NodeRegisteredLabelKey] != "true" || n.Labels[karpenter.NodeInitializedLabelKey] != "true" {
		b.Errorf("%s: owners %v, finalizers %v, labels %v", node, n.OwnerReferences, n.Finalizers, n.Labels)
	}
	if karpenter.HasTaint(n.Spec.Taints, karpenter.UnregisteredTaint()) || c.Status.NodeName != node {
		b.Errorf("%s: taints %v; the claim names %q", node, n.Spec.Taints, c.Status.NodeName)
	}
}

// TestRegistrationWritesNodeOnce registers and initializes claims on a real API server, where kubelets,
// the controller manager and people write to the same objects.
func TestRegistrationOnAPIServer(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs a control plane")
	}
	e := newEstate(t, testbed.Options{})
	e.restart(lifecycle.DeletionApproval{}, repair.PolicySet{})
	t.Run("step by step", func(*testing.T) { e.stepByStep() })
	t.Run("with many conflicts", func(*testing.T) { e.conflicts() })
	t.Run("two nodes of one instance", func(*testing.T) { e.twoNodesOfOneInstance() })
	t.Run("a reused node name", func(*testing.T) { e.renamed() })
	t.Run("claims edited by hand", func(*testing.T) { e.edited() })
	t.Run("a crash at every write", func(*testing.T) { e.crashAtEveryWrite() })
}

func (e *estate) stepByStep() {
	b := e.newClaim("calm", 1, slow)
	b.waitForCondition("Launched", "True Launched")
	b.waitForCondition("Registered", "Unknown NodeNotFound")
	b.joinNode("calm")
	b.waitForCondition("Registered", "True Registered")
	b.waitForCondition("Initialized", "Unknown StartupTaintsExist")
	b.waitForCondition("Ready", "Unknown ReconcilingDependents")
	b.started("calm")
	b.waitForCondition("Ready", "True Ready")
	b.waitForCondition("ConsistentStateFound", "True ConsistentStateFound")
	b.requireRegistered("calm")
}

// conflicts makes a kubelet and a person write all the time: none of their writes is
// lost, and the claim still becomes ready.
func (e *estate) conflicts() {
	b := e.newClaim("busy", 2, slow)
	b.joinNode("busy")
	stop, writes := make(chan struct{}), atomic.Int64{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			nodes := b.Kube.CoreV1().Nodes()
			beat := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
			_, _ = nodes.Patch(b.Ctx, "busy", types.StrategicMergePatchType, beat, metav1.PatchOptions{}, "status")
			mark := fmt.Appendf(nil, `{"metadata":{"annotations":{"theirs":"%d"}}}`, i)
			if _, err := nodes.Patch(b.Ctx, "busy", types.MergePatchType, mark, metav1.PatchOptions{}); err != nil {
				continue
			}
			if c, err := cluster.Get[*karpenter.NodeClaim](b.Ctx, b.admin, cluster.NodeClaims, cluster.Key{Name: b.name}); err == nil {
				metav1.SetMetaDataAnnotation(&c.ObjectMeta, "theirs", strconv.Itoa(i))
				_, _ = b.admin.Update(b.Ctx, c)
			}
			writes.Store(int64(i))
		}
	}()
	b.waitForCondition("Initialized", "Unknown StartupTaintsExist")
	b.started("busy")
	b.waitForCondition("Ready", "True Ready")
	close(stop)
	<-done
	b.requireRegistered("busy")
	if got := b.node("busy").Annotations["theirs"]; got != strconv.FormatInt(writes.Load(), 10) {
		b.Errorf("another client's write was lost: %q of %d", got, writes.Load())
	}
	b.Logf("other clients wrote %d times while a node registered", writes.Load())
}

// twoNodesOfOneInstance are two nodes of one claim that exist before lifecycle reconciles. A node that
// lifecycle finds alone would be registered at once.
func (e *estate) twoNodesOfOneInstance() {
	b := e.newClaim("twin", 3)
	e.still(func() {
		b.joinNode("twin-a")
		b.joinNode("twin-b")
		e.WaitUntil(time.Minute, "both nodes to be seen", func() bool { return e.sees("twin-a") && e.sees("twin-b") })
	})
	b.waitForCondition("Registered", "False MultipleNodesFound")
	b.waitForCondition("Ready", "False UnhealthyDependents")
	e.RequireNoError(e.Kube.CoreV1().Nodes().Delete(e.Ctx, "twin-a", metav1.DeleteOptions{}))
	b.waitForCondition("Registered", "True Registered")
	b.waitForCondition("Ready", "True Ready")
	b.requireRegistered("twin-b")
}

// renamed: a Node that is recreated with an older node's name belongs to the newer
// instance.
func (e *estate) renamed() {
	first := e.newClaim("first", 4)
	first.joinNode("again")
	first.waitForCondition("Registered", "True Registered")
	// Lifecycle may write the node between the two calls.
	e.RequireNoError(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		n := first.node("again")
		n.Finalizers = nil
		_, err := e.Kube.CoreV1().Nodes().Update(e.Ctx, n, metav1.UpdateOptions{})
		return err
	}))
	second := e.newClaim("second", 5)
	e.RequireNoError(e.Kube.CoreV1().Nodes().Delete(e.Ctx, "again", metav1.DeleteOptions{}))
	e.WaitUntil(time.Minute, "the node to be removed", func() bool {
		_, err := e.Kube.CoreV1().Nodes().Get(e.Ctx, "again", metav1.GetOptions{})
		return err != nil
	})
	second.joinNode("again")
	second.waitForCondition("Registered", "True Registered")
	second.waitForCondition("Ready", "True Ready")
	second.requireRegistered("again")
	if owners := second.node("again").OwnerReferences; len(owners) != 1 {
		e.Errorf("the node has the owners %v", owners)
	}
}

// edited: lifecycle restores what a person removes from a claim.
func (e *estate) edited() {
	b := e.newClaim("edited", 6)
	b.joinNode("edited")
	b.waitForCondition("Ready", "True Ready")
	for {
		c := b.claim()
		c.Finalizers = nil
		delete(c.Labels, karpenter.LabelEC2NodeClass)
		if _, err := e.admin.Update(e.Ctx, c); err == nil {
			break
		}
	}
	e.RequireNoError(b.write(func(c *karpenter.NodeClaim) { c.Status.Conditions, c.Status.NodeName = nil, "" }, b.claim()))
	e.WaitUntil(time.Minute, "the removed fields to be restored", func() bool {
		c := b.claim()
		return slices.Contains(c.Finalizers, karpenter.TerminationFinalizer) && c.Labels[karpenter.LabelEC2NodeClass] == "default" &&
			c.Status.NodeName == "edited" && c.Status.Conditions.IsTrue(karpenter.ConditionTypeReady)
	})
	b.requireRegistered("edited")
}

// crashingClient is a client that fails at a write to a claim or a node, before the write or right
// after it.
type crashingClient struct {
	cluster.Client
	left  int
	after bool
}

var errCrashed = fault.E("writing", fault.Unknown, errors.New("the process has crashed"))

func (f *crashingClient) Update(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	return f.write(o, func() (cluster.Object, error) { return f.Client.Update(ctx, o) })
}

func (f *crashingClient) UpdateStatus(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	return f.write(o, func() (cluster.Object, error) { return f.Client.UpdateStatus(ctx, o) })
}

func (f *crashingClient) write(o cluster.Object, write func() (cluster.Object, error)) (cluster.Object, error) {
	switch o.(type) {
	case *karpenter.NodeClaim, *corev1.Node:
	default:
		return write()
	}
	if f.left--; f.left > 0 {
		return write()
	}
	if f.left == 0 && f.after {
		_, _ = write()
	}
	return nil, errCrashed
}

// crashAtEveryWrite kills lifecycle before and after each write of a registration; another process
// completes it.
func (e *estate) crashAtEveryWrite() {
	e.mu.Lock()
	e.service = nil
	e.mu.Unlock()
	points := 0
	for at := 1; ; at++ {
		struck := false
		for _, after := range []bool{false, true} {
			name := fmt.Sprintf("death-%d-%t", at, after)
			b := e.newClaim(name, 1000+2*at+len(name))
			b.joinNode(name)
			f := &crashingClient{Client: e.config.Client, left: at, after: after}
			config := e.config
			config.Client = f
			service := lifecycle.New(config)
			e.WaitUntil(time.Minute, "a crash, or a ready node", func() bool {
				_ = service.Step(e.Ctx)
				return f.left <= 0 || b.conditionText("Ready") == "True Ready"
			})
			struck = struck || f.left <= 0
			heir := lifecycle.New(e.config)
			e.WaitUntil(time.Minute, name+" to start", func() bool {
				e.RequireNoError(heir.Step(e.Ctx))
				return b.conditionText("Ready") == "True Ready"
			})
			b.requireRegistered(name)
			points++
		}
		if !struck {
			break
		}
	}
	e.Logf("%d crashes while nodes registered", points-2)
	if points < 8 {
		e.Errorf("only %d crashes: the writes were not counted", points-2)
	}
}
