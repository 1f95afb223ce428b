package simulate

import (
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/manifest"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Change is a set of NodePools and EC2NodeClasses to create, change or delete. Apply changes a copy
// of a snapshot. The services' own functions then decide: lifecycle's drift check and disruption.
type Change struct {
	Pools   []*karpenter.NodePool
	Classes []*karpenter.EC2NodeClass
	// Deleted are the names of NodePools to delete.
	Deleted []string
}

const changingPools = "changing NodePools and node classes"

// ReadChange reads a change from manifests. It deletes NodePools with a deletionTimestamp, and
// the named ones.
func ReadChange(documents []manifest.Document, gone []string) (Change, error) {
	out := Change{Deleted: slices.Clone(gone)}
	for _, d := range documents {
		switch o := d.Object.(type) {
		case *karpenter.NodePool:
			if o.DeletionTimestamp != nil {
				out.Deleted = append(out.Deleted, o.Name)
				continue
			}
			if slices.ContainsFunc(out.Pools, func(p *karpenter.NodePool) bool { return p.Name == o.Name }) {
				return out, duplicateObject(d, o.Name)
			}
			out.Pools = append(out.Pools, o)
		case *karpenter.EC2NodeClass:
			if o.DeletionTimestamp != nil {
				return out, fault.F(changingPools, fault.Invalid, "%s: EC2NodeClass %s has a deletion timestamp; its deletion waits for its nodes", d.Place, o.Name).
					WithHint("delete or change the NodePools that name it")
			}
			if slices.ContainsFunc(out.Classes, func(c *karpenter.EC2NodeClass) bool { return c.Name == o.Name }) {
				return out, duplicateObject(d, o.Name)
			}
			out.Classes = append(out.Classes, o)
		default:
			return out, fault.F(changingPools, fault.Invalid, "%s: %s is neither a NodePool nor an EC2NodeClass", d.Place, d.Kind.Kind).
				WithHint("remove it from the file; pods come from the snapshot or the scenario")
		}
	}
	for _, name := range out.Deleted {
		if slices.ContainsFunc(out.Pools, func(p *karpenter.NodePool) bool { return p.Name == name }) {
			return out, fault.F(changingPools, fault.Invalid, "NodePool %s is both changed and deleted", name).WithHint("give it in --pool-change or --pool-delete")
		}
	}
	if len(out.Pools)+len(out.Classes)+len(out.Deleted) == 0 {
		return out, fault.F(changingPools, fault.Invalid, "the files have no NodePool and no EC2NodeClass").WithHint("give a file with changed NodePools or EC2NodeClasses")
	}
	return out, nil
}

func duplicateObject(d manifest.Document, name string) error {
	return fault.F(changingPools, fault.Invalid, "%s: duplicate %s %s", d.Place, d.Kind.Kind, name).WithHint("remove one of them")
}

// The changes of an object.
const (
	Created   = "created"
	Changed   = "changed"
	Unchanged = "unchanged"
	Deleted   = "deleted"
)

// ChangedObject is a NodePool or an EC2NodeClass with its change.
type ChangedObject struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Change string `json:"change"`
}

// AppliedChange is a changed snapshot.
type AppliedChange struct {
	Snapshot planning.Snapshot
	Objects  []ChangedObject
	// Drifted are the reasons of nodes that begin to drift, by name.
	Drifted map[string]string
	// Assumptions are the assumed values.
	Assumptions []string
}

// Apply applies the change to a copy of the snapshot.
func (c Change) Apply(s planning.Snapshot) (AppliedChange, error) {
	a := changeBuilder{AppliedChange: AppliedChange{Snapshot: s, Drifted: map[string]string{}}, before: s}
	a.Snapshot.NodePools, a.Snapshot.NodeClasses, a.Snapshot.Nodes = slices.Clone(s.NodePools), slices.Clone(s.NodeClasses), slices.Clone(s.Nodes)
	for _, class := range c.Classes {
		if err := a.applyClass(class); err != nil {
			return a.AppliedChange, err
		}
	}
	for _, pool := range c.Pools {
		if err := a.applyPool(pool); err != nil {
			return a.AppliedChange, err
		}
	}
	for _, name := range c.Deleted {
		if err := a.deletePool(name); err != nil {
			return a.AppliedChange, err
		}
	}
	return a.AppliedChange, a.updateDrifts()
}

// changeBuilder is the state of Apply.
type changeBuilder struct {
	AppliedChange
	before planning.Snapshot
}

func (a *changeBuilder) assume(format string, args ...any) {
	a.Assumptions = append(a.Assumptions, fmt.Sprintf(format, args...))
}

func (a *changeBuilder) recordChange(kind cluster.Kind, name, change string) {
	a.Objects = append(a.Objects, ChangedObject{kind.Kind, name, change})
}

func poolIndex(s *planning.Snapshot, name string) int {
	return slices.IndexFunc(s.NodePools, func(p karpenter.NodePool) bool { return p.Name == name })
}

func classIndex(s *planning.Snapshot, name string) int {
	return slices.IndexFunc(s.NodeClasses, func(c karpenter.EC2NodeClass) bool { return c.Name == name })
}

// deletePool deletes a NodePool. Its nodes are removed at once: no budget applies to a
// deletion.
func (a *changeBuilder) deletePool(name string) error {
	at := poolIndex(&a.Snapshot, name)
	if at < 0 {
		return fault.F(changingPools, fault.Missing, "NodePool %s to delete not found", name).WithHint("give the name of an existing NodePool")
	}
	a.Snapshot.NodePools = slices.Delete(a.Snapshot.NodePools, at, at+1)
	a.recordChange(cluster.NodePools, name, Deleted)
	a.assume("the nodes of NodePool %s are removed at once without budgets; if deletion approval is on, they wait for approval first", name)
	return nil
}
