package scenario_test

import (
	"testing"
	"time"
)

func TestFleetsHaveRested(t *testing.T) {
	s := shop(t)
	snapshot, _ := s.Fleet()
	if len(snapshot.PendingPods) != 2 || len(snapshot.Nodes) != 2 {
		t.Fatalf("%d classes wait, and there are %d nodes", len(snapshot.PendingPods), len(snapshot.Nodes))
	}
	uids := map[string]bool{}
	for _, n := range snapshot.Nodes {
		if snapshot.TakenAt.Sub(n.LastPodEvent) < 365*24*time.Hour || !n.LastPodEvent.Equal(n.InitializedAt) {
			t.Errorf("on %s something happened at %s", n.Name, n.LastPodEvent)
		}
		for _, class := range n.Pods {
			for _, pod := range class.Pods {
				uids[pod.UID] = true
			}
		}
	}
	if len(uids) != 2 || uids[""] {
		t.Errorf("two pods run, by the UIDs %v", uids)
	}
}
