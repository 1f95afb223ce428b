// Package nodepool says what a NodePool's status and hash must be.
// It is pure: the same view gives the same status.
//
// The invariants:
//
//   - What is counted is what runs: a claim without an instance, and one that is
//     going, count for nothing here. The door counts them, because their
//     instances may exist all the same.
//   - A pool of somebody else's node class is never written.
package nodepool

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodepool/registrationhealth"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// View is all that a pool's status is made of.
type View struct {
	Pool *karpenter.NodePool
	// Class is the pool's node class, or nil.
	Class *karpenter.EC2NodeClass
	// Members are the pool's claims and nodes.
	Members []Member
	// Health is how registrations went; the zero Ring while there is no class.
	Health registrationhealth.History
	Now    time.Time
}

// ForeignClass reports whether the pool's nodes are made by something other than Joist:
// its node class is of another kind.
func ForeignClass(pool *karpenter.NodePool) bool {
	ref := pool.Spec.Template.Spec.NodeClassRef
	if ref == nil {
		return false
	}
	return cmp.Or(ref.Group, karpenter.AWSGroup) != karpenter.AWSGroup || cmp.Or(ref.Kind, cluster.NodeClasses.Kind) != cluster.NodeClasses.Kind
}

// ComputeStatus is what the pool's status must be now.
func ComputeStatus(v View) karpenter.NodePoolStatus {
	status := *v.Pool.Status.DeepCopy()
	status.Resources = Usage(v.Members)
	nodes := status.Resources[karpenter.ResourceNodes]
	count := nodes.Value()
	status.Nodes = &count
	conditions := status.Conditions.With(valid(v.Pool), v.Now).With(classReady(v), v.Now)
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

// valid says whether the pool passes what its schema cannot check.
func valid(pool *karpenter.NodePool) metav1.Condition {
	errs := pool.Validate()
	if len(errs) == 0 {
		return yes(pool, karpenter.ConditionTypeValidationSucceeded)
	}
	message := errs[0].Error()
	if more := len(errs) - 1; more > 0 {
		message = fmt.Sprintf("%s (and %d more)", message, more)
	}
	return no(pool, karpenter.ConditionTypeValidationSucceeded, karpenter.ReasonNodePoolValidationFailed, message)
}

// classReady says whether the pool's nodes can be made. The reasons are
// upstream's.
func classReady(v View) metav1.Condition {
	const kind = karpenter.ConditionTypeNodeClassReady
	if v.Class == nil {
		name := ""
		if ref := v.Pool.Spec.Template.Spec.NodeClassRef; ref != nil {
			name = ref.Name
		}
		return no(v.Pool, kind, "NodeClassNotFound",
			fmt.Sprintf("NodeClass not found on cluster: create EC2NodeClass %q, or correct spec.template.spec.nodeClassRef", name))
	}
	if v.Class.DeletionTimestamp != nil {
		return no(v.Pool, kind, "NodeClassTerminating", "NodeClass is Terminating")
	}
	ready, _ := v.Class.Status.Conditions.Get(karpenter.ConditionTypeReady)
	switch ready.Status {
	case metav1.ConditionTrue:
		return yes(v.Pool, kind)
	case metav1.ConditionFalse:
		return no(v.Pool, kind, ready.Reason, ready.Message)
	default:
		return no(v.Pool, kind, "NodeClassReadinessUnknown", "Node Class Readiness Unknown")
	}
}

func yes(pool *karpenter.NodePool, kind string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, ObservedGeneration: pool.Generation}
}

func no(pool *karpenter.NodePool, kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: pool.Generation}
}

// WithHash is the pool's own hash and its version, as annotations.
func WithHash(pool *karpenter.NodePool) (map[string]string, error) {
	hash, err := pool.Hash()
	if err != nil {
		return nil, err
	}
	return map[string]string{
		karpenter.NodePoolHashAnnotationKey:        hash,
		karpenter.NodePoolHashVersionAnnotationKey: karpenter.NodePoolHashVersion,
	}, nil
}

// RehashClaims are the pool's claims whose hash is of another version than hashes have
// by now, as they should be, while the pool's own is: such hashes cannot be
// compared, so the claim takes the pool's over, as though it had been made of it.
// One that has been looked at for drift keeps the hash that says so. They are
// written before the pool is, so that whoever dies between begins anew.
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
