package planvalidator

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Reasons of disruption, by which budgets tell them apart.
const (
	empty         = "Empty"
	underutilized = "Underutilized"
	drifted       = "Drifted"
)

// reason is why a method removes nodes.
func reason(method string) string {
	switch method {
	case "empty":
		return empty
	case "drift", "static-drift":
		return drifted
	default:
		return underutilized
	}
}

// allowed is how many of a pool's nodes may go at once. A pool without
// budgets has the API's default of a tenth; what cannot be read allows nothing.
func (d *Disruption) allowed(nodes int, why string) int {
	budgets := d.Budgets
	if len(budgets) == 0 {
		budgets = []Budget{{Nodes: "10%"}}
	}
	least := nodes
	for _, b := range budgets {
		if b.Schedule == nil && (len(b.Reasons) == 0 || slices.Contains(b.Reasons, why)) {
			least = min(least, b.of(nodes))
		}
	}
	return least
}

// of rounds a percentage up, as Kubernetes does.
func (b Budget) of(nodes int) int {
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

// budgets counts what a round takes of each pool.
func (p *replay) budgets(r *Round, gone map[string]bool) {
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
		if most := pool.Spec.Disruption.allowed(have, reason(r.Method)); leave > most {
			p.add(Budgets, "pool "+pool.Metadata.Name, "%d of its %d nodes go at once, and %d may", leave, have, most)
		}
	}
}

// protection is the annotation of pods that must not be disturbed.
const protection = "karpenter.sh/do-not-disrupt"

// policies asks each node that goes whether its pool and its pods let it.
func (p *replay) policies(r *Round, gone map[string]bool) {
	if reason(r.Method) == drifted {
		return
	}
	for _, n := range p.now.Nodes {
		if !gone[n.Name] {
			continue
		}
		at := slices.IndexFunc(p.now.NodePools, func(pool NodePool) bool { return pool.Metadata.Name == n.NodePool })
		if at < 0 {
			p.add(Protects, n.Name, "it is of no pool")
			continue
		}
		full := 0
		for i := range n.Pods {
			if n.Pods[i].Annotations[protection] == "true" {
				p.add(Protects, n.Name, "its pod %s must not be disturbed", key(&n.Pods[i]))
			}
			if !ofDaemon(&n.Pods[i]) {
				full++
			}
		}
		rules := p.now.NodePools[at].Spec.Disruption
		if rules.ConsolidateAfter == "Never" {
			p.add(Protects, n.Name, "pool %s never consolidates", n.NodePool)
		}
		if rules.ConsolidationPolicy == "WhenEmpty" && full > 0 && r.Method != "empty" {
			p.add(Protects, n.Name, "pool %s only lets empty nodes go, and it has %d pods", n.NodePool, full)
		}
	}
}
