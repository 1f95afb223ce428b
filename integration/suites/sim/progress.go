package sim

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// commandEffects are what a claim passes through, in order, as its conditions tell it. They
// are spelled out here like all words of a checker.
var commandEffects = []string{"Launched", "Registered", "Initialized"}

// progressChecker checks the order of the conditions of NodeClaims.
type progressChecker struct {
	// passedSteps is how many steps each NodeClaim has passed. ending is whether its instance was terminating.
	passedSteps map[types.UID]int
	ending      map[types.UID]bool
}

// checkClaim checks that the conditions become true in order and never become false again.
func (l *progressChecker) checkClaim(c *checker, claim *karpenter.NodeClaim) {
	passed := 0
	for i, step := range commandEffects {
		if !claim.Status.Conditions.IsTrue(step) {
			continue
		}
		if i > passed {
			c.reportViolation("conditions become true in order", "%s is %s and not %s", claim.Name, step, commandEffects[passed])
		}
		passed = i + 1
	}
	if before := l.passedSteps[claim.UID]; claim.IsRebooting() || passed == before-1 && !claim.LastReboot().IsZero() {
		passed = before // A rebooted node is initialized again.
	}
	if passed > 0 && claim.Status.ProviderID == "" {
		c.reportViolation("conditions become true in order", "%s is Launched and has no provider id", claim.Name)
	}
	if before := l.passedSteps[claim.UID]; passed < before {
		c.reportViolation("conditions never revert", "%s was %s and no longer is", claim.Name, commandEffects[before-1])
	}
	ends := claim.Status.Conditions.IsTrue("InstanceTerminating")
	if l.ending[claim.UID] && !ends {
		c.reportViolation("conditions never revert", "%s was InstanceTerminating and no longer is", claim.Name)
	}
	if l.passedSteps == nil {
		l.passedSteps, l.ending = map[types.UID]int{}, map[types.UID]bool{}
	}
	l.passedSteps[claim.UID], l.ending[claim.UID] = passed, ends
}

// requiredLabels are the labels without which kube-scheduler would place pods wrongly.
var requiredLabels = []string{"karpenter.sh/nodepool", "karpenter.sh/capacity-type", "topology.kubernetes.io/zone", "node.kubernetes.io/instance-type"}

// checkNodes checks that a registered node has its labels and not the taint of unregistered nodes.
func (l *progressChecker) checkNodes(c *checker) {
	for _, o := range c.world.Kube.ListStored(cluster.Nodes) {
		node := o.(*corev1.Node)
		if node.Labels["karpenter.sh/registered"] != "true" {
			continue
		}
		c.checkMaxPods(node)
		for _, key := range requiredLabels {
			if node.Labels[key] == "" {
				c.reportViolation("a registered node has its labels and taints", "%s lacks %s", node.Name, key)
			}
		}
		for _, taint := range node.Spec.Taints {
			if taint.Key == "karpenter.sh/unregistered" {
				c.reportViolation("a registered node has its labels and taints", "%s still has the taint %s", node.Name, taint.Key)
			}
		}
	}
}
