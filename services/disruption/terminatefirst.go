package disruption

import (
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/consolidation"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Rules that keep a drifted node of a static NodePool. Lifecycle publishes them with Karpenter's texts.
const (
	// RuleStaticAtLimit: its NodePool has as many nodes as limits.nodes allows.
	RuleStaticAtLimit = "static-at-limit"
	// RuleStaticReserved: its NodePool may only launch into reservations, and these are full.
	RuleStaticReserved = "static-reservations-full"
)

// replaceDynamic plans nodes for the pods of a node of a dynamic NodePool. If these would only fit on
// the capacity that the node itself uses in a reservation, the node may be terminated first: its pods
// then wait until the reservation counts the free capacity, and a batch launches into it (Karpenter:
// pkg/controllers/disruption/helpers.go, SimulateSchedulingWithReservedFallback).
func (p *evaluation) replaceDynamic(a *attempt) {
	price := a.SavedPerHour
	a.Result = p.simulateRequested(a.nodes)
	a.objection = p.checkEvictedPlaced(a, a.Result)
	a.SavedPerHour = price - a.Result.PricePerHour
	c := a.nodes[0]
	if a.isGood() || !p.mayTerminateFirst(a.Method) || !holdsReservation(c) {
		return
	}
	after := dropUnrequested(p.loadSimulation().SimulateTermination(c.Node.Labels[karpenter.LabelCapacityReservationID], c.Index))
	if !p.checkEvictedPlaced(a, after).IsNone() {
		return
	}
	a.terminateFirst(planning.TerminateFirstNoReservedCapacity)
	a.Result, a.Refill, a.SavedPerHour = planning.Result{Nominations: after.Nominations}, after.Nodes, price-after.PricePerHour
}

// checkEvictedPlaced objects to a result in which not all pods are placed. Drift evicts protected pods
// only when the terminationGracePeriod ends, so these need no place now (Karpenter:
// pkg/controllers/disruption/helpers.go, SimulateScheduling). Otherwise a protected pod that fits
// nowhere would keep its node for ever.
func (p *evaluation) checkEvictedPlaced(a *attempt, r planning.Result) candidate.Objection {
	if a.Method == Drift {
		r.Unplaced = slices.DeleteFunc(slices.Clone(r.Unplaced), func(u planning.UnplacedPods) bool {
			return !slices.ContainsFunc(u.Pods, func(pod planning.PodRef) bool { return !a.nodes[0].IsProtected(pod, p.snapshot.TakenAt) })
		})
	}
	return consolidation.CheckAllPlaced(r)
}

// replaceStatic plans a new node of a static NodePool, as it would be launched now. No pods are planned
// for it: they are scheduled to the new node when the old one is drained. If no node can be launched,
// the node may be terminated first (Karpenter: pkg/controllers/disruption/staticdrift.go).
func (p *evaluation) replaceStatic(a *attempt) {
	c := a.nodes[0]
	counts, mayTerminate := p.staticPools[c.Node.NodePool], p.mayTerminateFirst(a.Method) && planning.NotReadyReason(c.Pool) == ""
	if offered, full := p.listFullReservations(a); full && !counts.hasSurplus() {
		if mayTerminate && holdsReservation(c) && offered[c.Node.Labels[karpenter.LabelCapacityReservationID]] {
			p.terminateStatic(a, planning.TerminateFirstNoReservedCapacity)
			return
		}
		a.objection = candidate.Objection{Rule: RuleStaticReserved, Detail: "static NodePool's capacity reservations are full and cannot stage a replacement"}
		return
	}
	if a.Method == Repair && counts.hasSurplus() {
		a.objection = candidate.Objection{Rule: RuleNoReplacement, Detail: "its NodePool has more nodes than replicas"}
		return
	}
	for _, n := range p.simulateWithout(c).Nodes {
		if n.NodePool == c.Node.NodePool && len(n.Pods) == 0 {
			a.Result = planning.Result{Nodes: []planning.PlannedNode{n}, PricePerHour: n.PricePerHour}
			a.SavedPerHour -= n.PricePerHour
			return
		}
	}
	switch {
	case counts.hasSurplus() || !counts.isAtLimit():
		a.objection = candidate.Objection{Rule: RuleNoReplacement, Detail: "its NodePool cannot launch another node in its place now"}
	case mayTerminate:
		p.terminateStatic(a, planning.TerminateFirstStaticAtLimit)
	default:
		a.objection = candidate.Objection{Rule: RuleStaticAtLimit, Detail: "static NodePool is at its node limit and cannot stage a replacement"}
	}
}

// terminateStatic terminates a node of a static NodePool first, if its budgets allow as many nodes to be
// missing. Budgets do not count nodes that are gone or not initialized yet. Without this check all nodes
// of a small NodePool could be gone at once, because the next would go before the refill is initialized.
func (p *evaluation) terminateStatic(a *attempt, reason planning.TerminateFirstReason) {
	pool := a.nodes[0].Node.NodePool
	working := 0
	for i := range p.snapshot.Nodes {
		if n := &p.snapshot.Nodes[i]; n.NodePool == pool && n.Claim != "" && n.Initialized && !n.MarkedForDeletion && !p.inCommand[i] {
			working++
		}
	}
	missing, allowed := int(p.staticPools[pool].replicas)-working, p.budgets.Allowed(pool, a.Reason)
	if missing >= allowed && a.nodes[0].Node.Initialized {
		a.objection = candidate.Objection{Rule: RuleBudget, Subject: string(a.Reason), Detail: fmt.Sprintf(
			"%d of the %d nodes of static NodePool %s are missing or not initialized, and its budgets allow %d", missing, p.staticPools[pool].replicas, pool, allowed)}
		return
	}
	a.terminateFirst(reason)
}

// listFullReservations returns the reservations that the static NodePool's nodes may use, if these are
// all that its nodes may use, and full. Without the feature gate it returns none.
func (p *evaluation) listFullReservations(a *attempt) (offered map[string]bool, full bool) {
	if !p.mayTerminateFirst(a.Method) {
		return nil, false
	}
	return p.loadSimulation().FindFullReservations(a.nodes[0].Node.NodePool)
}

// mayTerminateFirst reports whether the method may remove a node before its replacement is launched.
func (p *evaluation) mayTerminateFirst(m Method) bool {
	if m == Repair {
		return p.snapshot.Repair != nil && p.snapshot.Repair.TerminateFirst
	}
	return p.snapshot.Settings.Gates.TerminateFirstDrift && (m == Drift || m == StaticDrift)
}

// terminateFirst makes the attempt a removal without replacement.
func (a *attempt) terminateFirst(reason planning.TerminateFirstReason) {
	a.TerminateFirst, a.objection = reason, candidate.Objection{}
}

// holdsReservation reports whether the node is in a capacity reservation. An on-demand node may still
// have the label of a reservation that ended.
func holdsReservation(c *candidate.Candidate) bool {
	return c.Node.Labels[karpenter.CapacityTypeLabelKey] == karpenter.CapacityTypeReserved && c.Node.Labels[karpenter.LabelCapacityReservationID] != ""
}

// staticCount counts the nodes of a static NodePool.
type staticCount struct {
	replicas, limit int64
	// deleting are the nodes that are being deleted, and staying all others. A node that waits for its
	// replacement stays.
	staying, deleting int64
}

// newStaticCounts counts the nodes of the static NodePools.
func newStaticCounts(s *planning.Snapshot) map[string]*staticCount {
	out := map[string]*staticCount{}
	for i := range s.NodePools {
		pool := &s.NodePools[i]
		if !pool.IsStatic() {
			continue
		}
		count := &staticCount{replicas: *pool.Spec.Replicas, limit: -1}
		if limit, limited := pool.Spec.Limits[karpenter.ResourceNodes]; limited {
			count.limit = limit.Value()
		}
		out[pool.Name] = count
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		count := out[n.NodePool]
		switch {
		case n.Claim == "" || count == nil:
		case n.MarkedForDeletion:
			count.deleting++
		default:
			count.staying++
		}
	}
	return out
}

// hasSurplus reports whether the NodePool has more nodes than replicas: nodes are being replaced, or
// the number was lowered.
func (c *staticCount) hasSurplus() bool { return c.staying > c.replicas }

// isAtLimit reports whether limits.nodes allows no further node.
func (c *staticCount) isAtLimit() bool { return c.limit >= 0 && c.staying+c.deleting >= c.limit }
