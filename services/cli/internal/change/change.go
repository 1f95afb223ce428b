// Package change says what would become of a fleet if NodePools and node classes were
// others: which nodes would drift, what disruption would do then, and in which order.
//
// The idea: the snapshot is changed, and everything is asked about it that is asked
// about a real one. Whether a node drifts is found by the function that lifecycle
// finds it with, and what becomes of it by the one that disruption decides by.
package change

import (
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/manifest"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// Change is what is to be different.
type Change struct {
	Pools   []*karpenter.NodePool
	Classes []*karpenter.EC2NodeClass
	// Gone are NodePools that are deleted.
	Gone []string
}

const asking = "changing NodePools and node classes"

// Of reads a change from manifests. A NodePool with a deletionTimestamp is deleted,
// and so are those that are named.
func Of(documents []manifest.Document, gone []string) (Change, error) {
	out := Change{Gone: slices.Clone(gone)}
	for _, d := range documents {
		switch o := d.Object.(type) {
		case *karpenter.NodePool:
			if o.DeletionTimestamp != nil {
				out.Gone = append(out.Gone, o.Name)
				continue
			}
			if slices.ContainsFunc(out.Pools, func(p *karpenter.NodePool) bool { return p.Name == o.Name }) {
				return out, twice(d, o.Name)
			}
			out.Pools = append(out.Pools, o)
		case *karpenter.EC2NodeClass:
			if o.DeletionTimestamp != nil {
				return out, fault.F(asking, fault.Invalid, "%s: EC2NodeClass %s is being deleted, which has to wait for its nodes", d.Place, o.Name).
					WithHint("delete or change the NodePools that name it")
			}
			if slices.ContainsFunc(out.Classes, func(c *karpenter.EC2NodeClass) bool { return c.Name == o.Name }) {
				return out, twice(d, o.Name)
			}
			out.Classes = append(out.Classes, o)
		default:
			return out, fault.F(asking, fault.Invalid, "%s: %s is neither a NodePool nor an EC2NodeClass", d.Place, d.Kind.Kind).
				WithHint("leave it out: pods are those of the snapshot or the scenario")
		}
	}
	for _, name := range out.Gone {
		if slices.ContainsFunc(out.Pools, func(p *karpenter.NodePool) bool { return p.Name == name }) {
			return out, fault.F(asking, fault.Invalid, "NodePool %s is changed and deleted", name).WithHint("do one of the two")
		}
	}
	if len(out.Pools)+len(out.Classes)+len(out.Gone) == 0 {
		return out, fault.F(asking, fault.Invalid, "nothing is changed").WithHint("give a file with NodePools or EC2NodeClasses as they should be")
	}
	return out, nil
}

func twice(d manifest.Document, name string) error {
	return fault.F(asking, fault.Invalid, "%s: %s %s is there twice", d.Place, d.Kind.Kind, name).WithHint("leave one of them out")
}

// What becomes of an object.
const (
	Created   = "created"
	Changed   = "changed"
	Unchanged = "unchanged"
	Deleted   = "deleted"
)

// Object is a NodePool or an EC2NodeClass, and what becomes of it.
type Object struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Change string `json:"change"`
}

// Applied is a snapshot with the change in it.
type Applied struct {
	Snapshot scheduling.Snapshot
	Objects  []Object
	// Drifted are the nodes that begin to drift, by their names, and why.
	Drifted map[string]string
	// Assumptions say what is not known and was taken instead.
	Assumptions []string
}

// Apply makes the change in a snapshot, which stays as it is.
func (c Change) Apply(s scheduling.Snapshot) (Applied, error) {
	a := applying{Applied: Applied{Snapshot: s, Drifted: map[string]string{}}, was: s}
	a.Snapshot.NodePools, a.Snapshot.NodeClasses, a.Snapshot.Nodes = slices.Clone(s.NodePools), slices.Clone(s.NodeClasses), slices.Clone(s.Nodes)
	for _, class := range c.Classes {
		if err := a.class(class); err != nil {
			return a.Applied, err
		}
	}
	for _, pool := range c.Pools {
		if err := a.pool(pool); err != nil {
			return a.Applied, err
		}
	}
	for _, name := range c.Gone {
		if err := a.delete(name); err != nil {
			return a.Applied, err
		}
	}
	return a.Applied, a.drift()
}

// applying is a change under way.
type applying struct {
	Applied
	was scheduling.Snapshot
}

func (a *applying) assume(format string, args ...any) {
	a.Assumptions = append(a.Assumptions, fmt.Sprintf(format, args...))
}

func (a *applying) noted(kind cluster.Kind, name, change string) {
	a.Objects = append(a.Objects, Object{kind.Kind, name, change})
}

func poolAt(s *scheduling.Snapshot, name string) int {
	return slices.IndexFunc(s.NodePools, func(p karpenter.NodePool) bool { return p.Name == name })
}

func classAt(s *scheduling.Snapshot, name string) int {
	return slices.IndexFunc(s.NodeClasses, func(c karpenter.EC2NodeClass) bool { return c.Name == name })
}

// delete takes a NodePool away. Its nodes go with it, at once: they are no matter of
// disruption, and no budget holds them.
func (a *applying) delete(name string) error {
	at := poolAt(&a.Snapshot, name)
	if at < 0 {
		return fault.F(asking, fault.Missing, "there is no NodePool %s to delete", name).WithHint("name one of those that there are")
	}
	a.Snapshot.NodePools = slices.Delete(a.Snapshot.NodePools, at, at+1)
	a.noted(cluster.NodePools, name, Deleted)
	a.assume("the nodes of NodePool %s go at once, whatever budgets say; where such deletions have to be allowed first, they wait for that", name)
	return nil
}
