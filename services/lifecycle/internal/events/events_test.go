package events_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/shared/cluster"
)

func TestRepetition(t *testing.T) {
	now := time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	node := func(name, uid string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
	}
	say := func(r events.Reason, n *corev1.Node, left int) cluster.Event {
		return r.About(cluster.Nodes, n, now, "%d pods are left", left).Event
	}
	first := say(events.FailedDraining, node("n", "1"), 5)
	if first.Type != "Warning" || first.Reason != "FailedDraining" || first.Message != "5 pods are left" || first.Dedupe != 2*time.Minute || !first.Now.Equal(now) {
		t.Errorf("%+v", first)
	}
	if first.Identity() != say(events.FailedDraining, node("n", "1"), 4).Identity() {
		t.Error("a message that counts is news")
	}
	if first.Identity() == say(events.FailedDraining, node("m", "1"), 5).Identity() {
		t.Error("another node is no news")
	}
	if first.Identity() == say(events.FailedDraining, node("n", "2"), 5).Identity() {
		t.Error("another node of that name is no news")
	}
	if first.Identity() == say(events.Evicted, node("n", "1"), 5).Identity() {
		t.Error("another reason is no news")
	}
	exact := say(events.FailedConsistencyCheck, node("n", "1"), 5)
	if exact.Identity() == say(events.FailedConsistencyCheck, node("n", "1"), 4).Identity() {
		t.Error("another finding is no news")
	}
	if got := say(events.NodeRepairBlocked, node("n", "1"), 1).Dedupe; got != 15*time.Minute {
		t.Errorf("repeated after %s", got)
	}
}
