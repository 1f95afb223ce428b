package disruption

import (
	"cmp"
	"slices"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/consolidation"
)

const (
	// maxSetSize is how many nodes one command removes. Karpenter considers 100, removes as many as
	// it can, and runs one command at a time. Here an evaluation finds many commands: smaller ones
	// move pods where that saves most, and lose less when they are rolled back.
	maxSetSize = 20
	// maxSets is how many sets one evaluation looks for, which bounds its duration. Later
	// evaluations continue.
	maxSets = 12
	// maxRepairs is how often a set is retried without the nodes that caused the objection.
	maxRepairs = 4
	// minPodSaving is the saving that each further pod must contribute to be moved by the same
	// command, relative to the average saving per pod of the largest set.
	minPodSaving = 1.0
	// minSavedPart is the part of its price that a set must save if several nodes replace it, which
	// Karpenter never does. It is also the part that a set of three or more nodes must waste to be
	// tried at all. If at most one node replaces the set, any saving is enough.
	minSavedPart = 0.1
)

// findSets looks for sets of nodes to remove together, beginning with the most wasteful nodes,
// until it finds no more. Then it tries random sets once.
func (p *evaluation) findSets() {
	p.shadowPrices = consolidation.NewShadowPrices(&p.snapshot, p.stock)
	fairSaving := p.shadowPrices.WastePerPod(p.availableCandidates(MultiNode))
	for range maxSets {
		best := bestSet(p.firstWithinBudgets(p.wastefulNodes()), p.tryRepaired)
		if best == nil {
			// Use only one random set: once its nodes are removed, sets of the most wasteful nodes
			// save more per pod than further random sets.
			if best = p.drawSets(p.tryRepaired); best != nil && !p.shouldDefer(best, fairSaving) {
				p.addCommand(best)
			}
			break
		}
		if p.shouldDefer(best, fairSaving) {
			break
		}
		p.addCommand(best)
	}
	for _, c := range p.availableCandidates(MultiNode) {
		p.objections[c.Index] = candidate.Objection{Rule: RuleLowerPriority, Detail: "nodes that save more are removed first"}
	}
}

// wastefulNodes returns the nodes that cost more than their pods are worth at the shadow prices,
// sorted by waste for each unit of disruption cost. In Karpenter's order an expensive full node
// would come before a cheaper, nearly empty one.
func (p *evaluation) wastefulNodes() []*candidate.Candidate {
	waste := map[*candidate.Candidate]float64{}
	list := p.availableCandidates(MultiNode)
	for _, c := range list {
		waste[c] = (c.Price - p.shadowPrices.PodsValue(c.Node)) / c.Cost
	}
	slices.SortStableFunc(list, func(a, b *candidate.Candidate) int {
		return cmp.Or(cmp.Compare(waste[b], waste[a]), cmp.Compare(a.Lifetime(), b.Lifetime()), cmp.Compare(a.Node.Claim, b.Node.Claim))
	})
	return slices.DeleteFunc(list, func(c *candidate.Candidate) bool { return waste[c] <= 0 })
}

// firstWithinBudgets returns the first nodes of a list, as many as the budgets allow for one
// command.
func (p *evaluation) firstWithinBudgets(list []*candidate.Candidate) []*candidate.Candidate {
	wanted := map[string]int{}
	list = slices.DeleteFunc(slices.Clone(list), func(c *candidate.Candidate) bool {
		pool := c.Node.NodePool
		if wanted[pool] >= p.budgets.Left(pool, MultiNode.budgetReason()) {
			return true
		}
		wanted[pool]++
		return false
	})
	return list[:min(len(list), maxSetSize)]
}

// trySet tries a set, and returns the attempt if it is better than the best so far, otherwise nil.
type trySet func(nodes []*candidate.Candidate, isBetter func(*attempt) bool) *attempt

// bestSet tries the first nodes of a list, then a fifth fewer, and so on, until the result is
// worse. More nodes save more, but move more pods for each dollar. It returns the set beyond which
// a further pod saves less than an average pod of the largest set. The remaining nodes are tried
// afterwards.
func bestSet(list []*candidate.Candidate, try trySet) *attempt {
	var best *attempt
	podCost := 0.0
	isBetter := func(a *attempt) bool { return best == nil || a.netSaving(podCost) > best.netSaving(podCost) }
	for n := len(list); n > 1; n = n * 4 / 5 {
		a := try(list[:n], isBetter)
		if a == nil && best != nil {
			break
		}
		if a != nil && best == nil {
			podCost = minPodSaving * a.SavedPerHour / float64(a.PodsMoved)
		}
		best = cmp.Or(a, best)
	}
	return best
}

// netSaving returns the attempt's saving if moving a pod costs podCost.
func (a *attempt) netSaving(podCost float64) float64 {
	return a.SavedPerHour - podCost*float64(a.PodsMoved)
}

// isWorthwhile reports whether the saving justifies the number of replacements.
func (a *attempt) isWorthwhile() bool {
	return len(a.Result.Nodes) <= 1 || a.SavedPerHour >= minSavedPart*(a.SavedPerHour+a.Result.PricePerHour)
}

// isHopeless reports whether three or more nodes waste too little to justify several replacements.
// They are not tried, to save time, although one replacement or none might save something; sets of
// two and single nodes are always tried.
func (p *evaluation) isHopeless(nodes []*candidate.Candidate) bool {
	price, worth := 0.0, 0.0
	for _, c := range nodes {
		price, worth = price+c.Price, worth+p.shadowPrices.PodsValue(c.Node)
	}
	return len(nodes) > 2 && price-worth < minSavedPart*price
}

// tryRepaired tries a set, then retries it without the nodes that caused the objection. It returns
// nil if the result is not better.
func (p *evaluation) tryRepaired(nodes []*candidate.Candidate, isBetter func(*attempt) bool) *attempt {
	for range 1 + maxRepairs {
		if len(nodes) < 2 || p.isHopeless(nodes) {
			return nil
		}
		a := p.simulateCommand(MultiNode, nodes)
		if a.isGood() && a.isWorthwhile() && isBetter(&a) {
			p.checkPlacement(&a)
			if a.isGood() {
				return &a
			}
		}
		if a.isGood() || len(a.retryWithout) == 0 || a.objection.Rule == consolidation.RuleSameType && !a.isWorthwhile() {
			return nil
		}
		nodes = slices.DeleteFunc(slices.Clone(a.nodes), func(c *candidate.Candidate) bool { return slices.Contains(a.retryWithout, c) })
	}
	return nil
}
