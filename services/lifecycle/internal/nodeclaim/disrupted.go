package nodeclaim

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Disrupted is the claim's node with what keeps further pods away from it,
// for who has no time to wait for the next look.
func Disrupted(c *karpenter.NodeClaim, node *corev1.Node) (*corev1.Node, bool) {
	return View{Claim: c, Node: node}.disrupted()
}
