package planvalidator

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// LowerBound returns a price in US dollars per hour that no plan which places all placeable pods can be below. It
// is the value of a linear program with divisible nodes and pods: for each class of pods and each resource, nodes
// must cover the sum of the requests. Daemons are subtracted, and there are at least as many nodes as the largest
// group of pods that must not share a host. Spread, affinity, weights and limits are ignored.
func LowerBound(s *Scenario) (float64, error) {
	p := newFinalCluster(s, &Result{}, &report{}).newLinearProgram()
	if len(p.classes) == 0 {
		return 0, nil
	}
	value, err := p.solveDual()
	if err != nil {
		return 0, fmt.Errorf("computing the lower bound of scenario %s: %w", s.Name, err)
	}
	return value, nil
}

// linearProgram is the linear program of LowerBound.
type linearProgram struct {
	resources []corev1.ResourceName
	// classes are the summed requests of each class of pods.
	classes [][]float64
	columns []nodeOption
	// hosts is the size of the largest group of pods that must not share a host.
	hosts float64
}

// nodeOption is an offering or an existing node.
type nodeOption struct {
	// room is the free amount of each resource. serves is whether the pods of each class may run there.
	room   []float64
	serves []bool
	// hosts is how many of the pods that must not share a host it can run.
	hosts float64
	// price is in US dollars per hour; 0 for an existing node, of which there is only one.
	price  float64
	exists bool
}

// newLinearProgram builds the program from the pending pods and the nodes.
func (w *finalCluster) newLinearProgram() *linearProgram {
	var pending []*pod
	for i := range w.scenario.Pods {
		pending = append(pending, newPod(&w.scenario.Pods[i]))
	}
	p := &linearProgram{resources: resourceNames(pending)}
	sites := w.launchSites(p.resources)
	apart := w.scenario.largestSpreadGroup(pending)
	p.hosts = float64(len(apart))
	index := map[string]int{}
	for _, group := range groupBySelectors(pending) {
		serves := reachableSites(group[0], p.resources, sites)
		group = slices.DeleteFunc(group, func(one *pod) bool { return !fitsAny(p.resourceVector(one.requests), serves, sites) })
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
			for r, q := range p.resourceVector(one.requests) {
				p.classes[at][r] += q
			}
			if apart[one] {
				for i := range sites {
					sites[i].addHolder(serves[i])
				}
			}
		}
	}
	p.columns = cheapestOptions(sites)
	return p
}

// resourceVector converts resources to units in which the numbers are small.
func (p *linearProgram) resourceVector(list corev1.ResourceList) []float64 {
	return toVector(list, p.resources)
}

func toVector(list corev1.ResourceList, names []corev1.ResourceName) []float64 {
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

func resourceNames(pods []*pod) []corev1.ResourceName {
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
