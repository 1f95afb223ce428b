package scenario_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/scheduling"
)

func TestFleetsHaveRested(t *testing.T) {
	s := shop(t)
	snapshot, _ := s.Fleet()
	if len(snapshot.Waiting) != 2 || len(snapshot.Nodes) != 2 {
		t.Fatalf("%d classes wait, and there are %d nodes", len(snapshot.Waiting), len(snapshot.Nodes))
	}
	uids := map[string]bool{}
	for _, n := range snapshot.Nodes {
		if snapshot.Taken.Sub(n.LastPodEvent) < 365*24*time.Hour || !n.LastPodEvent.Equal(n.InitializedAt) {
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
	if cost := s.CostPerHour(); cost <= 0 {
		t.Errorf("the nodes cost %f an hour", cost)
	}
}

// ref finds a pod in a snapshot.
func ref(t *testing.T, s scheduling.Snapshot, name string) scheduling.PodRef {
	t.Helper()
	for _, n := range s.Nodes {
		for _, class := range n.Pods {
			for _, pod := range class.Pods {
				if pod.Name == name {
					return pod
				}
			}
		}
	}
	t.Fatalf("no pod %s runs", name)
	return scheduling.PodRef{}
}

func TestCommandsAreCarriedOut(t *testing.T) {
	s := shop(t)
	snapshot, stock := s.Fleet()
	before := s.CostPerHour()
	var option scheduling.Option
	for _, o := range stock.Types["default"][0].Offers {
		if o.Available && option.InstanceType == "" {
			option = o.Option
		}
	}
	round := s.CarryOut([]string{"node-7"}, scheduling.Result{
		Nominations: []scheduling.Nomination{{Namespace: "default", Pod: ref(t, snapshot, "old-2"), Node: "stranger"}},
		Nodes: []scheduling.PlannedNode{{
			NodePool: "general", NodeClass: "default", Options: []scheduling.Option{option},
			Pods: []scheduling.PlacedPod{{Namespace: "default", Pod: ref(t, snapshot, "old-1")}},
		}},
	})
	if round.PodsMoved != 2 || len(round.Replacements) != 1 || round.Replacements[0].Name != "new-1" || round.CostAfter != s.CostPerHour() || round.CostAfter == before {
		t.Errorf("the round is %+v", round)
	}
	if diff := cmp.Diff(map[string][]string{"stranger": {"old-2"}}, round.Moved); diff != "" {
		t.Error(diff)
	}
	var got []string
	for _, n := range s.FinalNodes() {
		got = append(got, fmt.Sprint(n.Name, " ", n.NodePool, " ", n.InstanceType, " ", n.Pods))
	}
	want := []string{"stranger  m7i.xlarge [default/old-2]", "new-1 general " + option.InstanceType + " [default/old-1]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	after, _ := s.Fleet()
	came := after.Nodes[1]
	if came.Claim != "new-1" || !came.Initialized || came.Labels["team"] != "shop" || came.Pods[0].Pods[0].Node != "new-1" || len(after.Nodes[0].Pods) != 1 {
		t.Errorf("the new node is %+v", came)
	}
}

// Daemons are part of their node, and no pods of the cluster's own.
func TestDaemonsAreNotListed(t *testing.T) {
	s := shop(t)
	if nodes := s.FinalNodes(); len(nodes[0].Pods) != 2 {
		t.Errorf("%s has %v", nodes[0].Name, nodes[0].Pods)
	}
}
