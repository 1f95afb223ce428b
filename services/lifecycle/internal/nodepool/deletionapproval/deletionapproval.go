// Package deletionapproval delays the deletion of a large NodePool until a user approves it. It is
// pure: the same view gives the same decision.
//
// Kubernetes' garbage collector deletes a NodePool's claims as soon as the pool is deleted, all at
// once and without regard to budgets. A finalizer keeps the pool, and with it its claims, until a
// user decides to remove the nodes a few at a time or to keep them.
//
// The invariants:
//   - Only a large pool has the finalizer. A small pool, or any pool with the feature off, is deleted
//     as in Karpenter.
//   - A waiting deletion continues to wait, even if the pool becomes small. Turning the feature off
//     approves it.
//   - Claims that are kept belong to the next pool of that name.
//   - Disruption budgets do not apply: they limit Joist's own decisions, and a budget of zero would
//     keep the pool forever. The approval sets the pace, and each drain respects PodDisruptionBudgets.
package deletionapproval

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const (
	// Finalizer keeps a large NodePool from being deleted.
	Finalizer = "joist.sh/gate"
	// ApproveAnnotation is the annotation on the NodePool with a user's decision: "delete",
	// "delete 25%" or "delete 3" for a pace, or "keep".
	ApproveAnnotation = "joist.sh/approve"
	// KeptAnnotation is on claims that outlive their NodePool. Its value is that pool's UID.
	KeptAnnotation = "joist.sh/kept"
	// DefaultPace is how many of a pool's nodes are removed at a time by default.
	DefaultPace = "10%"
	// AlwaysAllowed is the number of nodes up to which no pool is large.
	AlwaysAllowed = 2
)

// Threshold defines which pools are large; with the zero value no pool is.
type Threshold struct {
	On bool
	// Nodes, and Percent of the cluster's nodes, are the size beyond which a pool is large.
	Nodes, Percent int
}

// View is the input of Decide.
type View struct {
	Pool *karpenter.NodePool
	// Claims are the claims with the pool's label. Claims without its owner reference are not
	// deleted with it and do not count.
	Claims []*karpenter.NodeClaim
	// Cluster is the number of all nodes of the cluster.
	Cluster   int
	Threshold Threshold
}

// Decision is the effects and the state of the deletion. Reason is empty if there is nothing to
// report.
type Decision struct {
	Effects []effect.Effect
	// AwaitsApproval reports that the deletion waits for a user.
	AwaitsApproval  bool
	Reason, Message string
}

// Decide returns the decision for the pool.
func Decide(v View) Decision {
	finalized := slices.Contains(v.Pool.Finalizers, Finalizer)
	switch {
	case v.Pool.DeletionTimestamp != nil && finalized:
		return v.decideDeletion()
	case v.Pool.DeletionTimestamp != nil:
		return Decision{}
	case v.isLarge() != finalized:
		return Decision{Effects: []effect.Effect{v.setFinalizer(!finalized)}}
	default:
		return Decision{Effects: v.adoptClaims()}
	}
}

// isLarge reports whether the pool exceeds the threshold.
func (v View) isLarge() bool {
	n := len(v.stayingClaims())
	return v.Threshold.On && (n > v.Threshold.Nodes || n > AlwaysAllowed && n*100 > v.Threshold.Percent*max(v.Cluster, n))
}

// ownClaims returns the claims that would be deleted with the pool.
func (v View) ownClaims() []*karpenter.NodeClaim {
	return slices.DeleteFunc(slices.Clone(v.Claims), func(c *karpenter.NodeClaim) bool { return v.ownerIndex(c) < 0 })
}

// stayingClaims returns the own claims that are not being deleted yet.
func (v View) stayingClaims() []*karpenter.NodeClaim {
	return slices.DeleteFunc(v.ownClaims(), func(c *karpenter.NodeClaim) bool { return c.DeletionTimestamp != nil })
}

// decideDeletion executes the approval.
func (v View) decideDeletion() Decision {
	word, pace, _ := strings.Cut(strings.TrimSpace(v.Pool.Annotations[ApproveAnnotation]), " ")
	switch {
	case !v.Threshold.On || len(v.ownClaims()) == 0:
		return Decision{Effects: []effect.Effect{v.setFinalizer(false)}}
	case word == "delete":
		return v.deleteNext(strings.TrimSpace(pace))
	case word == "keep" && pace == "":
		return v.keepClaims()
	}
	return v.awaitApproval("")
}

// awaitApproval returns the decision to wait, with instructions.
func (v View) awaitApproval(problem string) Decision {
	if text := v.Pool.Annotations[ApproveAnnotation]; text != "" && problem == "" {
		problem = fmt.Sprintf("%s=%s is not valid. ", ApproveAnnotation, text)
	}
	n := len(v.stayingClaims())
	return Decision{AwaitsApproval: true, Reason: "AwaitingApproval", Message: fmt.Sprintf(
		"%sDeleting this NodePool removes %d of %d nodes. Annotate it with %s=delete to remove them %s at a time (or \"delete 3\", \"delete 100%%\"), or with %s=keep to keep them",
		problem, n, max(v.Cluster, n), ApproveAnnotation, DefaultPace, ApproveAnnotation)}
}

// deleteNext deletes the next claims, but no more at a time than the pace allows.
func (v View) deleteNext(pace string) Decision {
	if pace == "" {
		pace = DefaultPace
	}
	most := intstr.Parse(pace)
	own, staying := len(v.ownClaims()), v.stayingClaims()
	allowed, err := intstr.GetScaledValueFromIntOrPercent(&most, own, true)
	if err != nil || allowed < 1 {
		return v.awaitApproval(fmt.Sprintf("%q is not a valid pace (use a number or a percentage above 0). ", pace))
	}
	n := min(max(0, allowed-(own-len(staying))), len(staying))
	d := Decision{Reason: "Removing", Message: fmt.Sprintf("its nodes are removed, %s at a time", pace)}
	for _, c := range staying[:n] {
		d.Effects = append(d.Effects, effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(c), UID: c.UID, Why: "its NodePool is being deleted"})
	}
	return d
}

// keepClaims removes the pool's owner references from its claims. Without any, the deletion of the
// pool deletes no claim.
func (v View) keepClaims() Decision {
	d := Decision{Reason: "Keeping", Message: "its nodes are kept for the next NodePool of this name"}
	for _, c := range v.ownClaims() {
		i := v.ownerIndex(c)
		c = c.DeepCopy()
		c.OwnerReferences = slices.Delete(c.OwnerReferences, i, i+1)
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations[KeptAnnotation] = string(v.Pool.UID)
		d.Effects = append(d.Effects, effect.Update{Object: c})
	}
	return d
}

// adoptClaims adds the pool's owner reference to claims that were kept.
func (v View) adoptClaims() []effect.Effect {
	var effects []effect.Effect
	for _, c := range v.Claims {
		if c.Annotations[KeptAnnotation] == "" || c.DeletionTimestamp != nil {
			continue
		}
		c = c.DeepCopy()
		delete(c.Annotations, KeptAnnotation)
		if v.ownerIndex(c) < 0 {
			blocks := true
			c.OwnerReferences = append(c.OwnerReferences, metav1.OwnerReference{
				APIVersion: cluster.NodePools.APIVersion(), Kind: cluster.NodePools.Kind,
				Name: v.Pool.Name, UID: v.Pool.UID, BlockOwnerDeletion: &blocks,
			})
		}
		effects = append(effects, effect.Update{Object: c})
	}
	return effects
}

// ownerIndex returns the index of the claim's owner reference to the pool, or -1.
func (v View) ownerIndex(c *karpenter.NodeClaim) int {
	return slices.IndexFunc(c.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == cluster.NodePools.Kind && o.UID == v.Pool.UID
	})
}

// setFinalizer returns the effect that adds or removes the finalizer.
func (v View) setFinalizer(on bool) effect.Effect {
	next := v.Pool.DeepCopy()
	next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool { return f == Finalizer })
	if on {
		next.Finalizers = append(next.Finalizers, Finalizer)
	}
	return effect.Update{Object: next}
}
