package disruption

import (
	"cmp"
	"slices"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/consolidation"
)

const (
	// maxSetSize is how many nodes go by one command. Upstream looks at 100, takes
	// as many as it can, and has one command at a time. Here a pass finds many: smaller
	// ones spend pods where they save most, and lose less if they are rolled back.
	maxSetSize = 20
	// maxSets is how many sets one pass looks for: it bounds the time that a pass takes,
	// and a later one goes on.
	maxSets = 12
	// maxRepairs is how often a set is tried again without the nodes that spoil it.
	maxRepairs = 4
	// minPodSaving is what a further pod must save at least to be moved in the same command,
	// in what a pod of the largest set saves on average.
	minPodSaving = 1.0
	// minSavedPart is the part of what its nodes cost that a set must save where several
	// nodes replace it, which upstream never does, and that a set of three or more must
	// waste to be tried at all. Where one node replaces it, or none, any saving counts.
	minSavedPart = 0.1
)

// findSets looks for sets of nodes that can go together, the most wasteful first,
// until no set is found any more, and then one of other nodes. Each counts on those
// before it.
func (p *evaluation) findSets() {
	p.shadowPrices = consolidation.NewShadowPrices(&p.snapshot, p.stock)
	fair := p.shadowPrices.WastePerPod(p.availableCandidates(MultiNode))
	for range maxSets {
		best := bestSet(p.firstWithinBudgets(p.wastefulNodes()), p.tryRepaired)
		if best == nil {
			// One alone: with its nodes gone, the most wasteful of a later pass save more for
			// each pod than what else could be drawn now.
			if best = p.drawSets(p.tryRepaired); best != nil && !p.shouldDefer(best, fair) {
				p.addCommand(best)
			}
			break
		}
		if p.shouldDefer(best, fair) {
			break
		}
		p.addCommand(best)
	}
	for _, c := range p.availableCandidates(MultiNode) {
		p.objections[c.Index] = candidate.Objection{Rule: RuleTurn, Detail: "nodes that save more go first"}
	}
}

// wastefulNodes are the nodes that cost more than their pods are worth. Those come first
// that waste most for what it costs to disturb them; in upstream's order a node
// that is dear and full comes before one that is cheaper and nearly empty.
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

// firstWithinBudgets are the first of a list, as many as the budgets have room for in one command.
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

// trySet tries a set, and returns what comes of it if that is better; nil otherwise.
type trySet func(nodes []*candidate.Candidate, better func(*attempt) bool) *attempt

// bestSet tries the first nodes of a list, so many and a fifth fewer, and so on, until
// that makes it worse. More nodes save more, and move more pods for each dollar: the set is
// taken beyond which a further pod saves less than one of the largest set does on average.
// The rest has its turn after it.
func bestSet(list []*candidate.Candidate, try trySet) *attempt {
	var best *attempt
	each := 0.0
	better := func(a *attempt) bool { return best == nil || a.netSaving(each) > best.netSaving(each) }
	for n := len(list); n > 1; n = n * 4 / 5 {
		a := try(list[:n], better)
		if a == nil && best != nil {
			break
		}
		if a != nil && best == nil {
			each = minPodSaving * a.SavedPerHour / float64(a.PodsMoved)
		}
		best = cmp.Or(a, best)
	}
	return best
}

// netSaving is what an attempt saves, if moving a pod costs so much.
func (a *attempt) netSaving(each float64) float64 { return a.SavedPerHour - each*float64(a.PodsMoved) }

// isWorthwhile reports whether what is saved is worth so many nodes' coming up.
func (a *attempt) isWorthwhile() bool {
	return len(a.Result.Nodes) <= 1 || a.SavedPerHour >= minSavedPart*(a.SavedPerHour+a.Result.PricePerHour)
}

// isHopeless reports whether three nodes or more waste too little to be worth several
// others, so that they are not tried, which takes time. That one node, or room on those
// that stay, would have saved something is given up: two nodes, and each alone, are tried
// whatever they waste.
func (p *evaluation) isHopeless(nodes []*candidate.Candidate) bool {
	price, worth := 0.0, 0.0
	for _, c := range nodes {
		price, worth = price+c.Price, worth+p.shadowPrices.PodsValue(c.Node)
	}
	return len(nodes) > 2 && price-worth < minSavedPart*price
}

// tryRepaired tries a set, and again without the nodes that spoil it; nil if nothing better
// comes of it.
func (p *evaluation) tryRepaired(nodes []*candidate.Candidate, better func(*attempt) bool) *attempt {
	for range 1 + maxRepairs {
		if len(nodes) < 2 || p.isHopeless(nodes) {
			return nil
		}
		a := p.simulateCommand(MultiNode, nodes)
		if a.isGood() && a.isWorthwhile() && better(&a) {
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
