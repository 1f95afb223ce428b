// Package deletionapproval makes the deletion of a NodePool with many nodes a plan that waits
// for a person. It is pure: the same view gives the same decision.
//
// Kubernetes' garbage collector deletes the claims of a pool as soon as the pool
// is gone, all at once and whatever budgets say. A finalizer keeps the
// pool, and with it its claims, until somebody has answered: to remove the nodes
// a few at a time, or to keep them.
//
// The invariants:
//
//   - The finalizer is on a pool only while the pool is large; a small pool, or any
//     with the gate off, goes exactly as Karpenter's do.
//   - What was stopped stays stopped until it is answered, even when the pool has
//     become small meanwhile. Switching the gate off is an answer as well.
//   - Claims that are kept belong to the next pool of the name.
//   - The pool's disruption budgets do not count here: they bound what Joist does of
//     its own accord, and a budget of nothing would keep the pool for ever. The answer
//     sets the pace, and PodDisruptionBudgets hold in each drain.
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
	// Finalizer keeps a large NodePool from going.
	Finalizer = "joist.sh/gate"
	// ApproveAnnotation is the annotation on the NodePool by which a person decides: "delete",
	// "delete 25%" or "delete 3" for a pace, or "keep".
	ApproveAnnotation = "joist.sh/approve"
	// KeptAnnotation is on claims that outlive their NodePool: that pool's UID.
	KeptAnnotation = "joist.sh/kept"
	// DefaultPace is how much of a pool is removed at a time unless the answer says so.
	DefaultPace = "10%"
	// AlwaysAllowed is how many nodes are never many, whatever part of the cluster they are.
	AlwaysAllowed = 2
)

// Threshold is which pools are large; the zero value is none.
type Threshold struct {
	On bool
	// Nodes and Percent of the cluster's nodes are what a pool may have without being
	// large.
	Nodes, Percent int
}

// View is all that is looked at.
type View struct {
	Pool *karpenter.NodePool
	// Claims are those with the pool's label. What does not belong to the pool does not
	// go with it, and counts for nothing here.
	Claims []*karpenter.NodeClaim
	// Cluster is how many nodes the cluster has, ours or not.
	Cluster   int
	Threshold Threshold
}

// Decision is what is to be done, and how the deletion stands; Reason is empty when
// there is none, or nothing to say of it.
type Decision struct {
	Effects []effect.Effect
	// Waits says that a person is waited for.
	Waits           bool
	Reason, Message string
}

// Decide decides about the pool.
func Decide(v View) Decision {
	finalized := slices.Contains(v.Pool.Finalizers, Finalizer)
	switch {
	case v.Pool.DeletionTimestamp != nil && finalized:
		return v.going()
	case v.Pool.DeletionTimestamp != nil:
		return Decision{}
	case v.many() != finalized:
		return Decision{Effects: []effect.Effect{v.finalized(!finalized)}}
	default:
		return Decision{Effects: v.adopted()}
	}
}

// many reports whether the pool is large.
func (v View) many() bool {
	n := len(v.staying())
	return v.Threshold.On && (n > v.Threshold.Nodes || n > AlwaysAllowed && n*100 > v.Threshold.Percent*max(v.Cluster, n))
}

// own are the claims that would go with the pool.
func (v View) own() []*karpenter.NodeClaim {
	return slices.DeleteFunc(slices.Clone(v.Claims), func(c *karpenter.NodeClaim) bool { return v.owner(c) < 0 })
}

// staying are those of them that are not going yet.
func (v View) staying() []*karpenter.NodeClaim {
	return slices.DeleteFunc(v.own(), func(c *karpenter.NodeClaim) bool { return c.DeletionTimestamp != nil })
}

// going carries out the answer.
func (v View) going() Decision {
	word, pace, _ := strings.Cut(strings.TrimSpace(v.Pool.Annotations[ApproveAnnotation]), " ")
	switch {
	case !v.Threshold.On || len(v.own()) == 0:
		return Decision{Effects: []effect.Effect{v.finalized(false)}}
	case word == "delete":
		return v.wave(strings.TrimSpace(pace))
	case word == "keep" && pace == "":
		return v.keep()
	}
	return v.wait("")
}

// wait says what the pool waits for.
func (v View) wait(problem string) Decision {
	if text := v.Pool.Annotations[ApproveAnnotation]; text != "" && problem == "" {
		problem = fmt.Sprintf("%s=%s is no answer. ", ApproveAnnotation, text)
	}
	n := len(v.staying())
	return Decision{Waits: true, Reason: "AwaitingApproval", Message: fmt.Sprintf(
		"%sDeleting this NodePool removes %d of %d nodes. Annotate it with %s=delete to remove them %s at a time (or \"delete 3\", \"delete 100%%\"), or with %s=keep to keep them",
		problem, n, max(v.Cluster, n), ApproveAnnotation, DefaultPace, ApproveAnnotation)}
}

// wave removes the next claims, so many that no more are going than the pace allows.
func (v View) wave(pace string) Decision {
	if pace == "" {
		pace = DefaultPace
	}
	most := intstr.Parse(pace)
	own, staying := len(v.own()), v.staying()
	allowed, err := intstr.GetScaledValueFromIntOrPercent(&most, own, true)
	if err != nil || allowed < 1 {
		return v.wait(fmt.Sprintf("%q is no pace: write a number or a percentage above 0. ", pace))
	}
	n := min(max(0, allowed-(own-len(staying))), len(staying))
	d := Decision{Reason: "Removing", Message: fmt.Sprintf("its nodes are removed, %s at a time", pace)}
	for _, c := range staying[:n] {
		d.Effects = append(d.Effects, effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(c), UID: c.UID, Why: "its NodePool is being deleted"})
	}
	return d
}

// keep takes the pool's claims from it. Once none is its own it goes alone.
func (v View) keep() Decision {
	d := Decision{Reason: "Keeping", Message: "its nodes are kept for the next NodePool of this name"}
	for _, c := range v.own() {
		i := v.owner(c)
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

// adopted makes claims that outlived a pool of this name the pool's own.
func (v View) adopted() []effect.Effect {
	var effects []effect.Effect
	for _, c := range v.Claims {
		if c.Annotations[KeptAnnotation] == "" || c.DeletionTimestamp != nil {
			continue
		}
		c = c.DeepCopy()
		delete(c.Annotations, KeptAnnotation)
		if v.owner(c) < 0 {
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

// owner finds the claim's reference to the pool; -1 for none.
func (v View) owner(c *karpenter.NodeClaim) int {
	return slices.IndexFunc(c.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == cluster.NodePools.Kind && o.UID == v.Pool.UID
	})
}

// finalized is the pool with the finalizer or without it.
func (v View) finalized(on bool) effect.Effect {
	next := v.Pool.DeepCopy()
	next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool { return f == Finalizer })
	if on {
		next.Finalizers = append(next.Finalizers, Finalizer)
	}
	return effect.Update{Object: next}
}
