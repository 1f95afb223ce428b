package nodeclaim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const excluded = "node.kubernetes.io/exclude-from-external-load-balancers"

func disrupted(v *nodeclaim.View) {
	v.Node.Spec.Taints = append(v.Node.Spec.Taints, karpenter.DisruptedTaint())
	v.Node.Labels[excluded] = "karpenter"
}

func period(d time.Duration) change {
	return func(v *nodeclaim.View) { v.Claim.Spec.TerminationGracePeriod = &metav1.Duration{Duration: d} }
}

func due(in time.Duration) change {
	return annotated(karpenter.NodeClaimTerminationTimestampAnnotationKey, noon.Add(in).Format(time.RFC3339))
}

// draining sets that the drain began a while ago.
func draining(since time.Duration) change {
	return func(v *nodeclaim.View) {
		v.Claim.Status.Conditions = v.Claim.Status.Conditions.With(metav1.Condition{
			Type: karpenter.ConditionTypeDrained, Status: metav1.ConditionUnknown, Reason: "Draining", Message: "Draining", ObservedGeneration: 1,
		}, noon.Add(-since))
	}
}

func nodeDeleted(v *nodeclaim.View) { at := metav1.NewTime(noon); v.Node.DeletionTimestamp = &at }

func noEviction(v *nodeclaim.View) { v.MayEvict = func(*corev1.Pod) bool { return false } }

// attached adds VolumeAttachments of the node.
func attached(names ...string) change {
	return func(v *nodeclaim.View) {
		for _, name := range names {
			a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}}
			a.Spec.Source.PersistentVolumeName = &name
			v.Attachments = append(v.Attachments, a)
		}
	}
}

var (
	leaves = change(initialized).and(beingDeleted(time.Minute))
	marked = leaves.and(disrupted)
	drains = marked.and(draining(time.Minute), nodeDeleted)
)

// The order of a drain: taint, deadline, start of the drain, deletion of the Node, pods, volumes,
// instance.
func TestDrainOrder(t *testing.T) {
	terminating := condition(karpenter.ConditionTypeInstanceTerminating)
	drained := condition(karpenter.ConditionTypeDrained)
	justDrained := func(v *nodeclaim.View) {
		v.Claim.Status.Conditions = conditions.WithTrue(v.Claim, karpenter.ConditionTypeDrained, noon.Add(-time.Second))
	}
	run(t, []row{
		{"taint first", view(leaves, pods("web")), []string{"update n", "status c"}},
		{"then the deadline of terminationGracePeriod", view(leaves, period(time.Hour), pods("web")), []string{"update n", "update c"}},
		{"deadline before the start of the drain", view(marked, period(time.Hour), pods("web")), []string{"update c"}},
		{"start of the drain", view(marked, period(time.Hour), due(59*time.Minute), pods("web")), []string{"status c"}},
		{"deletion of the Node and evictions", view(marked, draining(0), pods("web", "api")), []string{"delete n node-uid: its NodeClaim is being deleted", "evict web", "evict api"}},
		{"evictions are limited", view(drains, pods("web"), noEviction), nil},
		{"deletion past the budgets near the deadline", view(drains, pods("web"), due(20*time.Second), requestedRecently), []string{"delete pod web in 20 s"}},
		{"pod deletions are limited", view(drains, pods("web"), due(20*time.Second), requestedRecently, func(v *nodeclaim.View) { v.MayDelete = func(*corev1.Pod) bool { return false } }), nil},
		{"drained", view(drains), []string{"status c"}},
		{"volumes are attached", view(drains, attached("a"), requestedRecently), []string{"status c"}},
		{"still", view(drains, drained, attached("a"), condition(karpenter.ConditionTypeVolumesDetached), waitsForVolumes, requestedRecently), nil},
		{"volumes were detached", view(drains, drained, waitsForVolumes), []string{"status c"}},
		{"volumes were detached within MinDrainTime after the drain", view(marked, justDrained, nodeDeleted, waitsForVolumes), []string{"status c"}},
		{"a pod was bound after the drain", view(drains, drained, waitsForVolumes, pods("web")), []string{"evict web"}},
		{"interruption deadline passed", view(drains, pods("web"), due(0), requestedRecently), []string{"delete pod web in 1 s", "status c"}},
		{"termination grace period passed", view(drains, period(time.Minute), pods("web"), due(0), requestedRecently), []string{"delete pod web in 1 s"}},
		{"termination grace period passed a minute ago", view(drains, beingDeleted(2*time.Minute), period(time.Minute), pods("web"), due(-time.Minute), requestedRecently), []string{"delete pod web in 1 s", "status c"}},
		{"without a node", view(launched, beingDeleted(time.Second)), []string{"status c"}},
		{"node that is not registered", view(joined, beingDeleted(time.Minute)), []string{"update n", "status c"}},
		{"a node without the finalizer is not deleted", view(joined, beingDeleted(time.Minute), disrupted, draining(0), pods("web")), []string{"evict web"}},
		{"termination request", view(drains, terminating), []string{"send terminate.requested.v1"}},
		{"termination requested recently", view(drains, terminating, requestedRecently), nil},
		{"no termination during a zonal shift", view(drains, terminating, withZonalShift), nil},
		{"no termination during a zonal shift after the deadline", view(drains, terminating, withZonalShift, due(-time.Minute)), nil},
		{"the drain continues during a zonal shift", view(drains, pods("web"), due(20*time.Second), requestedRecently, withZonalShift), []string{"delete pod web in 20 s"}},
		{"instance terminated during a zonal shift", view(drains, terminating, withZonalShift, markedGone), []string{"update n"}},
		{"termination although pods remain", view(drains, terminating, pods("web")), []string{"send terminate.requested.v1", "evict web"}},
		{"a pod was bound after the termination was requested", view(drains, drained, terminating, pods("web"), requestedRecently), []string{"evict web"}},
	})
	send := nodeclaim.Next(view(drains, terminating))[0].(effect.Send)
	want := event.TerminateRequested{InstanceID: "i-0123456789abcdef0", Claim: "c", ClaimUID: "claim-uid", Reason: "its NodeClaim is being deleted"}
	if diff := cmp.Diff(want, send.Body); diff != "" {
		t.Error(diff)
	}
}

func waitsForVolumes(v *nodeclaim.View) {
	v.Claim.Status.Conditions = v.Claim.Status.Conditions.With(metav1.Condition{
		Type: karpenter.ConditionTypeVolumesDetached, Status: metav1.ConditionUnknown, Reason: "AwaitingVolumeDetachment",
	}, noon)
}

// updated returns the updated object of the type.
func updated[T any](t *testing.T, v nodeclaim.View) T {
	t.Helper()
	effects := nodeclaim.Next(v)
	for _, e := range effects {
		switch e := e.(type) {
		case effect.Update:
			if object, ok := e.Object.(T); ok {
				return object
			}
		case effect.UpdateStatus:
			if object, ok := e.Object.(T); ok {
				return object
			}
		}
	}
	t.Fatalf("got effects %v", formatEffects(effects))
	panic("unreachable")
}

func TestTaintAndLabelBeforeDrain(t *testing.T) {
	other := corev1.Taint{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}
	executes := karpenter.DisruptedTaint()
	executes.Effect = corev1.TaintEffectNoExecute
	for name, spoil := range map[string]change{
		"neither":                            func(*nodeclaim.View) {},
		"the same taint with another effect": tainted(executes),
		"an exclusion label of the user":     change(disrupted).and(func(v *nodeclaim.View) { v.Node.Labels[excluded] = "mine" }),
		"no finalizer":                       change(disrupted).and(func(v *nodeclaim.View) { v.Node.Finalizers = []string{"other"} }),
	} {
		t.Run(name, func(t *testing.T) {
			v := view(leaves, tainted(other), spoil)
			before := v.Node.DeepCopy()
			node := updated[*corev1.Node](t, v)
			if diff := cmp.Diff([]corev1.Taint{other, karpenter.DisruptedTaint()}, node.Spec.Taints); diff != "" {
				t.Errorf("taints:\n%s", diff)
			}
			if node.Labels[excluded] != "karpenter" {
				t.Errorf("labels: %v", node.Labels)
			}
			if n := len(node.Finalizers); n == 0 || node.Finalizers[n-1] != karpenter.TerminationFinalizer {
				t.Errorf("finalizers: %v", node.Finalizers)
			}
			if diff := cmp.Diff(before, v.Node); diff != "" {
				t.Errorf("the node of the cache was changed:\n%s", diff)
			}
		})
	}
	// The API server rejects new finalizers on a node that is being deleted.
	node := updated[*corev1.Node](t, view(leaves, nodeDeleted, func(v *nodeclaim.View) { v.Node.Finalizers = []string{"other"} }))
	if diff := cmp.Diff([]string{"other"}, node.Finalizers); diff != "" {
		t.Error(diff)
	}
}

// MinDrainTime counts from the beginning of the drain, not from the claim's deletion.
func TestMinDrainTime(t *testing.T) {
	old := change(initialized).and(beingDeleted(time.Hour), disrupted, nodeDeleted)
	run(t, []row{
		{"the drain just started", view(old, draining(0)), nil},
		{"before MinDrainTime", view(old, draining(5*time.Second-1)), nil},
		{"after MinDrainTime", view(old, draining(5*time.Second)), []string{"status c"}},
	})
}

// The watch of pods may be late, so the pods of a node that seems empty are read once more. At the
// deadline the node is drained even if the read fails.
func TestEmptyNodeIsReadAgain(t *testing.T) {
	shows := func(read bool, names ...string) change {
		return func(v *nodeclaim.View) {
			unseen := *v
			unseen.Pods = nil
			pods(names...)(&unseen)
			v.PodsNow = func() ([]*corev1.Pod, bool) { return unseen.Pods, read }
		}
	}
	empty := change(initialized).and(beingDeleted(time.Hour), disrupted, nodeDeleted, draining(time.Minute), requestedRecently)
	run(t, []row{
		{"the live node is empty", view(empty, shows(true)), []string{"status c"}},
		{"the live node has a pod", view(empty, shows(true, "web")), []string{"evict web"}},
		{"the read failed", view(empty, shows(false)), nil},
		{"the read failed before the deadline", view(empty, due(time.Second), shows(false)), nil},
		{"the read failed at the deadline", view(empty, due(0), shows(false)), []string{"status c"}},
	})
}

// The earlier of the deadline of a notice and the end of the NodeClaim's own terminationGracePeriod applies.
func TestNoticeDeadlineIsKept(t *testing.T) {
	v := view(drains, period(time.Hour), due(20*time.Second), pods("web"), requestedRecently)
	if diff := cmp.Diff([]string{"delete pod web in 20 s"}, formatEffects(nodeclaim.Next(v))); diff != "" {
		t.Error(diff)
	}
	for name, v := range map[string]nodeclaim.View{
		"without a notice":                   view(marked, period(time.Hour)),
		"after a notice of a later end":      view(marked, period(time.Hour), due(2*time.Hour)),
		"of a drain, after a notice as well": view(drains, period(time.Hour), due(2*time.Hour)),
	} {
		timed := updated[*karpenter.NodeClaim](t, v)
		if got, want := timed.Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey], "2026-11-20T12:59:00Z"; got != want {
			t.Errorf("%s got deadline %s, want %s: an hour after the deletion", name, got, want)
		}
	}
	reported := formatEffects(nodeclaim.Next(view(drains, due(time.Hour), pods("web"))))
	if diff := cmp.Diff([]string{"report TerminationGracePeriodExpiring", "report TerminationGracePeriodExpiring", "evict web"}, reported); diff != "" {
		t.Error(diff)
	}
}

// The conditions at the end of a drain, with Karpenter's texts.
func TestDrainConditions(t *testing.T) {
	for _, test := range []struct {
		name   string
		change change
		want   [4]string // Drained, VolumesDetached, its reason, InstanceTerminating
	}{
		{"no volumes", func(*nodeclaim.View) {}, [4]string{"True", "True", "VolumesDetached", "True"}},
		{"volumes", attached("a", "b"), [4]string{"True", "Unknown", "AwaitingVolumeDetachment", ""}},
		{"volumes remain at the deadline", attached("a").and(due(0)), [4]string{"True", "False", "TerminationGracePeriodElapsed", "True"}},
		{"no volumes at the deadline", due(0), [4]string{"True", "True", "VolumesDetached", "True"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			conditions := updated[*karpenter.NodeClaim](t, view(drains, test.change)).Status.Conditions
			of := func(kind string) metav1.Condition { c, _ := conditions.Get(kind); return c }
			volumes := of(karpenter.ConditionTypeVolumesDetached)
			got := [4]string{
				string(of(karpenter.ConditionTypeDrained).Status), string(volumes.Status), volumes.Reason,
				string(of(karpenter.ConditionTypeInstanceTerminating).Status),
			}
			if got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	v := view(drains, attached("a", "b", "c", "d", "e", "f", "g"))
	if report, ok := nodeclaim.Next(v)[0].(effect.Report); !ok || report.Event.Message != "Awaiting deletion of bound volumeattachments (a, b, c, d, e and 2 other(s))" {
		t.Errorf("got Event %+v", nodeclaim.Next(v)[0])
	}
}

// A blocked drain is reported on the node and the claim, and the condition is written again only
// if its message changes.
func TestStuckDrainIsReported(t *testing.T) {
	refused := func(v *nodeclaim.View) {
		v.EvictionResult = func(*corev1.Pod) (time.Time, error) {
			return noon.Add(-15 * time.Second), fault.F("evicting", fault.Throttled, "no")
		}
	}
	stuck := drains.and(pods("web"), noEviction, refused)
	v := view(stuck)
	if diff := cmp.Diff([]string{"report FailedDraining", "report FailedDraining", "status c"}, formatEffects(nodeclaim.Next(v))); diff != "" {
		t.Fatal(diff)
	}
	const message = "1 pods are waiting to be evicted: pod default/web cannot be evicted: evicting: no"
	written := updated[*karpenter.NodeClaim](t, v)
	c, _ := written.Status.Conditions.Get(karpenter.ConditionTypeDrained)
	if c.Status != metav1.ConditionUnknown || c.Reason != "Draining" || c.Message != message || !c.LastTransitionTime.Time.Equal(noon.Add(-time.Minute)) {
		t.Errorf("got condition %+v", c)
	}
	again := func(v *nodeclaim.View) { v.Claim = written }
	run(t, []row{
		{"the condition has the message already", view(stuck, again), []string{"report FailedDraining", "report FailedDraining"}},
		{"reported recently", view(stuck, requestedRecently), nil},
		{"no longer blocked", view(drains.and(pods("web"), noEviction), again), []string{"status c"}},
	})
}

// An Event on the pod explains its annotation, unless it is a plain "true".
func TestDoNotDisruptEvents(t *testing.T) {
	protected := func(value string, age time.Duration) change {
		return pods("web").and(func(v *nodeclaim.View) {
			started := metav1.NewTime(noon.Add(-age))
			v.Pods[0].Status.StartTime = &started
			v.Pods[0].Annotations = map[string]string{karpenter.DoNotDisruptAnnotationKey: value}
		})
	}
	calm := marked.and(draining(time.Second), nodeDeleted)
	run(t, []row{
		{"without an end", view(calm, protected("true", time.Hour)), nil},
		{"for five minutes, not over", view(calm, protected("5m", time.Minute)), []string{"report DoNotDisruptUntil"}},
		{"for five minutes, over", view(calm, protected("5m", time.Hour)), []string{"evict web", "report DoNotDisruptGracePeriodElapsed"}},
		{"invalid duration", view(calm, protected("soon", time.Hour)), []string{"evict web", "report InvalidDoNotDisruptAnnotation"}},
		{"reported recently", view(calm, protected("5m", time.Minute), requestedRecently), nil},
	})
	v := view(calm, protected("soon", time.Hour))
	for _, e := range nodeclaim.Next(v) {
		report, reported := e.(effect.Report)
		if !reported {
			continue
		}
		recorded := report.Event
		if recorded.About != cluster.Object(v.Pods[0]) || recorded.Kind != cluster.Pods || recorded.Type != "Warning" || !strings.Contains(recorded.Message, "karpenter.sh/do-not-disrupt") || !strings.Contains(recorded.Message, "soon") {
			t.Errorf("got type %s on %s: %s", recorded.Type, recorded.About.GetName(), recorded.Message)
		}
	}
}
