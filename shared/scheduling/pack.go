package scheduling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// run is a number of equal pods that follow each other in the order of placing.
type run struct {
	d    *demand
	pods []PodRef
}

// packer places runs, first fit: nodes that exist, then nodes planned already,
// then new nodes of the pools in their order (B089).
type packer struct {
	axis        axis
	settings    Settings
	existing    []*existing
	pools       []*pool
	planned     []*planned
	nominations []Nomination
	// left are the pods of each demand that found no place.
	left map[*demand][]PodRef
	// prefers is whether any taint is PreferNoSchedule, so that relaxing helps.
	prefers bool
}

// order lines pods up by cpu and memory, largest first, then by age and UID
// (B087), and joins neighbours of one class into runs.
func order(demands []*demand, pods map[*demand][]PodRef, a axis) []run {
	var all []run
	for _, d := range demands {
		for _, pod := range pods[d] {
			all = append(all, run{d, []PodRef{pod}})
		}
	}
	slices.SortStableFunc(all, func(x, y run) int {
		return cmp.Or(
			cmp.Compare(a.get(y.d.requests, corev1.ResourceCPU), a.get(x.d.requests, corev1.ResourceCPU)),
			cmp.Compare(a.get(y.d.requests, corev1.ResourceMemory), a.get(x.d.requests, corev1.ResourceMemory)),
			x.pods[0].Created.Compare(y.pods[0].Created),
			strings.Compare(x.pods[0].UID, y.pods[0].UID),
		)
	})
	var out []run
	for _, one := range all {
		if last := len(out) - 1; last >= 0 && out[last].d == one.d {
			out[last].pods = append(out[last].pods, one.pods...)
			continue
		}
		out = append(out, one)
	}
	return out
}

// place puts as many pods of the run somewhere as it can. A panic is a fault of
// one class and must not cost the others their nodes: it is recovered, and the
// pods that were not placed yet are set aside with the reason.
func (p *packer) place(r run) {
	rest := r.pods
	defer func() {
		if cause := recover(); cause != nil {
			panic(setAside{r.d, rest, cause})
		}
	}()
	for _, l := range r.d.levels {
		if l.relaxed && !p.prefers {
			continue
		}
		for _, step := range []func(*demand, level, []PodRef) []PodRef{p.ontoExisting, p.ontoPlanned, p.ontoNew} {
			if len(rest) > 0 {
				rest = step(r.d, l, rest)
			}
		}
	}
	if len(rest) > 0 {
		p.left[r.d] = append(p.left[r.d], rest...)
	}
}

// setAside carries what is left of a run out of a panic.
type setAside struct {
	d     *demand
	pods  []PodRef
	cause any
}

func (s setAside) reason() string { return fmt.Sprintf("planning for it failed: %v", s.cause) }

func (p *packer) ontoExisting(d *demand, l level, pods []PodRef) []PodRef {
	for _, e := range p.existing {
		if len(pods) > 0 && !e.suitable(d, l) {
			continue
		}
		for len(pods) > 0 && e.take(d) {
			p.nominations = append(p.nominations, e.nominate(PlacedPod{d.spec.Namespace, pods[0]}))
			pods = pods[1:]
		}
	}
	return pods
}

func (p *packer) ontoPlanned(d *demand, l level, pods []PodRef) []PodRef {
	for i := range p.planned {
		pods = p.fill(i, d, l, pods)
	}
	return pods
}

// fill adds pods to one planned node until it refuses one.
func (p *packer) fill(i int, d *demand, l level, pods []PodRef) []PodRef {
	for len(pods) > 0 {
		was := p.planned[i]
		now := was.with(d, l, PlacedPod{d.spec.Namespace, pods[0]}, p.settings)
		if now == nil {
			break
		}
		now.pool.quota = now.pool.quota.refund(was.ceiling, now.ceiling)
		p.planned[i], pods = now, pods[1:]
	}
	return pods
}

func (p *packer) ontoNew(d *demand, l level, pods []PodRef) []PodRef {
	for _, from := range p.pools {
		for len(pods) > 0 && from.refusal.Rule == "" {
			node := from.open(p.axis).with(d, l, PlacedPod{d.spec.Namespace, pods[0]}, p.settings)
			if node == nil {
				break
			}
			from.quota = from.quota.without(node.ceiling)
			p.planned = append(p.planned, node)
			pods = p.fill(len(p.planned)-1, d, l, pods[1:])
		}
	}
	return pods
}
