package planvalidator

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// LowerBound returns a price in US dollars per hour that no plan which places all placeable pods can be below. It
// is the value of the linear program of Gilmore and Gomory: a fractional number of nodes, each of which runs whole
// pods, covers the pods within the limits of the NodePools. Daemons are subtracted, and pods that must not share a
// host do not. Other spread and affinity, weights, minValues and price limits are ignored.
func LowerBound(s *Scenario) (float64, error) {
	p := newFinalCluster(s, &Result{}, &report{}).newLinearProgram()
	if len(p.types) == 0 {
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
	groups    []hostGroup
	types     []podType
	columns   []nodeOption
	// limits are what the NodePools may still launch.
	limits []float64
}

// podType is a number of pods with equal requests that may run on the same nodes.
type podType struct {
	count int
	// class is an index of nodeOption.serves.
	class int
	// size has the requests by resource, and 1 for each group of hostGroups that the pods belong to.
	size []float64
}

// nodeOption is an offering or an existing node.
type nodeOption struct {
	// room is the free amount of each resource, and the number of pods of each group of hostGroups.
	room []float64
	// serves is whether the pods of each class may run there.
	serves []bool
	// usage is what a launch uses of each limit.
	usage []float64
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
	p := &linearProgram{resources: resourceNames(pending), groups: w.scenario.hostGroups(pending)}
	sites := w.launchSites(p)
	classes, types := map[string]int{}, map[string]int{}
	for _, group := range groupBySelectors(pending) {
		serves := reachableSites(group[0], sites)
		class, seen := classes[fmt.Sprint(serves)]
		if !seen {
			class = len(classes)
			classes[fmt.Sprint(serves)] = class
			for i := range sites {
				sites[i].serves = append(sites[i].serves, serves[i])
			}
		}
		for _, one := range group {
			size := p.sizeOf(one)
			id := fmt.Sprint(class, size)
			at, seen := types[id]
			if !seen {
				if !fitsOffering(size, serves, sites) {
					continue
				}
				at = len(p.types)
				types[id] = at
				p.types = append(p.types, podType{class: class, size: size})
			}
			p.types[at].count++
		}
	}
	p.columns = cheapestOptions(sites)
	return p
}

// sizeOf returns the dimensions of a pod.
func (p *linearProgram) sizeOf(one *pod) []float64 {
	size := toVector(one.requests, p.resources, roundDown)
	for _, g := range p.groups {
		in := 0.0
		if g.pods[one] {
			in = 1
		}
		size = append(size, in)
	}
	return size
}

// toVector returns the amounts in thousandths, or in bytes for memory and storage. Whole numbers make sums exact.
func toVector(list corev1.ResourceList, names []corev1.ResourceName, round func(float64) float64) []float64 {
	out := make([]float64, len(names))
	for i, name := range names {
		q := list[name]
		out[i] = q.AsApproximateFloat64()
		if name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage {
			out[i] *= 1000
		}
		out[i] = round(out[i])
	}
	return out
}

// roundDown and roundUp tolerate the error of the conversion from decimal numbers.
func roundDown(q float64) float64 { return math.Floor(q + 1e-6) }
func roundUp(q float64) float64   { return math.Ceil(q - 1e-6) }

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

// hostGroup is pods of which a node may run only a few.
type hostGroup struct {
	id   string
	pods map[*pod]bool
	most float64
}

// groupPart is the number of which one part of the pods makes a large group. Smaller ones hardly raise the bound.
const groupPart = 20

// hostGroups returns the large groups of pods that select each other in anti-affinity or spread over hosts.
func (s *Scenario) hostGroups(pods []*pod) []hostGroup {
	var groups []hostGroup
	index := map[string]int{}
	add := func(p *pod, id string, most float64) {
		at, seen := index[id]
		if !seen {
			at = len(groups)
			index[id] = at
			groups = append(groups, hostGroup{id: id, pods: map[*pod]bool{}, most: most})
		}
		groups[at].pods[p] = true
	}
	for _, p := range pods {
		for _, from := range requiredAnti(p) {
			if t := s.newPodTerm(from, p.Pod); t.topology == corev1.LabelHostname && t.matchesPod(p) {
				add(p, t.id(), 1)
			}
		}
		for _, c := range p.Spec.TopologySpreadConstraints {
			if c.TopologyKey != corev1.LabelHostname || c.WhenUnsatisfiable != corev1.DoNotSchedule {
				continue
			}
			if r := newSpreadRule(c, p, p.spreadKeys()); r.matchesPod(p) {
				add(p, r.id(), float64(c.MaxSkew))
			}
		}
	}
	return slices.DeleteFunc(groups, func(g hostGroup) bool {
		return len(g.pods) <= int(g.most) || len(g.pods) < len(pods)/groupPart
	})
}

// poolLimit is a resource that a NodePool limits.
type poolLimit struct {
	pool *NodePool
	name corev1.ResourceName
}

// poolLimits returns the limits of the NodePools and what existing nodes leave of them.
func (w *finalCluster) poolLimits() (names []poolLimit, left []float64) {
	for i := range w.scenario.NodePools {
		pool := &w.scenario.NodePools[i]
		for _, name := range sortedNames(pool.Spec.Limits) {
			used := corev1.ResourceList{}
			for _, n := range w.nodes {
				if n.pool == pool && n.plan == nil {
					addResources(used, withNode(n.machine.Capacity))
				}
			}
			names = append(names, poolLimit{pool, name})
			left = append(left, max(0, toVector(subtractResources(pool.Spec.Limits, used), []corev1.ResourceName{name}, roundUp)[0]))
		}
	}
	return names, left
}

// withNode adds the node itself to its resources.
func withNode(capacity corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{limitNodes: *resource.NewQuantity(1, resource.DecimalSI)}
	addResources(out, capacity)
	return out
}

func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	var names []corev1.ResourceName
	for name := range list {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
