package karpenterbaseline

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
)

// carryOut applies a command: it removes nodes, adds nodes, and binds pods as in the
// simulation.
func (f *fleet) carryOut(ctx context.Context, c *disruption.Command, candidates int, userS float64) error {
	round := Round{Method: c.ConsolidationType(), Candidates: candidates, Replacements: []NewNode{}, Moved: map[string][]string{}, UserS: userS}
	homeless := f.remove(c, &round)
	for _, replacement := range c.Replacements {
		launch, err := f.launch(ctx, replacement.NodeClaim)
		if err != nil {
			return err
		}
		f.launched++
		launch.Name = fmt.Sprintf("new-%d", f.launched)
		f.scenario.Nodes = append(f.scenario.Nodes, node{
			Name: launch.Name, NodePool: launch.NodePool, InstanceType: launch.InstanceType, Zone: launch.Zone, CapacityType: launch.CapacityType,
		})
		for _, pod := range replacement.Pods {
			homeless.settle(pod, &f.scenario.Nodes[len(f.scenario.Nodes)-1])
		}
		round.Replacements = append(round.Replacements, launch)
	}
	for _, existing := range c.Results.ExistingNodes {
		at := slices.IndexFunc(f.scenario.Nodes, func(n node) bool { return n.Name == existing.Name() })
		for _, pod := range existing.Pods {
			homeless.settle(pod, &f.scenario.Nodes[at])
			round.Moved[existing.Name()] = append(round.Moved[existing.Name()], nameOf(pod))
		}
	}
	if len(homeless) > 0 {
		return fmt.Errorf("%w: %d of %d after %s", errLost, len(homeless), round.PodsMoved, c.String())
	}
	f.out.PodsMoved += round.PodsMoved
	round.CostAfter = f.cost()
	f.out.Rounds = append(f.out.Rounds, round)
	return nil
}

// waiting are the pods of removed nodes.
type waiting map[client.ObjectKey]*corev1.Pod

// settle binds the pod of which the simulation had a copy to a node.
func (w waiting) settle(like *corev1.Pod, on *node) {
	key := client.ObjectKeyFromObject(like)
	if pod := w[key]; pod != nil {
		pod.Spec.NodeName = on.Name
		on.Pods = append(on.Pods, pod)
		delete(w, key)
	}
}

// remove removes the command's nodes and returns their pods.
func (f *fleet) remove(c *disruption.Command, round *Round) waiting {
	out, gone := waiting{}, map[string]bool{}
	for _, candidate := range c.Candidates {
		gone[candidate.Name()] = true
		round.Removed = append(round.Removed, candidate.Name())
	}
	f.scenario.Nodes = slices.DeleteFunc(f.scenario.Nodes, func(n node) bool {
		if gone[n.Name] {
			for _, pod := range n.Pods {
				if !ofDaemon(pod) {
					out[client.ObjectKeyFromObject(pod)] = pod
				}
			}
		}
		return gone[n.Name]
	})
	round.PodsMoved = len(out)
	return out
}

// ofDaemon reports whether a DaemonSet owns the pod, which is then deleted with its node.
func ofDaemon(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" })
}

// cost returns the price of all nodes in US dollars per hour.
func (f *fleet) cost() (sum float64) {
	for _, n := range f.scenario.Nodes {
		sum += f.scenario.price(&n)
	}
	return sum
}

func (s *Scenario) price(n *node) float64 {
	for i := range s.InstanceTypes {
		if s.InstanceTypes[i].Name != n.InstanceType {
			continue
		}
		for _, o := range s.InstanceTypes[i].Offerings {
			if o.Zone == n.Zone && o.CapacityType == n.CapacityType {
				return o.Price
			}
		}
	}
	return 0
}
