package nodeclaim_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

const (
	providerID = "aws:///eu-west-1a/i-0123456789abcdef0"
	outboxUID  = "outbox-uid"
)

// change modifies the input of a decision.
type change func(*nodeclaim.View)

// view returns a claim that was admitted a minute ago and is not launched, with these changes.
func view(changes ...change) nodeclaim.View {
	c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: "c", UID: "claim-uid", Generation: 1, CreationTimestamp: metav1.NewTime(noon.Add(-time.Minute)),
		Finalizers: []string{karpenter.TerminationFinalizer},
		Labels:     map[string]string{karpenter.NodePoolLabelKey: "default"},
		Annotations: map[string]string{
			launchspec.BatchAnnotation: outboxUID + "/7", admission.AdmittedAnnotation: "2026-11-20T11:59:00Z",
		},
	}}
	v := nodeclaim.View{
		Claim: c, Cluster: "prod", Now: noon,
		MayRepeat:    func(string) bool { return true },
		Retry:        func(string) {},
		Registration: nodeclaim.Registration{MayCheckConsistency: func() bool { return false }},
		Termination: nodeclaim.Termination{
			MayEvict: func(*corev1.Pod) bool { return true }, MayDelete: func(*corev1.Pod) bool { return true },
			EvictionResult: func(*corev1.Pod) (time.Time, error) { return time.Time{}, nil },
			Budgets:        func(string) []*policyv1.PodDisruptionBudget { return nil },
			VolumeClaim:    func(cluster.Key) *corev1.PersistentVolumeClaim { return nil },
		},
	}
	withConditions(&v)
	for _, change := range changes {
		change(&v)
	}
	if v.PodsNow == nil {
		v.PodsNow = func() ([]*corev1.Pod, bool) { return v.Pods, true }
	}
	if v.Live == nil {
		claim, node := v.Claim.DeepCopy(), v.Node.DeepCopy()
		v.Live = func() (*karpenter.NodeClaim, *corev1.Node) { return claim, node }
	}
	return v
}

func (v change) and(more ...change) change {
	return func(view *nodeclaim.View) {
		v(view)
		for _, m := range more {
			m(view)
		}
	}
}

// The phases of a claim, each in addition to the previous one, with the claim's conditions.
func launched(v *nodeclaim.View) {
	v.Claim.Status.ProviderID = providerID
	v.Claim.Labels[corev1.LabelInstanceTypeStable] = "m6i.large"
	v.Claim.Labels[corev1.LabelTopologyZone] = "eu-west-1a"
	v.Claim.Labels[corev1.LabelTopologyRegion] = "eu-west-1"
	v.Claim.Labels[karpenter.CapacityTypeLabelKey] = "spot"
	withConditions(v)
}

func joined(v *nodeclaim.View) {
	launched(v)
	nodes(v, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "n", UID: "node-uid", Labels: map[string]string{"kubelet": "set", "mine": "no"},
	}})
	v.Node.Spec.ProviderID = providerID
	v.Node.Spec.Taints = []corev1.Taint{karpenter.UnregisteredTaint(), {Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
}

func registered(v *nodeclaim.View) {
	joined(v)
	v.Node.Labels[karpenter.NodeRegisteredLabelKey] = "true"
	v.Node.Finalizers = []string{karpenter.TerminationFinalizer}
	v.Node.Spec.Taints = nil
	v.Claim.Status.NodeName = "n"
	v.Claim.Annotations[karpenter.InstanceTaggedAnnotationKey] = "true"
	withConditions(v)
	withConditions(v)
}

func initialized(v *nodeclaim.View) {
	registered(v)
	nodeReady(corev1.ConditionTrue)(v)
	v.Node.Labels[karpenter.NodeInitializedLabelKey] = "true"
	withConditions(v)
	condition(karpenter.ConditionTypeConsistentStateFound)(v)
}

// withConditions sets the claim's conditions as of a minute ago.
func withConditions(v *nodeclaim.View) {
	v.Claim.Status.Conditions = conditions.Compute(conditions.Observed{Claim: v.Claim, Nodes: v.Nodes, Now: noon.Add(-time.Minute)})
}

// nodes sets the nodes of the claim, the main one first.
func nodes(v *nodeclaim.View, all ...*corev1.Node) {
	v.Node, v.Nodes = nil, all
	if len(all) > 0 {
		v.Node = all[0]
	}
}

func nodeless(v *nodeclaim.View) { nodes(v) }

func condition(kind string) change {
	return func(v *nodeclaim.View) {
		v.Claim.Status.Conditions = conditions.WithTrue(v.Claim, kind, noon.Add(-time.Minute))
	}
}

func nodeReady(status corev1.ConditionStatus) change {
	return func(v *nodeclaim.View) {
		v.Node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	}
}

// withAge sets the claim's age.
func withAge(d time.Duration) change {
	return func(v *nodeclaim.View) { v.Claim.CreationTimestamp = metav1.NewTime(noon.Add(-d)) }
}

// beingDeleted sets that the claim was deleted a while ago.
func beingDeleted(since time.Duration) change {
	return func(v *nodeclaim.View) { at := metav1.NewTime(noon.Add(-since)); v.Claim.DeletionTimestamp = &at }
}

func withUnboundSibling(v *nodeclaim.View) { v.HasUnboundSibling = func() bool { return true } }

func annotated(key, value string) change {
	return func(v *nodeclaim.View) { v.Claim.Annotations[key] = value }
}

func refused(mark string) change { return func(v *nodeclaim.View) { v.Refused = mark } }

func markedGone(v *nodeclaim.View) { v.Gone = true }

func unadmitted(v *nodeclaim.View) { delete(v.Claim.Annotations, admission.AdmittedAnnotation) }

func planless(v *nodeclaim.View) { delete(v.Claim.Annotations, launchspec.BatchAnnotation) }

// withZonalShift sets a zonal shift of the instance's zone.
func withZonalShift(v *nodeclaim.View) { v.ZoneShifted = true }

func requestedRecently(v *nodeclaim.View) { v.MayRepeat = func(string) bool { return false } }

func startup(taint corev1.Taint) change {
	return func(v *nodeclaim.View) { v.Claim.Spec.StartupTaints = append(v.Claim.Spec.StartupTaints, taint) }
}

func tainted(taint corev1.Taint) change {
	return func(v *nodeclaim.View) { v.Node.Spec.Taints = append(v.Node.Spec.Taints, taint) }
}

func requests(name, amount string) change {
	return func(v *nodeclaim.View) {
		v.Claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(amount)}
	}
}

func allocatable(name, amount string) change {
	return func(v *nodeclaim.View) {
		v.Node.Status.Allocatable = corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(amount)}
	}
}

// pods adds running pods to the node.
func pods(names ...string) change {
	return func(v *nodeclaim.View) {
		for _, name := range names {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
			p.Status.Phase = corev1.PodRunning
			v.Pods = append(v.Pods, p)
		}
	}
}

// outboxAt returns an outbox with this sequence number and state, and the listed claims.
func outboxAt(t *testing.T, seq uint64, state outbox.State, claims ...string) change {
	t.Helper()
	server := memcluster.New(memcluster.Options{})
	h, err := outbox.Read(t.Context(), server, "kube-system")
	if err != nil {
		t.Fatal(err)
	}
	swap := func(change func(*outbox.Outbox)) {
		next := h.Outbox
		change(&next)
		if h, err = h.Swap(t.Context(), server, next); err != nil {
			t.Fatal(err)
		}
	}
	for range seq {
		swap(func(o *outbox.Outbox) {
			*o = outbox.Outbox{Seq: o.Seq + 1, State: outbox.Sent, Batch: event.Ref{Kind: "batches", Digest: event.DigestOf(nil), Size: 1}}
		})
	}
	if state != outbox.Sent {
		swap(func(o *outbox.Outbox) { o.State, o.Plan, o.Claims = outbox.Applying, event.DigestOf(nil), claims })
	}
	if state == outbox.Done {
		swap(func(o *outbox.Outbox) { o.State = outbox.Done })
	}
	return func(v *nodeclaim.View) {
		v.Outbox = &h
		if v.Claim.Annotations[launchspec.BatchAnnotation] == outboxUID+"/7" {
			v.Claim.Annotations[launchspec.BatchAnnotation] = h.UID() + "/7"
		}
	}
}

// formatEffects formats effects.
func formatEffects(effects []effect.Effect) []string {
	var out []string
	for _, e := range effects {
		out = append(out, word(e))
	}
	return out
}

func word(e effect.Effect) string {
	switch e := e.(type) {
	case effect.Update:
		return "update " + e.Object.GetName()
	case effect.UpdateStatus:
		return "status " + e.Object.GetName()
	case effect.Delete:
		uid := string(e.UID)
		if e.Read != nil {
			uid += " as read"
		}
		return "delete " + e.Key.Name + " " + uid + ": " + e.Why
	case effect.Evict:
		return "evict " + e.Pod.Name
	case effect.DeletePod:
		return fmt.Sprintf("delete pod %s in %d s", e.Pod.Name, e.GraceSeconds)
	case effect.Send:
		return "send " + string(e.Body.EventType())
	case effect.Report:
		return "report " + e.Event.Reason
	default:
		return fmt.Sprintf("%T", e)
	}
}
