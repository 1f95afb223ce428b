package disruption

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// TestTerminateFirstIsTheLastResort draws clusters in reservations whose nodes are drifted or unhealthy. A
// node goes first only if it is in a reservation, if nothing replaces it with the gate off, and if its pods have places once the reservation
// has one more free instance; no two nodes count on the same instance. The gate changes nothing else.
func TestTerminateFirstIsTheLastResort(t *testing.T) {
	found := map[Method]int{}
	rapid.Check(t, func(t *rapid.T) {
		capacityTypes := rapid.SampledFrom([][]string{{karpenter.CapacityTypeReserved}, {karpenter.CapacityTypeReserved, karpenter.CapacityTypeOnDemand}}).Draw(t, "capacity types")
		if rapid.IntRange(0, 3).Draw(t, "mostly reserved") > 0 {
			capacityTypes = capacityTypes[:1]
		}
		method, disrupted := Drift, drift
		if rapid.Bool().Draw(t, "repair") {
			method, disrupted = Repair, func(ago time.Duration) func(*node) { return sick("KernelReady", 30*time.Minute+ago) }
		}
		var nodes []node
		for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
			edits := []func(*node){with(rapid.IntRange(0, 3).Draw(t, "pods"))}
			if rapid.IntRange(0, 4).Draw(t, "reserved") > 0 {
				edits = append(edits, inReservation(rapid.SampledFrom([]string{"cr-1", "cr-2"}).Draw(t, "reservation")))
			}
			if rapid.IntRange(0, 3).Draw(t, "disrupted") > 0 {
				edits = append(edits, disrupted(time.Duration(i+1)*time.Minute))
			}
			if rapid.IntRange(0, 5).Draw(t, "going") == 0 {
				edits = append(edits, func(n *node) { n.MarkedForDeletion = true })
			}
			nodes = append(nodes, fixture.Node(fmt.Sprint("n", i), "t4g.medium", edits...))
		}
		s, cat := reservedSnapshot(0, fixture.Pool(never, fixture.Budgets("100%"), allowing(capacityTypes...)), nodes...)
		cat.Reservations[0].Count = int64(rapid.IntRange(0, 1).Draw(t, "free"))
		stock := instancetypes.New(s, cat)
		s.Repair = &repair.PolicySet{Policies: repair.Provider(false), Unhealthy: intstr.FromString("100%"), TerminateFirst: method == Repair}
		s.Settings.Gates.TerminateFirstDrift = method == Drift
		on := Evaluate(s, stock, Options{})
		s.Repair = &repair.PolicySet{Policies: repair.Provider(false), Unhealthy: intstr.FromString("100%")}
		s.Settings.Gates.TerminateFirstDrift = false
		off := Evaluate(s, stock, Options{})
		replaced, credited := describeReasons(s, off), map[string]bool{}
		for k, c := range on.Commands {
			if c.TerminateFirst == "" {
				if len(credited) == 0 && (k >= len(replaced) || describeReasons(s, on)[k] != replaced[k]) {
					t.Errorf("the gate changes %q to %q", replaced, describeReasons(s, on))
				}
				continue
			}
			found[c.Method]++
			n := &s.Nodes[c.Nodes[0]]
			id := n.Labels[karpenter.LabelCapacityReservationID]
			if c.Method != method || len(c.Nodes) != 1 || len(c.Result.Nodes) > 0 || n.Drift == nil && n.Unhealthy == nil || n.Labels[karpenter.CapacityTypeLabelKey] != karpenter.CapacityTypeReserved {
				t.Errorf("%s goes first: %+v", n.Name, c)
			}
			if credited[id] {
				t.Errorf("%s is the second that counts on an instance of %s", n.Name, id)
			}
			credited[id] = true
			if slices.ContainsFunc(off.Commands, func(o Command) bool { return slices.Contains(o.Nodes, c.Nodes[0]) }) && k == 0 {
				t.Errorf("%s goes first, and with the gate off %q", n.Name, replaced)
			}
			if k == 0 && unplacedPods(solver.NewSimulation(s, stock.CreditReservation(id, 1)).SimulateRemoval(c.Nodes[0])) > 0 {
				t.Errorf("%s goes first, and its pods have no places", n.Name)
			}
		}
	})
	if found[Drift] == 0 || found[Repair] == 0 {
		t.Errorf("nodes went first: %v, so the test cannot fail", found)
	}
}

func unplacedPods(r planning.Result) int {
	count := 0
	for _, u := range r.Unplaced {
		count += len(u.Pods)
	}
	return count
}
