package solver_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// summarizeBriefly describes a plan in one line, with a fingerprint of all that summarizePlan shows, and more.
func summarizeBriefly(r *planning.Result) string {
	onto, fresh := placed(*r)
	existing, newPods := 0, 0
	for _, n := range onto {
		existing += n
	}
	for i := range r.Nodes {
		newPods += len(r.Nodes[i].Pods)
	}
	rules := map[string]bool{}
	for _, u := range r.Unplaced {
		for _, rejection := range u.Rejections {
			rules[rejection.Rule] = true
		}
	}
	text := fmt.Sprintf("$%.4f, %d new nodes for %d pods, %d pods on %d nodes", r.PricePerHour, fresh, newPods, existing, len(onto))
	if n := count(r.Unplaced); n > 0 {
		text += fmt.Sprintf(", %d unplaced (%s)", n, joinKeys(rules))
	}
	if len(r.Allocations) > 0 {
		text += fmt.Sprintf(", %d claims", len(r.Allocations))
	}
	return text + ", " + hashResult(r)
}

// hashText returns a short hash of what write writes.
func hashText(write func(io.Writer)) string {
	h := fnv.New32a()
	write(h)
	return fmt.Sprintf("#%08x", h.Sum32())
}

// hashResult returns a short hash of a result. Prices are rounded, because processors differ in the last bits.
func hashResult(r *planning.Result) string {
	return hashText(func(out io.Writer) {
		for i := range r.Nodes {
			writePlannedNode(out, &r.Nodes[i])
		}
		fmt.Fprintf(out, "%.6f %.6f %t %v\n", r.PricePerHour, r.BoundPerHour, r.Partial, r.OverlayStatuses)
		for _, n := range r.Nominations {
			fmt.Fprintln(out, n.Namespace, n.Pod.UID, n.Pod.Node, n.Claim, n.Node, n.Devices)
		}
		for _, u := range r.Unplaced {
			for _, pod := range u.Pods {
				fmt.Fprintln(out, u.Namespace, pod.UID, pod.Node)
			}
			fmt.Fprintln(out, u.Rejections)
		}
		text, _ := json.Marshal(r.Allocations) // It has only values that JSON can encode.
		_, _ = out.Write(text)
	})
}

func writePlannedNode(out io.Writer, n *planning.PlannedNode) {
	fmt.Fprintf(out, "%s %s %v %.6f %v %t %s\n", n.NodePool, n.NodeClass, n.Requirements, n.PricePerHour, n.DeviceDrivers, n.MinValuesRelaxed, describeRequests(*n))
	for _, o := range n.Offerings {
		fmt.Fprintf(out, "%s %s %s %s %.6f %t\n", o.InstanceType, o.Zone, o.ZoneID, o.CapacityType, o.PricePerHour, o.PricedByOverlay)
	}
	for _, p := range n.Pods {
		fmt.Fprintln(out, p.Namespace, p.Pod.UID, p.Pod.Node, p.Devices)
	}
}

// describeLabels returns labels as text, sorted.
func describeLabels(labels map[string]string) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, key+"="+labels[key])
	}
	return strings.Join(out, ",")
}

// describeWideBatch describes the plan of a batch, and hashes what explain shows for its first class.
func describeWideBatch(w *wideBatch) string {
	stock := w.types()
	result := solver.SolveWithTypes(w.Batch, stock)
	out := summarizeBriefly(&result)
	class := w.Pending[0]
	class.Pods = class.Pods[:1]
	return out + " explained " + hashText(func(out io.Writer) {
		for _, e := range solver.ExplainPools(w.Batch, stock, class) {
			fmt.Fprintln(out, e.NodePool, e.NodeClass, e.Weight, e.Rejection, e.Key)
			writePlannedNode(out, &e.Node)
			for _, one := range e.Types {
				fmt.Fprintf(out, "%s %s %s %s %.6f\n", one.InstanceType, one.Rule, one.Key, one.Cheapest.Offering, one.Cheapest.PricePerHour)
			}
		}
		fmt.Fprintln(out, solver.ExplainNodes(w.Batch, stock, class), solver.FindBufferNodes(w.Snapshot))
		n, err := solver.PlanNode(&w.Snapshot.NodePools[0], class.Spec.Requests, w.Snapshot, w.cat)
		fmt.Fprintln(out, err)
		writePlannedNode(out, &n)
		prices := solver.FindMissingPrices(w.Snapshot, w.cat)
		for _, name := range slices.Sorted(maps.Keys(prices)) {
			fmt.Fprintf(out, "%s %.6f\n", name, prices[name])
		}
	}) + "\n"
}

// describeWideRemovals describes the plans for the removal of each node, which is committed if all pods are placed, and hashes the
// cluster after all of these.
func describeWideRemovals(w *wideBatch) string {
	stock, lines := w.types(), []string{}
	simulation := solver.NewSimulation(w.Snapshot, stock)
	for i := range w.Snapshot.Nodes {
		result, consolidation, one := simulation.SimulateRemoval(i), simulation.SimulateConsolidation(i), simulation.SimulateRemovalWithOneNode(i)
		lines = append(lines, fmt.Sprintf("  %s, consolidation %s, with one node %s", summarizeBriefly(&result), hashResult(&consolidation), hashResult(&one)))
		if reservation := w.Snapshot.Nodes[i].Labels[karpenter.LabelCapacityReservationID]; reservation != "" {
			termination := simulation.SimulateTermination(reservation, i)
			lines = append(lines, "  termination "+hashResult(&termination))
		}
		if len(result.Unplaced) == 0 && !result.Partial {
			if stranded := simulation.FindStrandedPods(result, i); len(stranded) > 0 {
				lines = append(lines, fmt.Sprintf("  stranded %d from %s", len(stranded), stranded[0].UID))
			}
			simulation.Commit(result, i)
		}
	}
	after := simulation.ProjectSnapshot()
	return strings.Join(lines, "\n") + "\n  afterwards " + hashText(func(out io.Writer) {
		for i := range after.Nodes {
			n := &after.Nodes[i]
			fmt.Fprintln(out, n.Name, n.Claim, n.NodePool, describeLabels(n.Labels), n.Taints, describeAmounts(n.Allocatable), describeAmounts(n.Capacity), describeAmounts(n.Used), n.HostPorts, n.LastPodEvent)
			for _, class := range n.Pods {
				fmt.Fprintln(out, class.Pods)
			}
		}
		for _, class := range after.PendingPods {
			fmt.Fprintln(out, class.Pods)
		}
		text, _ := json.Marshal(after.Devices) // Kubernetes API objects can always be encoded.
		_, _ = out.Write(text)
		for _, pool := range after.NodePools {
			fmt.Fprintln(out, pool.Name)
			offered, full := simulation.FindFullReservations(pool.Name)
			fmt.Fprintln(out, offered, full)
		}
	}) + "\n"
}
