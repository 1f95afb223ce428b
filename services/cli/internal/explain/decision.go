package explain

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// PlanDecision is a plan with its input.
type PlanDecision struct {
	Batch planning.Batch
	Stock instancetypes.InstanceTypes
	// Plan has the nominations and the unplaced pods.
	Plan planning.Plan
	// Reproduction compares the plan with the recorded one; nil if it is not recorded.
	Reproduction *Reproduction
	// launches are the launches of the plan, by the name of the NodeClaim.
	launches map[string]plannedLaunch
}

// plannedLaunch is what a launch tries for one NodeClaim.
type plannedLaunch struct {
	nodePool, nodeClass    string
	capacityType, strategy string
	requests               corev1.ResourceList
	// offerings are sorted by price, the cheapest first.
	offerings []planning.PricedOffering
}

// NewDecision returns the decision of a plan and its launch requests, in the order of the plan's intents.
func NewDecision(batch planning.Batch, stock instancetypes.InstanceTypes, plan planning.Plan, intents []launchspec.Intent) PlanDecision {
	out := PlanDecision{Batch: batch, Stock: stock, Plan: plan, launches: map[string]plannedLaunch{}}
	for i := range min(len(intents), len(plan.Intents)) {
		for j := range plan.Intents[i].Claims {
			claim := &plan.Intents[i].Claims[j].Object
			one := newPlannedLaunch(&intents[i])
			one.requests = claim.Spec.Resources.Requests
			out.launches[claim.Name] = one
		}
	}
	return out
}

// DecideNow plans a batch that no recorded plan answers, such as the pods of a scenario. It names the new
// nodes by number.
func DecideNow(batch planning.Batch, stock instancetypes.InstanceTypes) PlanDecision {
	result := solver.SolveWithTypes(batch, stock)
	out := PlanDecision{Batch: batch, Stock: stock, launches: map[string]plannedLaunch{}, Plan: planning.Plan{
		Nominations: slices.Clone(result.Nominations), Unplaced: result.Unplaced, PricePerHour: result.PricePerHour, BoundPerHour: result.BoundPerHour, Partial: result.Partial,
	}}
	for i := range result.Nodes {
		n := &result.Nodes[i]
		name := fmt.Sprintf("new node %d", i+1)
		offerings := launchspec.Launchable(n, exoticTypes(stock, n.NodePool, n.NodeClass))
		if len(offerings) == 0 {
			offerings = n.Offerings
		}
		out.launches[name] = plannedLaunch{nodePool: n.NodePool, nodeClass: n.NodeClass, capacityType: offerings[0].CapacityType, requests: n.Requests, offerings: offerings}
		for _, pod := range n.Pods {
			out.Plan.Nominations = append(out.Plan.Nominations, planning.Nomination{Namespace: pod.Namespace, Pod: pod.Pod, Claim: name, Devices: pod.Devices})
		}
	}
	return out
}

// exoticTypes returns a function that reports whether a type is expensive for ordinary pods.
func exoticTypes(stock instancetypes.InstanceTypes, pool, class string) func(string) bool {
	exotic := map[string]bool{}
	for _, t := range stock.TypesForPool(pool, class) {
		exotic[t.Name] = t.Exotic
	}
	return func(name string) bool { return exotic[name] }
}

// newPlannedLaunch reads the offerings of a launch request.
func newPlannedLaunch(intent *launchspec.Intent) plannedLaunch {
	out := plannedLaunch{nodePool: intent.NodePool, nodeClass: intent.NodeClass, capacityType: intent.Fleet.CapacityType, strategy: intent.Fleet.Strategy}
	isListed := map[[2]string]bool{}
	for _, config := range intent.Fleet.Configs {
		for _, o := range config.Overrides {
			at := [2]string{o.InstanceType, o.Zone}
			if isListed[at] {
				continue // Another subnet of the zone.
			}
			isListed[at] = true
			one := planning.PricedOffering{}
			one.InstanceType, one.Zone, one.CapacityType = o.InstanceType, o.Zone, intent.Fleet.CapacityType
			one.PricePerHour, _ = intent.Price(o.InstanceType, o.Zone)
			out.offerings = append(out.offerings, one)
		}
	}
	slices.SortStableFunc(out.offerings, func(a, b planning.PricedOffering) int {
		return cmp.Or(cmp.Compare(a.PricePerHour, b.PricePerHour), cmp.Compare(a.InstanceType, b.InstanceType), cmp.Compare(a.Zone, b.Zone))
	})
	return out
}

// findPod returns the class of a pod, and its reference: among the pending pods, and on the nodes.
func (d *PlanDecision) findPod(namespace, name string) (class planning.PodClass, pod planning.PodRef, node string, isFound bool) {
	find := func(classes []planning.PodClass) bool {
		for i := range classes {
			if classes[i].Spec.Namespace != namespace {
				continue
			}
			for _, one := range classes[i].Pods {
				if one.Name == name {
					class, pod = planning.PodClass{Spec: classes[i].Spec, Pods: []planning.PodRef{one}}, one
					return true
				}
			}
		}
		return false
	}
	if find(d.Batch.Pending) {
		return class, pod, "", true
	}
	for i := range d.Batch.Snapshot.Nodes {
		n := &d.Batch.Snapshot.Nodes[i]
		if find(n.Pods) || find(n.DaemonPods) {
			return class, pod, n.Name, true
		}
	}
	return class, pod, "", false
}

// podsOf returns the pods that the plan expects on a NodeClaim, as one pod with the sum of their requests
// and all of their requirements, and their names.
func (d *PlanDecision) podsOf(claim string) (merged planning.PodClass, names []string) {
	specs := d.indexSpecs()
	merged.Spec.Requests = corev1.ResourceList{}
	var term corev1.NodeSelectorTerm
	for _, n := range d.Plan.Nominations {
		spec := specs[n.Pod.UID+"/"+n.Pod.Name]
		if n.Claim != claim || spec == nil {
			continue
		}
		names = append(names, n.Namespace+"/"+n.Pod.Name)
		for resource, amount := range spec.Requests {
			sum := merged.Spec.Requests[resource]
			sum.Add(amount)
			merged.Spec.Requests[resource] = sum
		}
		term.MatchExpressions = append(term.MatchExpressions, requiredExpressions(spec)...)
		merged.Spec.Namespace, merged.Spec.Tolerations = spec.Namespace, spec.Tolerations
		merged.Spec.Volumes = append(merged.Spec.Volumes, spec.Volumes...)
		merged.Spec.HostPorts = append(merged.Spec.HostPorts, spec.HostPorts...)
	}
	if len(term.MatchExpressions) > 0 {
		merged.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}},
		}}
	}
	slices.Sort(names)
	return merged, names
}

// indexSpecs returns the specs of the pending pods, and of the pods on nodes, which a plan of replacements
// moves, by UID and name.
func (d *PlanDecision) indexSpecs() map[string]*planning.PodSpec {
	specs := map[string]*planning.PodSpec{}
	add := func(classes []planning.PodClass) {
		for i := range classes {
			for _, pod := range classes[i].Pods {
				specs[pod.UID+"/"+pod.Name] = &classes[i].Spec
			}
		}
	}
	for i := range d.Batch.Snapshot.Nodes {
		add(d.Batch.Snapshot.Nodes[i].Pods)
	}
	add(d.Batch.Pending)
	return specs
}

// requiredExpressions returns the node selector and the first term of the required node affinity.
func requiredExpressions(spec *planning.PodSpec) []corev1.NodeSelectorRequirement {
	var out []corev1.NodeSelectorRequirement
	for key, value := range spec.NodeSelector {
		out = append(out, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}})
	}
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		if terms := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms; len(terms) > 0 {
			out = append(out, terms[0].MatchExpressions...)
		}
	}
	slices.SortStableFunc(out, func(a, b corev1.NodeSelectorRequirement) int { return cmp.Compare(a.Key, b.Key) })
	return out
}
