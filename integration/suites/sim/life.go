package sim

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// steps are what a claim passes through, in order, as its conditions tell it. They
// are spelled out here like all words of a checker.
var steps = []string{"Launched", "Registered", "Initialized"}

// life watches how far each claim has come.
type life struct {
	// reached is how many of the steps a claim has passed, and ending whether its
	// instance was told to end.
	reached map[types.UID]int
	ending  map[types.UID]bool
}

// look: a claim passes its steps in order, and never goes back: what is known of
// it may be lost by a process, but not by the world.
func (l *life) look(c *checker, claim *karpenter.NodeClaim) {
	passed := 0
	for i, step := range steps {
		if !claim.Status.Conditions.True(step) {
			continue
		}
		if i > passed {
			c.violate("a life goes step by step", "%s is %s and not %s", claim.Name, step, steps[passed])
		}
		passed = i + 1
	}
	if passed > 0 && claim.Status.ProviderID == "" {
		c.violate("a life goes step by step", "%s is launched and has no instance", claim.Name)
	}
	if before := l.reached[claim.UID]; passed < before {
		c.violate("a life never goes back", "%s was %s and is not any more", claim.Name, steps[before-1])
	}
	ends := claim.Status.Conditions.True("InstanceTerminating")
	if l.ending[claim.UID] && !ends {
		c.violate("a life never goes back", "the instance of %s was ending and is not any more", claim.Name)
	}
	if l.reached == nil {
		l.reached, l.ending = map[types.UID]int{}, map[types.UID]bool{}
	}
	l.reached[claim.UID], l.ending[claim.UID] = passed, ends
}

// needed are the labels without which pods would be put on a node by mistake.
var needed = []string{"karpenter.sh/nodepool", "karpenter.sh/capacity-type", "topology.kubernetes.io/zone", "node.kubernetes.io/instance-type"}

// nodes: a node that pods may come to says what it is, and does not go before
// its claim has let it.
func (l *life) nodes(c *checker) {
	objects, err := c.world.Kube.World("checker").List(context.Background(), cluster.Nodes, "")
	if err != nil {
		c.violate("models work", "listing nodes: %v", err)
	}
	for _, o := range objects {
		node := o.(*corev1.Node)
		if node.Labels["karpenter.sh/registered"] != "true" {
			continue
		}
		for _, key := range needed {
			if node.Labels[key] == "" {
				c.violate("a registered node says what it is", "%s lacks %s", node.Name, key)
			}
		}
		for _, taint := range node.Spec.Taints {
			if taint.Key == "karpenter.sh/unregistered" {
				c.violate("a registered node says what it is", "%s is still tainted %s", node.Name, taint.Key)
			}
		}
	}
}
