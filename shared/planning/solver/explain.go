package solver

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// PoolExplanation is what one NodePool offers to a pod that is planned alone, without free capacity on
// existing nodes.
type PoolExplanation struct {
	NodePool, NodeClass string
	Weight              int32
	// Rejection is the rule by which the NodePool rejects the pod; its Rule is empty if it would launch
	// a node.
	Rejection planning.Rejection
	// Key is the label, the resource or the taint to which the rule refers, if there is one.
	Key string
	// Node is the node that the NodePool would launch; without pods if it rejects the pod.
	Node planning.PlannedNode
	// Types are all instance types of the EC2NodeClass, in the order of the catalogue; nil if the
	// NodePool launches nothing at the moment.
	Types []TypeExplanation
}

// TypeExplanation is the rule that removes an instance type from the choice for a pod.
type TypeExplanation struct {
	InstanceType string
	// Rule is one of the Type rules; empty if the type can hold the pod.
	Rule string
	// Key is the label or the resource to which the rule refers, if there is one.
	Key string
	// Cheapest is the cheapest priced offering of the type, preferably one that pool and pod allow and that
	// can be bought; its InstanceType is empty if the type has no price.
	Cheapest planning.PricedOffering
}

// Rules of TypeExplanations, in the order in which they are checked. The names are stable because
// tools use them.
const (
	// TypePoolRequirements: the requirements of the NodePool, or its zones, exclude the type.
	TypePoolRequirements = "nodepool-requirements"
	// TypeNoPrice: no allowed offering of the type has a price.
	TypeNoPrice = "no-price"
	// TypeUnavailable: EC2 rejects each allowed offering at the moment.
	TypeUnavailable = "unavailable"
	// TypeReservationFull: only full capacity reservations are allowed.
	TypeReservationFull = "reservation-full"
	// TypePodRequirements: the node selector, node affinity or volumes of the pod exclude the type.
	TypePodRequirements = "pod-requirements"
	// TypeResources: the type is too small for the pod and the daemons.
	TypeResources = "resources"
	// TypeLimits: a node of the type would exceed the limits of the NodePool.
	TypeLimits = "limits"
	// TypeAddresses: no zone of the type has free addresses.
	TypeAddresses = "addresses"
)

// ExplainPools explains each dynamic NodePool for one pod of the class, the highest weight first. It
// decides with the functions of Solve, for a batch with this pod only, in which existing nodes have no
// free capacity but count in topology rules.
func ExplainPools(batch planning.Batch, stock instancetypes.InstanceTypes, class planning.PodClass) []PoolExplanation {
	return explainPools(batch, stock, class, func(*pool) bool { return true }, true)
}

// ExplainPool is ExplainPools for one NodePool, without the instance types; false if there is no such
// dynamic NodePool.
func ExplainPool(batch planning.Batch, stock instancetypes.InstanceTypes, class planning.PodClass, name string) (PoolExplanation, bool) {
	out := explainPools(batch, stock, class, func(p *pool) bool { return p.name == name }, false)
	if len(out) == 0 {
		return PoolExplanation{}, false
	}
	return out[0], true
}

func explainPools(batch planning.Batch, stock instancetypes.InstanceTypes, class planning.PodClass, isAsked func(*pool) bool, withTypes bool) []PoolExplanation {
	alone := isolatePod(batch, class)
	w := batchTask{&alone, stock}.newState()
	w.readClasses(&alone)
	r, c := newRounds(w), w.classes[0]
	anyOf, _ := requiredAlternatives(c.spec)
	out := make([]PoolExplanation, 0, len(w.pools))
	for _, p := range w.pools {
		if !isAsked(p) {
			continue
		}
		one := PoolExplanation{NodePool: p.name, NodeClass: p.class, Weight: p.weight}
		one.Node, one.Rejection = solveInPool(alone, stock, p.name)
		one.Key = w.findRejectedKey(p, c, one.Rejection.Rule, anyOf)
		if withTypes && p.refusal.Rule == "" {
			one.Types = r.explainTypes(p, c, anyOf)
		}
		out = append(out, one)
	}
	return out
}

// isolatePod returns a batch whose only pending pod is the first one of the class, and whose nodes have
// no free capacity.
func isolatePod(batch planning.Batch, class planning.PodClass) planning.Batch {
	class.Pods = slices.Clone(class.Pods[:min(1, len(class.Pods))])
	if len(class.Pods) == 0 {
		class.Pods = []planning.PodRef{{}}
	}
	class.Pods[0].Node = ""
	batch.Pending, batch.Unplanned = []planning.PodClass{class}, nil
	nodes := slices.Clone(batch.Snapshot.Nodes)
	for i := range nodes {
		n := &nodes[i]
		n.ExpectedPods = nil
		n.Used = n.Allocatable
		n.Pods = withoutPod(n.Pods, class.Pods[0].UID)
	}
	batch.Snapshot.Nodes = nodes
	return batch
}

// withoutPod returns the classes without a pod.
func withoutPod(classes []planning.PodClass, uid string) []planning.PodClass {
	isPod := func(p planning.PodRef) bool { return p.UID == uid }
	at := slices.IndexFunc(classes, func(c planning.PodClass) bool { return slices.ContainsFunc(c.Pods, isPod) })
	if at < 0 || uid == "" {
		return classes
	}
	out := slices.Clone(classes)
	out[at].Pods = slices.DeleteFunc(slices.Clone(out[at].Pods), isPod)
	return out
}

// solveInPool plans a batch of one pod with the nodes of one NodePool. The other NodePools may launch
// nothing, but their zones count in topology rules.
func solveInPool(batch planning.Batch, stock instancetypes.InstanceTypes, pool string) (planning.PlannedNode, planning.Rejection) {
	batch.Snapshot.NodePools = slices.Clone(batch.Snapshot.NodePools)
	for i := range batch.Snapshot.NodePools {
		if np := &batch.Snapshot.NodePools[i]; np.Name != pool {
			limits := maps.Clone(np.Spec.Limits)
			if limits == nil {
				limits = karpenter.Limits{}
			}
			limits[karpenter.ResourceNodes] = resource.Quantity{}
			np.Spec.Limits = limits
		}
	}
	result := SolveWithTypes(batch, stock)
	if len(result.Nodes) > 0 {
		return result.Nodes[0], planning.Rejection{}
	}
	for _, u := range result.Unplaced {
		for _, r := range u.Rejections {
			if r.NodePool == pool || r.NodePool == "" {
				return planning.PlannedNode{}, r
			}
		}
	}
	return planning.PlannedNode{}, planning.Rejection{NodePool: pool, Rule: planning.RulePod, Detail: "the planner gave no reason"}
}

// findRejectedKey returns the label, resource or taint by which a rule rejects the class.
func (w *state) findRejectedKey(p *pool, c *podClass, rule string, anyOf []planning.Requirements) string {
	if p.refusal.Rule != "" || len(anyOf) == 0 {
		return ""
	}
	want := anyOf[len(anyOf)-1] // The alternative that was tried last.
	switch rule {
	case planning.RuleTaints:
		taint, _ := findUntolerated(p.taints, c.spec.Tolerations, true)
		return taint.ToString()
	case planning.RuleRequirements:
		key, _ := p.requirements.FindConflict(want)
		return key
	case planning.RuleNoOffering:
		return w.findUnmetKey(p.candidateSet(len(w.candidates)), want)
	case planning.RuleResources:
		sold := w.filterBuyable(p.candidateSet(len(w.candidates)), w.alternativeSet(c, want, len(anyOf)-1))
		if _, index := w.findClosest(c, sold); index >= 0 {
			return string(w.resources.names[index])
		}
	}
	return ""
}

// alternativeSet returns where one alternative of the class's requirements can be met, on nodes without
// taints.
func (w *state) alternativeSet(c *podClass, want planning.Requirements, number int) *feasibleSet {
	return w.findFeasibleSet(fmt.Sprint("explain", number, c.constraintKey), want, tolerateAll, true)
}
