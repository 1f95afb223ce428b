package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// CarryOut does what a command says, at once: nodes go, those that replace them come
// as the cheapest of what their launches would try, and pods run where the result
// puts them. Daemons go with their node. It returns the command as a round, for the
// caller to add the method and what finding it took.
func (s *Scenario) CarryOut(removed []string, result scheduling.Result) Round {
	out := Round{Removed: removed, Replacements: []NewNode{}, Moved: map[string][]string{}, PodsMoved: len(result.Nominations)}
	moving := s.remove(removed)
	for i := range result.Nodes {
		planned := s.newNode(&result.Nodes[i], s.running)
		s.came++
		planned.Name = fmt.Sprintf("new-%d", s.came)
		out.Replacements = append(out.Replacements, planned)
		out.PodsMoved += len(planned.Pods)
		s.Nodes = append(s.Nodes, s.arrived(&planned))
		for _, pod := range result.Nodes[i].Pods {
			moving.settle(pod.Pod.UID, &s.Nodes[len(s.Nodes)-1])
		}
	}
	for _, n := range result.Nominations {
		name := cmp.Or(n.Node, n.Claim)
		out.Moved[name] = append(out.Moved[name], s.running.of(n.Namespace, n.Pod.Name))
		if at := slices.IndexFunc(s.Nodes, func(on Node) bool { return on.Name == name }); at >= 0 {
			moving.settle(n.Pod.UID, &s.Nodes[at])
		}
	}
	out.CostAfter = s.CostPerHour()
	return out
}

// arrived is a node of a plan, as it is once it is there.
func (s *Scenario) arrived(n *NewNode) Node {
	out := s.nodeOf(&node{Name: n.Name, NodePool: n.NodePool, InstanceType: n.InstanceType, Zone: n.Zone, CapacityType: n.CapacityType}, s.byName)
	maps.Copy(out.bare.Labels, n.Labels)
	return out
}

// moving are pods whose node is gone, by UID.
type moving map[string]*corev1.Pod

func (m moving) settle(uid string, on *Node) {
	if pod := m[uid]; pod != nil {
		pod.Spec.NodeName = on.Name
		on.Pods = append(on.Pods, pod)
		delete(m, uid)
	}
}

// remove takes nodes away and returns their pods.
func (s *Scenario) remove(names []string) moving {
	out := moving{}
	s.Nodes = slices.DeleteFunc(s.Nodes, func(n Node) bool {
		if !slices.Contains(names, n.Name) {
			return false
		}
		for _, pod := range n.Pods {
			if !ofDaemon(pod) {
				out[string(pod.UID)] = pod
			}
		}
		return true
	})
	return out
}

func ofDaemon(pod *corev1.Pod) bool {
	for _, owner := range pod.OwnerReferences {
		if owner.Kind == "DaemonSet" {
			return true
		}
	}
	return false
}
