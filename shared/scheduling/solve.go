package scheduling

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
)

// Solve plans a batch. It is a pure function: the same batch and catalogue give
// the same result, and it never fails as a whole. A class of pods that cannot be
// planned, even for a fault of ours, is among the unplaced with the reason.
func Solve(batch Batch, cat catalog.Catalogue) Result {
	return SolveStock(batch, NewStock(batch.Snapshot, cat))
}

// SolveStock is Solve with the instance types worked out already.
func SolveStock(batch Batch, stock Stock) Result {
	s := batch.Snapshot
	p := &packer{axis: axisOf(batch), settings: s.Settings, left: map[*demand][]PodRef{}, prefers: prefers(s)}
	daemons := daemonDemands(s, p.axis)
	p.existing = newExisting(s, p.axis, daemons)
	p.pools = newPools(s, stock, p.axis, daemons)

	demands, pods, unplaced := p.demands(batch)
	for _, r := range order(demands, pods, p.axis) {
		if aside := p.guarded(r); aside != nil {
			unplaced = append(unplaced, Unplaced{r.d.spec.Namespace, aside.pods, []Rejection{{Rule: RulePod, Detail: aside.reason()}}})
		}
	}
	for _, d := range demands {
		if rest := p.left[d]; len(rest) > 0 {
			unplaced = append(unplaced, Unplaced{d.spec.Namespace, rest, p.rejections(d)})
		}
	}
	return p.result(unplaced)
}

// axisOf collects the resources that anything in the batch asks for or limits.
func axisOf(batch Batch) axis {
	var lists []corev1.ResourceList
	for _, class := range batch.Pending {
		lists = append(lists, class.Spec.Requests)
	}
	for _, daemon := range batch.Snapshot.DaemonSets {
		lists = append(lists, daemon.Requests)
	}
	for _, np := range batch.Snapshot.NodePools {
		lists = append(lists, corev1.ResourceList(np.Spec.Limits))
	}
	return newAxis(lists...)
}

// demands prepares the classes; those that no node can hold are unplaced at once.
func (p *packer) demands(batch Batch) (demands []*demand, pods map[*demand][]PodRef, unplaced []Unplaced) {
	pods = map[*demand][]PodRef{}
	against := repellers(batch.Snapshot.Nodes)
	for _, class := range batch.Pending {
		d, problem := prepare(class.Spec, p.axis, p.settings)
		if problem == "" {
			problem = repelled(class.Spec, against)
		}
		if problem != "" {
			unplaced = append(unplaced, Unplaced{class.Spec.Namespace, class.Pods, []Rejection{{Rule: RulePod, Detail: problem}}})
			continue
		}
		demands, pods[d] = append(demands, d), class.Pods
	}
	return demands, pods, unplaced
}

// prepare is newDemand behind a recover.
func prepare(spec PodSpec, a axis, settings Settings) (d *demand, problem string) {
	defer func() {
		if cause := recover(); cause != nil {
			d, problem = nil, fmt.Sprintf("reading it failed: %v", cause)
		}
	}()
	return newDemand(spec, a, settings)
}

// guarded is place behind a recover.
func (p *packer) guarded(r run) (aside *setAside) {
	defer func() {
		if cause := recover(); cause != nil {
			got, ok := cause.(setAside)
			if !ok {
				got = setAside{r.d, r.pods, cause}
			}
			aside = &got
		}
	}()
	p.place(r)
	return nil
}

// daemonDemands reads the daemons; one that cannot be read takes no room.
func daemonDemands(s Snapshot, a axis) []*demand {
	var out []*demand
	for _, spec := range s.DaemonSets {
		// What daemons want of the pods beside them does not change their load.
		spec.Spread, spec.Volumes, spec.ResourceClaims = nil, nil, 0
		if spec.Affinity != nil {
			spec.Affinity = &corev1.Affinity{NodeAffinity: spec.Affinity.NodeAffinity}
		}
		if d, problem := prepare(spec, a, s.Settings); problem == "" {
			out = append(out, d)
		}
	}
	return out
}

func prefers(s Snapshot) bool {
	soft := func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectPreferNoSchedule }
	for _, np := range s.NodePools {
		if slices.ContainsFunc(np.Spec.Template.Spec.Taints, soft) {
			return true
		}
	}
	return slices.ContainsFunc(s.Nodes, func(n Node) bool { return slices.ContainsFunc(n.Taints, soft) })
}

func (p *packer) rejections(d *demand) []Rejection {
	if len(p.pools) == 0 {
		return []Rejection{{Rule: RuleNotReady, Detail: "the cluster has no NodePool that launches nodes for pods"}}
	}
	var out []Rejection
	for _, from := range p.pools {
		out = append(out, from.reject(d, p.axis))
	}
	return out
}

func (p *packer) result(unplaced []Unplaced) Result {
	out := Result{Nominations: p.nominations, Unplaced: unplaced}
	for _, n := range p.planned {
		node := n.finish(p.axis)
		out.PricePerHour += node.PricePerHour
		out.Nodes = append(out.Nodes, node)
	}
	return out
}
