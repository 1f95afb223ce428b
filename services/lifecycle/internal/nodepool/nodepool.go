// Package nodepool computes the status and the hash of NodePools. It is pure: the same view gives
// the same status.
//
// The invariant: resources count running instances. A claim without an instance, and one that is being
// deleted, do not count here. They count at admission, because their instances may exist.
package nodepool

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodepool/registrationhealth"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// View is the input of ComputeStatus.
type View struct {
	Pool *karpenter.NodePool
	// Class is the pool's node class, or nil.
	Class *karpenter.EC2NodeClass
	// Members are the pool's claims and nodes.
	Members []Member
	// Health is the history of registrations; zero without a class.
	Health registrationhealth.History
	Now    time.Time
}

// ComputeStatus returns the pool's status.
func ComputeStatus(v View) karpenter.NodePoolStatus {
	status := *v.Pool.Status.DeepCopy()
	status.Resources = Usage(v.Members)
	nodes := status.Resources[karpenter.ResourceNodes]
	count := nodes.Value()
	status.Nodes = &count
	conditions := status.Conditions.With(validCondition(v.Pool), v.Now).With(nodeClassCondition(v), v.Now)
	if v.Class != nil {
		status.NodeClassObservedGeneration = v.Class.Generation
		before, _ := conditions.Get(karpenter.ConditionTypeNodeRegistrationHealthy)
		conditions = conditions.With(v.Health.Condition(before), v.Now)
	}
	conditions = withPolicy(conditions, v.Pool, v.Now)
	conditions = withBudgets(conditions, v.Pool, v.Now)
	conditions = withRollout(conditions, v)
	status.Conditions = conditions.WithReady(karpenter.NodePoolReady(), v.Pool.Generation, v.Now)
	return status
}

// validCondition returns the condition for rules that the CRD's schema cannot express.
func validCondition(pool *karpenter.NodePool) metav1.Condition {
	errs := pool.Validate()
	if len(errs) == 0 {
		return trueCondition(pool, karpenter.ConditionTypeValidationSucceeded)
	}
	message := errs[0].Error()
	if more := len(errs) - 1; more > 0 {
		message = fmt.Sprintf("%s (and %d more)", message, more)
	}
	return falseCondition(pool, karpenter.ConditionTypeValidationSucceeded, karpenter.ReasonNodePoolValidationFailed, message)
}

// nodeClassCondition returns the condition NodeClassReady, with Karpenter's reasons.
func nodeClassCondition(v View) metav1.Condition {
	const kind = karpenter.ConditionTypeNodeClassReady
	if v.Class == nil {
		name := ""
		if ref := v.Pool.Spec.Template.Spec.NodeClassRef; ref != nil {
			name = ref.Name
		}
		return falseCondition(v.Pool, kind, "NodeClassNotFound",
			fmt.Sprintf("NodeClass not found on cluster: create EC2NodeClass %q, or correct spec.template.spec.nodeClassRef", name))
	}
	if v.Class.DeletionTimestamp != nil {
		return falseCondition(v.Pool, kind, "NodeClassTerminating", "NodeClass is Terminating")
	}
	ready, _ := v.Class.Status.Conditions.Get(karpenter.ConditionTypeReady)
	switch ready.Status {
	case metav1.ConditionTrue:
		return trueCondition(v.Pool, kind)
	case metav1.ConditionFalse:
		return falseCondition(v.Pool, kind, ready.Reason, ready.Message)
	default:
		return falseCondition(v.Pool, kind, "NodeClassReadinessUnknown", "Node Class Readiness Unknown")
	}
}

func trueCondition(pool *karpenter.NodePool, kind string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, ObservedGeneration: pool.Generation}
}

func falseCondition(pool *karpenter.NodePool, kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: pool.Generation}
}

// HashAnnotations returns the pool's hash and its version as annotations.
func HashAnnotations(pool *karpenter.NodePool) (map[string]string, error) {
	hash, err := pool.Hash()
	if err != nil {
		return nil, err
	}
	return map[string]string{
		karpenter.NodePoolHashAnnotationKey:        hash,
		karpenter.NodePoolHashVersionAnnotationKey: karpenter.NodePoolHashVersion,
	}, nil
}

// RehashClaims returns the pool's claims whose hash has another version, with the pool's hash,
// while the pool's version is outdated: hashes of different versions cannot be compared. A claim
// with the condition Drifted keeps its hash. The claims are written before the pool, so a crash in
// between repeats the work.
func RehashClaims(pool *karpenter.NodePool, hash map[string]string, claims []*karpenter.NodeClaim) []*karpenter.NodeClaim {
	const hashKey, versionKey = karpenter.NodePoolHashAnnotationKey, karpenter.NodePoolHashVersionAnnotationKey
	if pool.Annotations[versionKey] == hash[versionKey] {
		return nil
	}
	var out []*karpenter.NodeClaim
	for _, c := range claims {
		if c.Annotations[versionKey] == hash[versionKey] {
			continue
		}
		c = c.DeepCopy()
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations[versionKey] = hash[versionKey]
		if _, looked := c.Status.Conditions.Get(karpenter.ConditionTypeDrifted); !looked {
			c.Annotations[hashKey] = hash[hashKey]
		}
		out = append(out, c)
	}
	return out
}
