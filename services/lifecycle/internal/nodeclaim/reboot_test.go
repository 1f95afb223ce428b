package nodeclaim_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const (
	drainLimit = karpenter.RebootTerminationGracePeriodAnnotationKey
	preBootID  = karpenter.RebootPreBootIDAnnotationKey
	settleTime = 2*time.Minute + 30*time.Second
)

// requested sets that the reboot of an initialized node was requested a while ago.
func requested(ago time.Duration) change {
	return func(v *nodeclaim.View) {
		initialized(v)
		v.Node.Status.NodeInfo.BootID = "boot-1"
		v.Claim.Status.Conditions = conditions.With(v.Claim, metav1.Condition{
			Type: karpenter.ConditionTypeRebooting, Status: metav1.ConditionTrue, Reason: karpenter.RebootRequestedReason, Message: "rebooting for X/Y",
		}, noon.Add(-ago))
	}
}

// issuing sets that the boot ID was recorded, and the first request sent, a while ago.
func issuing(ago time.Duration) change {
	return requested(ago+time.Minute).and(rebootTainted, annotated(preBootID, "boot-1"), progress(`{"since":"`+noon.Add(-ago).Format(time.RFC3339)+`"}`))
}

// issued sets that EC2 accepted the reboot a while ago.
func issued(ago time.Duration) change {
	return issuing(ago).and(func(v *nodeclaim.View) {
		delete(v.Node.Labels, karpenter.NodeInitializedLabelKey)
		for _, c := range []metav1.Condition{
			{Type: karpenter.ConditionTypeRebooting, Status: metav1.ConditionTrue, Reason: karpenter.RebootIssuedReason, Message: "rebooting for X/Y"},
			{Type: karpenter.ConditionTypeInitialized, Status: metav1.ConditionUnknown, Reason: karpenter.ConditionTypeRebooting, Message: "node is rebooting"},
		} {
			v.Claim.Status.Conditions = conditions.With(v.Claim, c, noon.Add(-ago))
		}
	}, progress(`{"since":"`+noon.Add(-ago).Format(time.RFC3339)+`","issued":"`+noon.Add(-ago).Format(time.RFC3339)+`"}`))
}

func progress(text string) change { return annotated(nodeclaim.RebootAnnotation, text) }

func rebootTainted(v *nodeclaim.View) { tainted(karpenter.RebootingTaint())(v) }

func rebootUntainted(v *nodeclaim.View) { v.Node.Spec.Taints = nil }

func booted(v *nodeclaim.View) { v.Node.Status.NodeInfo.BootID = "boot-2" }

// unseen sets that the API server has the pods that are set, and the cache does not.
func unseen(set change) change {
	return func(v *nodeclaim.View) {
		other := nodeclaim.View{}
		set(&other)
		v.PodsNow = func() ([]*corev1.Pod, bool) { return other.Pods, true }
	}
}

// live sets that the claim and its node are as given on the API server. The cache does not contain that yet.
func live(is change) change {
	return func(v *nodeclaim.View) {
		other := view(is)
		v.Live = func() (*karpenter.NodeClaim, *corev1.Node) { return other.Claim, other.Node }
	}
}

func running(v *nodeclaim.View) {
	v.Pods = []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}}
}

// The steps of a reboot. The cases are those of Karpenter's pkg/controllers/nodeclaim/reboot/suite_test.go.
func TestReboot(t *testing.T) {
	send, record, write, node := []string{"send reboot.requested.v1"}, []string{"update c"}, []string{"status c"}, []string{"update n"}
	fails := func(why string) []string {
		return []string{"delete c claim-uid as read: reboot failed: " + why, "report RebootFailed"}
	}
	const notIssued, notRecovered = "reboot was not issued within the issuance timeout", "node did not recover within the observation window"
	denied, rejected := progress(`{"since":"2026-11-20T12:00:00Z","refusal":"denied"}`), "reboot rejected by the cloud provider: denied"
	unready := nodeReady(corev1.ConditionFalse)
	run(t, []row{
		{"the taint comes first", view(requested(0), running), node},
		{"no taint after a reboot that another replica has completed", view(requested(0), running, live(initialized)), nil},
		{"a drained node waits for 5 s", view(requested(4*time.Second), rebootTainted), nil},
		{"a drained node", view(requested(5*time.Second), rebootTainted), record},
		{"pods are evicted", view(requested(time.Minute), rebootTainted, running), []string{"evict p"}},
		{"a drain without a limit", view(requested(24*time.Hour), rebootTainted, running), []string{"evict p"}},
		{"within the limit of the drain", view(requested(59*time.Second), rebootTainted, running, annotated(drainLimit, "1m")), []string{"evict p"}},
		{"a pod that the cache does not contain yet", view(requested(time.Minute), rebootTainted, unseen(running)), []string{"evict p"}},
		{"its pods cannot be read", view(requested(time.Minute), rebootTainted, func(v *nodeclaim.View) { v.PodsNow = func() ([]*corev1.Pod, bool) { return nil, false } }), nil},
		{"its pods cannot be read at the limit of the drain", view(requested(time.Minute), rebootTainted, annotated(drainLimit, "1m"), func(v *nodeclaim.View) { v.PodsNow = func() ([]*corev1.Pod, bool) { return nil, false } }), record},
		{"pods stay at the limit of the drain", view(requested(time.Minute), rebootTainted, running, annotated(drainLimit, "1m")), record},
		{"a limit below 5 s", view(requested(4*time.Second), rebootTainted, running, annotated(drainLimit, "1s")), []string{"evict p"}},
		{"no drain with a limit of zero", view(requested(0), rebootTainted, running, annotated(drainLimit, "0s")), record},
		{"a limit that is no duration", view(requested(0), rebootTainted, annotated(drainLimit, "soon")), []string{"update n", "status c", "report RebootFailed"}},
		{"a negative limit", view(requested(0), annotated(drainLimit, "-1s")), []string{"status c", "report RebootFailed"}},
		{"while its proposal exists", view(requested(time.Minute), annotated("joist.sh/proposal", `{"id":"p","reboot":"X/Y"}`)), nil},
		{"the request is sent", view(issuing(0)), send},
		{"while the request is valid", view(issuing(30 * time.Second)), nil},
		{"the request is repeated when it has expired", view(issuing(4 * time.Minute)), send},
		{"no request during a zonal shift", view(issuing(0), func(v *nodeclaim.View) { v.ZoneShifted = true }), nil},
		{"no request for a reboot that another replica has completed", view(issuing(0), live(issued(0))), nil},
		{"no request for a node that was rebooted", view(issuing(0), live(issuing(0).and(booted))), nil},
		{"no request for a node that accepts pods", view(issuing(0), live(issuing(0).and(rebootUntainted))), nil},
		{"no request for a NodeClaim that is being deleted", view(issuing(0), live(issuing(0).and(beingDeleted(0)))), nil},
		{"no request if the node cannot be read", view(issuing(0), live(issuing(0).and(nodeless))), nil},
		{"not issued in time", view(issuing(5*time.Minute + time.Second)), record},
		{"refused", view(issuing(0), denied), record},
		{"marked as failed", view(issuing(0), progress(`{"since":"2026-11-20T12:00:00Z","refusal":"denied","failure":"`+rejected+`"}`)), fails(rejected)},
		{"marked as failed, and then accepted", view(issuing(0), progress(`{"since":"2026-11-20T11:54:00Z","issued":"2026-11-20T12:00:00Z","failure":"`+notIssued+`"}`)), fails(notIssued)},
		{"marked as failed, and then recovered", view(issued(settleTime), booted, rebootUntainted, progress(`{"issued":"2026-11-20T11:30:00Z","failure":"`+notRecovered+`"}`)), fails(notRecovered)},
		{"the boot ID has changed although the answer was lost", view(issuing(time.Minute), booted), record},
		{"accepted", view(issuing(time.Minute), progress(`{"since":"2026-11-20T11:59:00Z","issued":"2026-11-20T12:00:00Z"}`)), write},
		{"accepted at the last moment", view(issuing(6*time.Minute), progress(`{"since":"2026-11-20T11:54:00Z","issued":"2026-11-20T11:59:00Z"}`)), write},
		{"accepted, and the node is gone", view(issuing(time.Minute), progress(`{"since":"2026-11-20T11:59:00Z","issued":"2026-11-20T12:00:00Z"}`), nodeless), write},
		{"Karpenter recorded the boot ID", view(issuing(time.Hour), progress("")), record},
		{"the node is gone before the drain", view(requested(5*time.Minute), nodeless), nil},
		{"the node is gone before the drain for too long", view(requested(5*time.Minute+time.Second), nodeless), record},
		{"issued, but labelled as initialized", view(issued(0), func(v *nodeclaim.View) { v.Node.Labels[karpenter.NodeInitializedLabelKey] = "true" }), node},
		{"issued", view(issued(20 * time.Minute)), nil},
		{"not recovered in time", view(issued(20*time.Minute+time.Second), booted, unready), record},
		{"the node is gone", view(issued(20*time.Minute), nodeless), nil},
		{"the node is gone for too long", view(issued(20*time.Minute+time.Second), nodeless), record},
		{"a new boot while requests are valid", view(issued(settleTime-time.Second), booted), nil},
		{"a new boot after all requests have expired", view(issued(settleTime), booted, unready), []string{"update n", "report RebootObserved"}},
		{"a new boot, and another reboot has begun", view(issued(settleTime), booted, unready, live(issuing(0).and(booted))), nil},
		{"a new boot that is not ready", view(issued(settleTime), booted, rebootUntainted, unready), nil},
		{"a new boot that is ready", view(issued(settleTime), booted, rebootUntainted), write},
		{"issued by Karpenter", view(issued(settleTime), progress(""), booted, rebootUntainted), write},
		{"issued by Karpenter, not recovered in time", view(issued(20*time.Minute+time.Second), progress("")), record},
		{"its NodeClaim is being deleted", view(issued(0), beingDeleted(0), func(v *nodeclaim.View) { v.Gone = true; v.Node = nil }), []string{"send terminate.requested.v1", "update c"}},
	})
}

// EC2's answer and the new boot end in conditions, and the progress is then removed.
func TestRebootConditions(t *testing.T) {
	v := view(issuing(time.Minute), progress(`{"since":"2026-11-20T11:59:00Z","issued":"2026-11-20T12:00:00Z"}`))
	c := object[*karpenter.NodeClaim](t, v)
	for kind, want := range map[string]metav1.Condition{
		karpenter.ConditionTypeRebooting:   {Status: "True", Reason: "RebootIssued", Message: "rebooting for X/Y", LastTransitionTime: metav1.NewTime(noon.Add(-2 * time.Minute))},
		karpenter.ConditionTypeInitialized: {Status: "Unknown", Reason: "Rebooting", Message: "node is rebooting", LastTransitionTime: metav1.NewTime(noon)},
	} {
		got, _ := c.Status.Conditions.Get(kind)
		if got.Status != want.Status || got.Reason != want.Reason || got.Message != want.Message || !got.LastTransitionTime.Equal(&want.LastTransitionTime) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	v = view(issued(settleTime), booted, rebootUntainted)
	ended, _ := object[*karpenter.NodeClaim](t, v).Status.Conditions.Get(karpenter.ConditionTypeRebooting)
	if ended.Status != "False" || ended.Reason != "RebootSucceeded" || ended.Message != "node rebooted and rejoined the cluster" {
		t.Errorf("got %+v", ended)
	}
	v.Claim.Status = object[*karpenter.NodeClaim](t, v).Status
	rest := object[*karpenter.NodeClaim](t, v).Annotations
	if rest[preBootID] != "" || rest[nodeclaim.RebootAnnotation] != "" {
		t.Errorf("the claim has the annotations %v", rest)
	}
	v = view(requested(0), annotated(drainLimit, "soon"))
	refused, _ := written[*karpenter.NodeClaim](t, v).Status.Conditions.Get(karpenter.ConditionTypeRebooting)
	if refused.Reason != "RebootFailed" || !strings.HasPrefix(refused.Message, "invalid reboot request: ") {
		t.Errorf("got %+v", refused)
	}
}

// A failure limits the drain of the node, and no later answer replaces it. An earlier deadline stays.
func TestFailedRebootIsMarked(t *testing.T) {
	denied := progress(`{"since":"2026-11-20T12:00:00Z","refusal":"denied"}`)
	for name, c := range map[string]struct {
		view     nodeclaim.View
		deadline string
	}{
		"without a limit":     {view(issuing(0), denied), ""},
		"with a limit":        {view(issuing(0), annotated(drainLimit, "1m"), denied), noon.Add(time.Minute).Format(time.RFC3339)},
		"an earlier deadline": {view(issuing(0), annotated(drainLimit, "1m"), annotated(karpenter.NodeClaimTerminationTimestampAnnotationKey, "2026-11-20T12:00:30Z"), denied), "2026-11-20T12:00:30Z"},
	} {
		claim := object[*karpenter.NodeClaim](t, c.view)
		if got := claim.Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey]; got != c.deadline {
			t.Errorf("%s: the deadline is %q, want %q", name, got, c.deadline)
		}
		if !strings.Contains(claim.Annotations[nodeclaim.RebootAnnotation], "rejected by the cloud provider: denied") || nodeclaim.RecordRebootAnswer(claim, "", noon) {
			t.Errorf("%s: the progress is %s", name, claim.Annotations[nodeclaim.RebootAnnotation])
		}
	}
}

// All requests of a reboot have one operation, which the next reboot does not repeat.
func TestRebootOperation(t *testing.T) {
	v := view(issuing(time.Minute))
	want := "claim-uid-1795175880000000000-boot-1"
	if got := nodeclaim.RebootOperation(v.Claim); got != want {
		t.Errorf("the operation is %q, want %q", got, want)
	}
	for name, c := range map[string]change{"before the drain": requested(time.Minute), "issued": issued(0), "initialized": initialized} {
		if got := nodeclaim.RebootOperation(view(c).Claim); got != "" {
			t.Errorf("%s: the operation is %q", name, got)
		}
	}
	first := nodeclaim.RecordRebootAnswer(v.Claim, "", noon)
	if again := nodeclaim.RecordRebootAnswer(v.Claim, "denied", noon); !first || again {
		t.Errorf("the first answer was recorded: %t, the second: %t", first, again)
	}
	if _, err := (event.Maker{Service: "lifecycle"}).New(noon, event.RebootRequested{InstanceID: "i-1", Claim: "c", ClaimUID: "u", Operation: want}, nil); err != nil {
		t.Error(err)
	}
}

// A request is sent soon after its decision, so that it has expired when the node accepts pods again, also if its replica was
// paused.
func TestRebootRequestIsSentSoon(t *testing.T) {
	for _, e := range nodeclaim.Next(view(issuing(0))) {
		if send, ok := e.(effect.Send); ok {
			if in := send.By.Sub(noon); in <= 0 || in+event.RebootRequestedType.TTL() >= settleTime {
				t.Errorf("the request may be sent for %s", in)
			}
			return
		}
	}
	t.Fatal("no request is sent")
}
