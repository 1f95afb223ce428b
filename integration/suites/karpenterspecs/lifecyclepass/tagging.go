package lifecyclepass

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Tagging is the controller that tags instances.
const Tagging = "nodeclaim/tagging"

// TagInstances runs a pass of a new service in place of Karpenter's controller. The inventory that follows shows the tags.
func TagInstances(ctx context.Context) error {
	s, err := passAnew(ctx, Tagging, nil)
	if err != nil {
		return err
	}
	return errors.Join(s.sendInventory(ctx), s.client.awaitSpecCache(ctx, current.client))
}

// registerNodes adds the Node that a NodeClaim names, and the conditions that it then has: the specs create neither.
func (s *system) registerNodes() {
	for _, c := range cluster.ListCached[*karpenter.NodeClaim](s.cache, cluster.NodeClaims) {
		if c.Status.NodeName == "" {
			continue
		}
		registered := c.DeepCopy()
		for _, kind := range []string{karpenter.ConditionTypeLaunched, karpenter.ConditionTypeRegistered, karpenter.ConditionTypeInitialized} {
			registered.Status.Conditions = registered.Status.Conditions.With(metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind}, now())
		}
		s.cache[cluster.NodeClaims].Remove(cluster.KeyOf(c)) // A store keeps an object of the same version.
		s.cache[cluster.NodeClaims].Put(registered)
		node := &corev1.Node{}
		node.Name, node.Spec.ProviderID = c.Status.NodeName, c.Status.ProviderID
		s.cache[cluster.Nodes].Put(node)
	}
}
