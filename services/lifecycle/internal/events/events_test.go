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

func TestEventIdentity(t *testing.T) {
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
		t.Error("the same Event with another count has the same identity")
	}
	if first.Identity() == say(events.FailedDraining, node("m", "1"), 5).Identity() {
		t.Error("Events about two nodes have one identity")
	}
	if first.Identity() == say(events.FailedDraining, node("n", "2"), 5).Identity() {
		t.Error("Events about two nodes of one name have one identity")
	}
	if first.Identity() == say(events.Evicted, node("n", "1"), 5).Identity() {
		t.Error("Events with two reasons have one identity")
	}
	exact := say(events.FailedConsistencyCheck, node("n", "1"), 5)
	if exact.Identity() == say(events.FailedConsistencyCheck, node("n", "1"), 4).Identity() {
		t.Error("Events with two findings have one identity")
	}
	if got := say(events.NodeRepairBlocked, node("n", "1"), 1).Dedupe; got != 15*time.Minute {
		t.Errorf("the Event is repeated after %s", got)
	}
}
