package planvalidator

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Bound is a price in US dollars an hour below which no plan can place all pods
// that fit anywhere.
//
// It is the value of a linear program in which nodes and pods are divisible: for
// each class of pods that may go to the same places, and each resource, nodes
// must cover what the class takes in all; a node's resource may serve several
// classes in parts. Daemons are subtracted, and there are as many nodes as the
// largest group of pods of which no two may share a host. Everything else is
// left out: spread and affinity, weights, limits, and whole pods and nodes.
func Bound(s *Scenario) (float64, error) {
	p := newWorld(s, &Result{}, &report{}).programme()
	if len(p.classes) == 0 {
		return 0, nil
	}
	value, err := p.solve()
	if err != nil {
		return 0, fmt.Errorf("bounding scenario %s from below: %w", s.Name, err)
	}
	return value, nil
}

// programme is the linear program.
type programme struct {
	resources []corev1.ResourceName
	// classes hold what their pods take in all, of each resource.
	classes [][]float64
	columns []column
	// hosts is the size of the largest group of pods that share no host.
	hosts float64
}

// column is a way to have room: an offering, or a node that exists.
type column struct {
	// room is of each resource, and serves says for each class whether its pods
	// may be there.
	room   []float64
	serves []bool
	// hosts is how many of the pods that share no host it can hold.
	hosts float64
	// price is in US dollars an hour. There is any number of what can be
	// launched, and one of what exists, which costs nothing more.
	price  float64
	exists bool
}

// programme writes down what the pending pods and the places come to.
func (w *world) programme() *programme {
	var pending []*pod
	for i := range w.scenario.Pods {
		pending = append(pending, newPod(&w.scenario.Pods[i]))
	}
	p := &programme{resources: named(pending)}
	sites := w.sites(p.resources)
	apart := largestApart(pending)
	p.hosts = float64(len(apart))
	index := map[string]int{}
	for _, group := range selecting(pending) {
		serves := reach(group[0], p.resources, sites)
		group = slices.DeleteFunc(group, func(one *pod) bool { return !fitsAny(p.vector(one.requests), serves, sites) })
		if len(group) == 0 {
			continue
		}
		at, seen := index[fmt.Sprint(serves)]
		if !seen {
			at = len(p.classes)
			index[fmt.Sprint(serves)] = at
			p.classes = append(p.classes, make([]float64, len(p.resources)))
			for i := range sites {
				sites[i].serves = append(sites[i].serves, serves[i])
			}
		}
		for _, one := range group {
			for r, q := range p.vector(one.requests) {
				p.classes[at][r] += q
			}
			if apart[one] {
				for i := range sites {
					sites[i].holds(serves[i])
				}
			}
		}
	}
	p.columns = cheapest(sites)
	return p
}

// vector reads resources in units in which pods and nodes have small numbers.
func (p *programme) vector(list corev1.ResourceList) []float64 { return vector(list, p.resources) }

func vector(list corev1.ResourceList, names []corev1.ResourceName) []float64 {
	out := make([]float64, len(names))
	for i, name := range names {
		q := list[name]
		out[i] = q.AsApproximateFloat64()
		if name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage {
			out[i] /= 1 << 30
		}
	}
	return out
}

func named(pods []*pod) []corev1.ResourceName {
	var names []corev1.ResourceName
	for _, p := range pods {
		for name := range p.requests {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}
