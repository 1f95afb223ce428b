package scheduling

import "slices"

// Simulation answers what would become of the pods of some nodes if those went
// away, for many choices of nodes in one snapshot (B152). It changes nothing.
type Simulation struct {
	snapshot Snapshot
	stock    Stock
}

// NewSimulation prepares a snapshot. Pods that wait are given their places first:
// what is left is what removals may count on.
func NewSimulation(s Snapshot, stock Stock) *Simulation {
	return &Simulation{snapshot: s, stock: stock}
}

// Without plans the pods of nodes that would go, by their places in the snapshot's
// list. They may go to nodes that are initialized and stay, or to new ones; each
// pod's Node says where it runs now.
func (s *Simulation) Without(nodes ...int) Result {
	snapshot := s.snapshot
	snapshot.Nodes = slices.Clone(snapshot.Nodes)
	var pending []PodClass
	for _, i := range nodes {
		node := &snapshot.Nodes[i]
		node.Going = true
		for _, class := range node.Pods {
			moved := PodClass{Spec: class.Spec}
			for _, pod := range class.Pods {
				if !pod.Going {
					pod.Node = node.Name
					moved.Pods = append(moved.Pods, pod)
				}
			}
			if len(moved.Pods) > 0 {
				pending = append(pending, moved)
			}
		}
	}
	return SolveStock(Batch{Snapshot: snapshot, Pending: pending}, s.stock)
}
