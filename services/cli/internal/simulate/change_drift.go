package simulate

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/drift"
)

// updateDrifts checks the nodes of each changed pool or class for drift. If the snapshot lacks the
// facts, the earlier result is kept.
func (a *changeBuilder) updateDrifts() error {
	touched := map[ChangedObject]bool{}
	for _, o := range a.Objects {
		touched[ChangedObject{Kind: o.Kind, Name: o.Name}] = o.Change == Changed
	}
	before, after := snapshotHashes{s: &a.before}, snapshotHashes{s: &a.Snapshot}
	for i := range a.Snapshot.Nodes {
		n := &a.Snapshot.Nodes[i]
		pool := poolIndex(&a.Snapshot, n.NodePool)
		if n.Claim == "" || pool < 0 || poolIndex(&a.before, n.NodePool) < 0 {
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

// updateDrift checks one node for drift. It ignores differences that also exist without the change:
// a scenario may lack labels that the cluster has.
func (a *changeBuilder) updateDrift(n *planning.Node, before, after *snapshotHashes) error {
	was, err := before.driftReason(n, before)
	if err != nil {
		return err
	}
	is, err := after.driftReason(n, before)
	switch {
	case err != nil:
		return err
	case is == "":
		n.Drift = nil
	case n.Drift != nil:
		n.Drift = &planning.Drift{Reason: is, Since: n.Drift.Since}
	case is != was:
		n.Drift = &planning.Drift{Reason: is, Since: a.before.TakenAt}
		a.Drifted[n.Name] = is
	}
	return nil
}

// snapshotHashes computes the hashes of a snapshot's pools and classes, which are compared with the
// hashes of claims.
type snapshotHashes struct {
	s       *planning.Snapshot
	pools   map[string]string
	classes map[string]string
}

func (h *snapshotHashes) poolHash(name string) (*karpenter.NodePool, string, error) {
	p := &h.s.NodePools[poolIndex(h.s, name)]
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

func (h *snapshotHashes) classHash(pool *karpenter.NodePool) (*karpenter.EC2NodeClass, string, error) {
	ref := pool.Spec.Template.Spec.NodeClassRef
	if ref == nil || classIndex(h.s, ref.Name) < 0 {
		return nil, "", nil
	}
	c := &h.s.NodeClasses[classIndex(h.s, ref.Name)]
	if hash, known := h.classes[ref.Name]; known {
		return c, hash, nil
	}
	// The certificate authority is unknown here, and the same before and after.
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

// driftReason returns why a node that was created from the objects of another snapshot drifts in
// this one. The node has the hashes of the other snapshot's objects, unless the snapshot recorded
// drift.
func (h *snapshotHashes) driftReason(n *planning.Node, made *snapshotHashes) (string, error) {
	pool, poolHash, err := h.poolHash(n.NodePool)
	if err != nil {
		return "", err
	}
	class, classHash, err := h.classHash(pool)
	if err != nil {
		return "", err
	}
	madePool, claimPool, err := made.poolHash(n.NodePool)
	if err != nil {
		return "", err
	}
	_, claimClass, err := made.classHash(madePool)
	if err != nil {
		return "", err
	}
	claim := newClaim(n, claimPool, claimClass)
	view := drift.View{Claim: claim, Pool: annotatePool(pool, poolHash), Reservations: h.s.Settings.Gates.ReservedCapacity, Now: h.s.TakenAt}
	if class != nil {
		view.Class = annotateClass(class, classHash)
	}
	return drift.Reason(view), nil
}

// olderHash is a hash that no current object has.
const olderHash = "earlier"

// newClaim returns the fields of a node's claim that the drift check reads.
func newClaim(n *planning.Node, pool, class string) *karpenter.NodeClaim {
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

// annotateHash sets a hash and its version.
func annotateHash(o metav1.Object, hash, version, value string) {
	annotations := o.GetAnnotations()
	annotations[hash], annotations[version] = value, "compared"
}
