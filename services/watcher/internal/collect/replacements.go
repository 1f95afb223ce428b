package collect

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// reserveReplacements returns the nodes with capacity reserved on replacements, for the pods of the
// nodes that they replace. These pods are not pending, so nothing else reserves that capacity:
// other pods would be planned into it, and a second replacement would be launched. Changed nodes
// are copies in a new list.
func (c *collector) reserveReplacements(nodes []planning.Node) []planning.Node {
	replacements, moving := map[string]bool{}, map[string]corev1.ResourceList{}
	for i := range nodes {
		if c.awaitsReplacement(&nodes[i]) {
			for _, name := range nodes[i].Proposal.Replacements {
				replacements[name] = true
			}
			addRequests(nodes[i].Pods, moving)
		}
	}
	if len(replacements) == 0 {
		return nodes
	}
	nodes = slices.Clone(nodes)
	for i := range nodes {
		if !replacements[nodes[i].Claim] {
			continue
		}
		for _, uid := range c.expectedPods(nodes[i].Claim) {
			nodes[i].Used = karpenter.SumResources(nodes[i].Used, moving[uid])
		}
	}
	return nodes
}

// expectedPods returns the UIDs of the pods that a claim was planned for, even after it is
// initialized, because other replacements may not be.
func (c *collector) expectedPods(name string) []string {
	object, _ := c.cache.Get(cluster.NodeClaims, cluster.Key{Name: name})
	claim, known := object.(*karpenter.NodeClaim)
	if !known {
		return nil
	}
	return planning.ParseExpectedPods(claim.Annotations[planning.ExpectedPodsAnnotation])
}

// awaitsReplacement reports whether the node stays until its replacements are ready.
func (c *collector) awaitsReplacement(node *planning.Node) bool {
	_, leaves := c.leaving[node.Name]
	return node.Proposal != nil && !node.Proposal.ConfirmedAt.IsZero() && !leaves
}

// addRequests adds by UID the requests of the pods that will need another node.
func addRequests(classes []planning.PodClass, out map[string]corev1.ResourceList) {
	for i := range classes {
		for j := range classes[i].Pods {
			if pod := &classes[i].Pods[j]; !pod.Terminating {
				out[pod.UID] = classes[i].Spec.Requests
			}
		}
	}
}
