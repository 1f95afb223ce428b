package lifecycle

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/door"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// nodePools keeps each pool's counter, conditions and hash (B016–B019).
func (s *Service) nodePools(ctx context.Context, w world) error {
	usage := door.Usage(w.claims)
	for _, pool := range cluster.Cached[*karpenter.NodePool](s.Cache, cluster.NodePools) {
		effects, err := s.nodePool(pool, usage[pool.Name])
		if err == nil {
			err = s.do.Do(ctx, nil, effects...)
		}
		if err != nil {
			return fmt.Errorf("NodePool %s: %w", pool.Name, err)
		}
	}
	return nil
}

func (s *Service) nodePool(pool *karpenter.NodePool, used corev1.ResourceList) ([]effect.Effect, error) {
	hash, err := pool.Hash()
	if err != nil {
		return nil, fault.E("hashing", fault.Bug, err)
	}
	if pool.Annotations[karpenter.NodePoolHashAnnotationKey] != hash ||
		pool.Annotations[karpenter.NodePoolHashVersionAnnotationKey] != karpenter.NodePoolHashVersion {
		pool = pool.DeepCopy()
		annotate(pool, karpenter.NodePoolHashAnnotationKey, hash)
		annotate(pool, karpenter.NodePoolHashVersionAnnotationKey, karpenter.NodePoolHashVersion)
		return []effect.Effect{effect.Update{Object: pool}}, nil
	}
	next := pool.DeepCopy()
	nodes := used[karpenter.ResourceNodes]
	count := nodes.Value()
	next.Status.Nodes = &count
	next.Status.Resources = used
	next.Status.Conditions = s.poolConditions(next)
	if equalJSON(pool.Status, next.Status) {
		return nil, nil
	}
	return []effect.Effect{effect.UpdateStatus{Object: next}}, nil
}

// poolConditions says whether the pool may be planned for (B017, B092).
func (s *Service) poolConditions(pool *karpenter.NodePool) karpenter.Conditions {
	valid := metav1.Condition{
		Type: karpenter.ConditionTypeValidationSucceeded, Status: metav1.ConditionTrue,
		Reason: karpenter.ConditionTypeValidationSucceeded, ObservedGeneration: pool.Generation,
	}
	ready := metav1.Condition{
		Type: karpenter.ConditionTypeNodeClassReady, Status: metav1.ConditionTrue,
		Reason: karpenter.ConditionTypeNodeClassReady, ObservedGeneration: pool.Generation,
	}
	name := ""
	if ref := pool.Spec.Template.Spec.NodeClassRef; ref != nil {
		name = ref.Name
	}
	object, found := s.Cache.Get(cluster.NodeClasses, cluster.Key{Name: name})
	switch {
	case !found:
		ready.Status, ready.Reason = metav1.ConditionFalse, "NodeClassNotFound"
		ready.Message = fmt.Sprintf("there is no EC2NodeClass %q: create it, or correct spec.template.spec.nodeClassRef", name)
	case !object.(*karpenter.EC2NodeClass).Status.Conditions.True(karpenter.ConditionTypeReady):
		ready.Status, ready.Reason = metav1.ConditionFalse, "NodeClassNotReady"
		ready.Message = fmt.Sprintf("EC2NodeClass %q is not ready: see its conditions", name)
	}
	return pool.Status.Conditions.With(valid, s.Now()).With(ready, s.Now()).WithReady(karpenter.NodePoolReady(), pool.Generation, s.Now())
}
