package simulate

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// Period is a replay of recorded snapshots with other NodePools. The pods of each snapshot come and go as
// recorded; the nodes are the result of planning and disruption, once with the recorded
// NodePools and once with the changed ones. So the difference of both is due to the change, and the
// difference of the first to the recorded nodes is due to the simulation, which skips all waits.
type Period struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	// Changes are the changed objects.
	Changes []ChangedObject `json:"changes"`
	// Recorded is what ran, Same the simulation with the recorded NodePools, and With that with the changed ones.
	Recorded PeriodTotal `json:"recorded"`
	Same     PeriodTotal `json:"same"`
	With     PeriodTotal `json:"with"`
	// Moments are the snapshots that were used.
	Moments []PeriodMoment `json:"moments"`
	// Gaps are times without snapshots, which count nothing.
	Gaps        []PeriodGap `json:"gaps"`
	Assumptions []string    `json:"assumptions"`
}

// PeriodTotal is a sum over the period.
type PeriodTotal struct {
	NodeHours float64 `json:"nodeHours"`
	Dollars   float64 `json:"dollars"`
	// NodesMax is the largest number of nodes, and Unscheduled the largest number of unschedulable pods.
	NodesMax    int `json:"nodesMax"`
	Unscheduled int `json:"unscheduledMax"`
}

// PeriodMoment is the state at one snapshot, until the next.
type PeriodMoment struct {
	At       time.Time  `json:"at"`
	Pods     int        `json:"pods"`
	Recorded PeriodCost `json:"recorded"`
	Same     PeriodCost `json:"same"`
	With     PeriodCost `json:"with"`
}

// PeriodCost is the number of nodes, and their cost in US dollars per hour.
type PeriodCost struct {
	Nodes        int     `json:"nodes"`
	PricePerHour float64 `json:"pricePerHour"`
	Unscheduled  int     `json:"unscheduled,omitempty"`
}

// PeriodGap is a time without snapshots.
type PeriodGap struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	// Days are the days in UTC that have no snapshot at all, as 2006-01-02.
	Days []string `json:"days,omitempty"`
}

// NewGap returns the gap between two snapshots, whose state counts until validFor after the first one.
func NewGap(last, next time.Time, validFor time.Duration) PeriodGap {
	out := PeriodGap{From: last.Add(validFor).UTC(), Until: next.UTC()}
	const day = 24 * time.Hour
	for at := last.UTC().Truncate(day).Add(day); at.Before(next.UTC().Truncate(day)); at = at.Add(day) {
		out.Days = append(out.Days, at.Format(time.DateOnly))
	}
	return out
}

// FindGaps returns the gaps of more than gapMin between times, which are sorted, from a time until another. The
// time before the first one is no gap: the archive begins there.
func FindGaps(times []time.Time, from, until time.Time, gapMin time.Duration) (out []PeriodGap) {
	for i, last := range times {
		next := until
		if i+1 < len(times) {
			next = times[i+1]
		}
		if next.Sub(last) > gapMin && next.After(from) && last.Before(until) {
			out = append(out, NewGap(last, next, 0))
		}
	}
	return out
}

// periodReplay carries the nodes of one simulation from snapshot to snapshot.
type periodReplay struct {
	change  *Change
	options ConsolidateOptions
	nodes   []planning.Node
	// isStarted reports whether nodes are set.
	isStarted bool
	applied   AppliedChange
}

// ReplayPeriod replays snapshots, the oldest first, from a time until another. A time of more than gapMin
// without a snapshot is a gap.
func (c Change) ReplayPeriod(moments []Source, from, until time.Time, gapMin time.Duration, o ConsolidateOptions) (Period, error) {
	out := Period{From: moments[0].Snapshot.TakenAt.UTC(), Until: until.UTC(), Moments: []PeriodMoment{}, Gaps: []PeriodGap{}, Assumptions: []string{}, Changes: []ChangedObject{}}
	if out.From.Sub(from) > gapMin {
		out.Gaps = append(out.Gaps, NewGap(from.Add(-1), out.From, 1))
	}
	same, with := periodReplay{options: o}, periodReplay{change: &c, options: o}
	for i, moment := range moments {
		end := until
		if i+1 < len(moments) {
			end = moments[i+1].Snapshot.TakenAt
		}
		one := PeriodMoment{At: moment.Snapshot.TakenAt.UTC(), Pods: countSnapshotPods(&moment.Snapshot), Recorded: recordedCost(moment)}
		var err error
		if one.Same, err = same.step(moment); err != nil {
			return out, fmt.Errorf("replaying %s with the recorded NodePools: %w", one.At.Format(time.RFC3339), err)
		}
		if one.With, err = with.step(moment); err != nil {
			return out, fmt.Errorf("replaying %s with the changed NodePools: %w", one.At.Format(time.RFC3339), err)
		}
		length := end.Sub(moment.Snapshot.TakenAt)
		if length > gapMin {
			out.Gaps = append(out.Gaps, NewGap(one.At, end, gapMin))
			length = gapMin
		}
		for _, sum := range []struct {
			total *PeriodTotal
			cost  PeriodCost
		}{{&out.Recorded, one.Recorded}, {&out.Same, one.Same}, {&out.With, one.With}} {
			sum.total.add(sum.cost, length)
		}
		out.Moments = append(out.Moments, one)
		o.Progress(i+1, nil)
	}
	out.Changes = append(out.Changes, with.applied.Objects...)
	out.Assumptions = append(out.Assumptions, with.applied.Assumptions...)
	out.Assumptions = append(out.Assumptions, "pods come and go as recorded, and all waits (batching, boot, consolidateAfter, drains) are skipped in both simulations")
	return out, nil
}

func (t *PeriodTotal) add(c PeriodCost, length time.Duration) {
	t.NodeHours += float64(c.Nodes) * length.Hours()
	t.Dollars += c.PricePerHour * length.Hours()
	t.NodesMax, t.Unscheduled = max(t.NodesMax, c.Nodes), max(t.Unscheduled, c.Unscheduled)
}

// step advances the simulation to a snapshot.
func (p *periodReplay) step(moment Source) (PeriodCost, error) {
	snapshot := moment.Snapshot
	if p.isStarted {
		snapshot = carryNodes(snapshot, p.nodes)
	}
	if p.change != nil {
		applied, err := p.change.Apply(snapshot)
		if err != nil {
			return PeriodCost{}, err
		}
		if !p.isStarted {
			p.applied = applied
		}
		snapshot = applied.Snapshot
	}
	if p.isStarted {
		// Drifted nodes were replaced at the first snapshot; new ones have the changed NodePools.
		snapshot.Nodes = slices.Clone(snapshot.Nodes)
		for i := range snapshot.Nodes {
			snapshot.Nodes[i].Drift = nil
		}
	}
	fleet := moment.FleetOf(snapshot)
	if p.change != nil {
		p.change.removeDeletedPools(fleet)
	}
	quiet := p.options
	quiet.Progress = func(int, *scenario.Consolidation) {}
	if _, err := Consolidate(fleet, quiet); err != nil {
		return PeriodCost{}, err
	}
	now, _ := fleet.Snapshot()
	p.nodes, p.isStarted = now.Nodes, true
	return PeriodCost{Nodes: fleet.Size(), PricePerHour: fleet.CostPerHour(), Unscheduled: len(fleet.Unscheduled())}, nil
}

// recordedCost returns the nodes of a snapshot that are not being removed, and their cost.
func recordedCost(moment Source) (out PeriodCost) {
	p := prices{}
	p.addStock(moment.Stock(moment.Snapshot))
	for i := range moment.Snapshot.Nodes {
		n := &moment.Snapshot.Nodes[i]
		if price := p.priceOf(n); price > 0 || n.PricePerHour == 0 {
			out.PricePerHour += price
		} else {
			out.PricePerHour += n.PricePerHour
		}
		out.Nodes++
	}
	for _, class := range moment.Snapshot.PendingPods {
		out.Unscheduled += len(class.Pods)
	}
	return out
}

func countSnapshotPods(s *planning.Snapshot) (count int) {
	for i := range s.Nodes {
		for _, class := range s.Nodes[i].Pods {
			count += len(class.Pods)
		}
	}
	for _, class := range s.PendingPods {
		count += len(class.Pods)
	}
	return count
}

// carryNodes returns the snapshot with other nodes, from which pods that the snapshot no longer has are
// gone. Pods that are new in it are pending.
func carryNodes(s planning.Snapshot, nodes []planning.Node) planning.Snapshot {
	isThere := map[string]bool{}
	eachPod(&s, func(_ *planning.PodSpec, pod planning.PodRef) { isThere[pod.UID] = true })
	isPlaced := map[string]bool{}
	carried := make([]planning.Node, 0, len(nodes))
	for i := range nodes {
		n := nodes[i]
		if n.Claim == "" {
			continue // Nodes that Joist does not manage are as recorded.
		}
		dropPods(&n, isThere)
		for _, class := range n.Pods {
			for _, pod := range class.Pods {
				isPlaced[pod.UID] = true
			}
		}
		carried = append(carried, n)
	}
	for i := range s.Nodes {
		if n := s.Nodes[i]; n.Claim == "" {
			for _, class := range n.Pods {
				for _, pod := range class.Pods {
					isPlaced[pod.UID] = true
				}
			}
			carried = append(carried, n)
		}
	}
	var pending []planning.PodClass
	var last *planning.PodSpec
	eachPod(&s, func(spec *planning.PodSpec, pod planning.PodRef) {
		if isPlaced[pod.UID] {
			return
		}
		pod.Node, pod.Terminating = "", false
		if last != nil && last == spec {
			pending[len(pending)-1].Pods = append(pending[len(pending)-1].Pods, pod)
			return
		}
		last = spec
		pending = append(pending, planning.PodClass{Spec: *spec, Pods: []planning.PodRef{pod}})
	})
	s.Nodes, s.PendingPods = carried, pending
	return s
}

func eachPod(s *planning.Snapshot, use func(*planning.PodSpec, planning.PodRef)) {
	for i := range s.Nodes {
		for j := range s.Nodes[i].Pods {
			for _, pod := range s.Nodes[i].Pods[j].Pods {
				if !pod.Terminating {
					use(&s.Nodes[i].Pods[j].Spec, pod)
				}
			}
		}
	}
	for j := range s.PendingPods {
		for _, pod := range s.PendingPods[j].Pods {
			use(&s.PendingPods[j].Spec, pod)
		}
	}
}

// dropPods removes the pods that are gone from a node, and what they used.
func dropPods(n *planning.Node, isThere map[string]bool) {
	var kept []planning.PodClass
	used := maps.Clone(n.Used)
	for _, class := range n.Pods {
		isGone := func(p planning.PodRef) bool { return !isThere[p.UID] }
		left := slices.DeleteFunc(slices.Clone(class.Pods), isGone)
		gone := len(class.Pods) - len(left)
		for name, quantity := range class.Spec.Requests {
			subtractQuantity(used, name, quantity.MilliValue()*int64(gone), quantity.MilliValue() > 0)
		}
		if len(left) > 0 {
			kept = append(kept, planning.PodClass{Spec: class.Spec, Pods: left})
		}
	}
	n.Pods, n.Used = kept, used
	// The host ports of pods that are gone stay in use: they are few, and not known by pod.
}

// subtractQuantity subtracts thousandths of a unit.
func subtractQuantity(list corev1.ResourceList, name corev1.ResourceName, milli int64, isUsed bool) {
	if !isUsed || milli == 0 {
		return
	}
	left := list[name]
	left.SetMilli(left.MilliValue() - milli)
	list[name] = left
}
