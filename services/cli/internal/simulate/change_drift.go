package simulate

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/drift"
)

// updateDrifts looks at each node of a pool or class that is in the change. What a
// snapshot does not carry cannot be looked at: it stays as it was found.
func (a *changeBuilder) updateDrifts() error {
	touched := map[ChangedObject]bool{}
	for _, o := range a.Objects {
		touched[ChangedObject{Kind: o.Kind, Name: o.Name}] = o.Change == Changed
	}
	before, after := hashes{s: &a.was}, hashes{s: &a.Snapshot}
	for i := range a.Snapshot.Nodes {
		n := &a.Snapshot.Nodes[i]
		pool := poolAt(&a.Snapshot, n.NodePool)
		if n.Claim == "" || pool < 0 || poolAt(&a.was, n.NodePool) < 0 {
			continue
		}
		class := ""
		if ref := a.Snapshot.NodePools[pool].Spec.Template.Spec.NodeClassRef; ref != nil {
			class = ref.Name
		}
		if !touched[ChangedObject{Kind: cluster.NodePools.Kind, Name: n.NodePool}] && !touched[ChangedObject{Kind: cluster.NodeClasses.Kind, Name: class}] {
			continue
		}
		if err := a.updateDrift(n, &before, &after); err != nil {
			return err
		}
	}
	return nil
}

// updateDrift says of one node whether it drifts. What it would have been found to be
// without the change as well, and is not, is no matter of the change: labels may be
// known to a cluster that a scenario leaves out.
func (a *changeBuilder) updateDrift(n *planning.Node, before, after *hashes) error {
	was, err := before.reason(n, before)
	if err != nil {
		return err
	}
	is, err := after.reason(n, before)
	switch {
	case err != nil:
		return err
	case is == "":
		n.Drift = nil
	case n.Drift != nil:
		n.Drift = &planning.Drift{Reason: is, Since: n.Drift.Since}
	case is != was:
		n.Drift = &planning.Drift{Reason: is, Since: a.was.TakenAt}
		a.Drifted[n.Name] = is
	}
	return nil
}

// hashes are the pools and classes of a snapshot, with what their claims are compared
// by.
type hashes struct {
	s       *planning.Snapshot
	pools   map[string]string
	classes map[string]string
}

func (h *hashes) pool(name string) (*karpenter.NodePool, string, error) {
	p := &h.s.NodePools[poolAt(h.s, name)]
	if hash, known := h.pools[name]; known {
		return p, hash, nil
	}
	hash, err := p.Hash()
	if err != nil {
		return p, "", fmt.Errorf("comparing NodePool %s: %w", name, err)
	}
	if h.pools == nil {
		h.pools = map[string]string{}
	}
	h.pools[name] = hash
	return p, hash, nil
}

func (h *hashes) class(pool *karpenter.NodePool) (*karpenter.EC2NodeClass, string, error) {
	ref := pool.Spec.Template.Spec.NodeClassRef
	if ref == nil || classAt(h.s, ref.Name) < 0 {
		return nil, "", nil
	}
	c := &h.s.NodeClasses[classAt(h.s, ref.Name)]
	if hash, known := h.classes[ref.Name]; known {
		return c, hash, nil
	}
	// The certificate authority is the same before and after, and not known here.
	hash, err := c.Hash("")
	if err != nil {
		return c, "", fmt.Errorf("comparing EC2NodeClass %s: %w", ref.Name, err)
	}
	if h.classes == nil {
		h.classes = map[string]string{}
	}
	h.classes[ref.Name] = hash
	return c, hash, nil
}

// reason is why a node drifts in this snapshot that was made in another: it has the
// hashes of the objects there, unless it was found to have others.
func (h *hashes) reason(n *planning.Node, made *hashes) (string, error) {
	pool, poolHash, err := h.pool(n.NodePool)
	if err != nil {
		return "", err
	}
	class, classHash, err := h.class(pool)
	if err != nil {
		return "", err
	}
	madePool, claimPool, err := made.pool(n.NodePool)
	if err != nil {
		return "", err
	}
	_, claimClass, err := made.class(madePool)
	if err != nil {
		return "", err
	}
	claim := claimOf(n, claimPool, claimClass)
	view := drift.View{Claim: claim, Pool: annotatePool(pool, poolHash), Reservations: h.s.Settings.Gates.ReservedCapacity, Now: h.s.TakenAt}
	if class != nil {
		view.Class = annotateClass(class, classHash)
	}
	return drift.Reason(view), nil
}

// olderHash is the hash of what nobody has any more.
const olderHash = "earlier"

// claimOf is the claim of a node as far as drift looks at it.
func claimOf(n *planning.Node, pool, class string) *karpenter.NodeClaim {
	c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: n.Claim, Labels: n.Labels, CreationTimestamp: metav1.NewTime(n.Created), Annotations: map[string]string{},
	}}
	c.Status.ImageID = n.Image
	if n.Launched {
		c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeLaunched, Status: metav1.ConditionTrue, Reason: "Launched"}, n.Created)
	}
	if n.Drift != nil {
		c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeDrifted, Status: metav1.ConditionTrue, Reason: n.Drift.Reason}, n.Drift.Since)
		switch n.Drift.Reason {
		case drift.NodePoolDrifted:
			pool = olderHash
		case drift.NodeClassDrift:
			class = olderHash
		}
	}
	annotateHash(c, karpenter.NodePoolHashAnnotationKey, karpenter.NodePoolHashVersionAnnotationKey, pool)
	annotateHash(c, karpenter.EC2NodeClassHashAnnotationKey, karpenter.EC2NodeClassHashVersionAnnotationKey, class)
	return c
}

func annotatePool(p *karpenter.NodePool, hash string) *karpenter.NodePool {
	out := *p
	out.Annotations = map[string]string{}
	annotateHash(&out, karpenter.NodePoolHashAnnotationKey, karpenter.NodePoolHashVersionAnnotationKey, hash)
	return &out
}

func annotateClass(c *karpenter.EC2NodeClass, hash string) *karpenter.EC2NodeClass {
	out := *c
	out.Annotations = map[string]string{}
	annotateHash(&out, karpenter.EC2NodeClassHashAnnotationKey, karpenter.EC2NodeClassHashVersionAnnotationKey, hash)
	return &out
}

// annotateHash writes a hash, of the one version that there is here.
func annotateHash(o metav1.Object, hash, version, value string) {
	annotations := o.GetAnnotations()
	annotations[hash], annotations[version] = value, "compared"
}
