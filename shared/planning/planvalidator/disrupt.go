package planvalidator

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// The reasons of disruption in budgets.
const (
	empty         = "Empty"
	underutilized = "Underutilized"
	drifted       = "Drifted"
)

// disruptionReason returns the reason of a consolidation method.
func disruptionReason(method string) string {
	switch method {
	case "empty":
		return empty
	case "drift", "static-drift":
		return drifted
	default:
		return underutilized
	}
}

// allowedNodes returns how many nodes of a NodePool may be removed at once. Without budgets it is the API's
// default of 10 %; an invalid budget allows none.
func (d *Disruption) allowedNodes(nodes int, why string) int {
	budgets := d.Budgets
	if len(budgets) == 0 {
		budgets = []Budget{{Nodes: "10%"}}
	}
	least := nodes
	for _, b := range budgets {
		if b.Schedule == nil && (len(b.Reasons) == 0 || slices.Contains(b.Reasons, why)) {
			least = min(least, b.limitFor(nodes))
		}
	}
	return least
}

// limitFor rounds a percentage up, as Kubernetes does.
func (b Budget) limitFor(nodes int) int {
	text, percent := strings.CutSuffix(b.Nodes, "%")
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return 0
	case percent:
		return int(math.Ceil(float64(n) * float64(nodes) / 100))
	default:
		return n
	}
}

// checkBudgets checks the number of nodes that a round removes from each NodePool.
func (p *replay) checkBudgets(r *Round, gone map[string]bool) {
	for i := range p.now.NodePools {
		pool := &p.now.NodePools[i]
		have, leave := 0, 0
		for _, n := range p.now.Nodes {
			if n.NodePool != pool.Metadata.Name {
				continue
			}
			have++
			if gone[n.Name] {
				leave++
			}
		}
		if most := pool.Spec.Disruption.allowedNodes(have, disruptionReason(r.Method)); leave > most {
			p.add(Budgets, "pool "+pool.Metadata.Name, "%d of %d nodes are removed at once; the budget allows %d", leave, have, most)
		}
	}
}

// doNotDisrupt is the annotation of pods that must not be disrupted.
const doNotDisrupt = "karpenter.sh/do-not-disrupt"

// checkPolicies checks that the NodePool and the pods of each removed node allow its removal.
func (p *replay) checkPolicies(r *Round, gone map[string]bool) {
	if disruptionReason(r.Method) == drifted {
		return
	}
	for _, n := range p.now.Nodes {
		if !gone[n.Name] {
			continue
		}
		at := slices.IndexFunc(p.now.NodePools, func(pool NodePool) bool { return pool.Metadata.Name == n.NodePool })
		if at < 0 {
			p.add(Protects, n.Name, "the node has no NodePool")
			continue
		}
		full := 0
		for i := range n.Pods {
			if n.Pods[i].Annotations[doNotDisrupt] == "true" {
				p.add(Protects, n.Name, "pod %s must not be disrupted", podKey(&n.Pods[i]))
			}
			if !isDaemonPod(&n.Pods[i]) {
				full++
			}
		}
		rules := p.now.NodePools[at].Spec.Disruption
		if rules.ConsolidateAfter == "Never" {
			p.add(Protects, n.Name, "pool %s never consolidates", n.NodePool)
		}
		if rules.ConsolidationPolicy == "WhenEmpty" && full > 0 && r.Method != "empty" {
			p.add(Protects, n.Name, "pool %s consolidates only empty nodes, and the node has %d pods", n.NodePool, full)
		}
	}
}
