package lifecycle

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/drift"
)

// driftInterval is how often a claim is checked for drift if none of its inputs has changed.
const driftInterval = 5 * time.Minute

// driftState is the state of drift detection: the last inventory, and the inputs with which each
// claim was last evaluated. Without an inventory, instance drift is neither detected nor cleared.
type driftState struct {
	inventory atomic.Pointer[runningInstances]
	evaluated map[types.UID]driftInputs
}

// runningInstances are the instances of an inventory that neither terminate nor are terminated, by
// id. It is not changed after its creation.
type runningInstances struct {
	started   time.Time
	instances map[string]*event.Listed
}

// driftInputs are the inputs of one evaluation. Objects of the cache are compared by pointer. A
// NodePool's status changes with each of its nodes, so only its relevant fields are compared.
type driftInputs struct {
	claim            *karpenter.NodeClaim
	pool             types.UID
	generation       int64
	hash             string
	class            *karpenter.EC2NodeClass
	inventoryStarted time.Time
	checkedAt        time.Time
}

// setInventory stores the inventory, unless a newer one is stored.
func (d *driftState) setInventory(inventory event.Inventory) {
	if inventory.Started.Before(d.lastInventory().started) {
		return
	}
	running := &runningInstances{started: inventory.Started, instances: make(map[string]*event.Listed, len(inventory.Instances))}
	for i := range inventory.Instances {
		one := &inventory.Instances[i]
		// EC2 detaches the network interfaces of a terminating instance.
		if state := cloud.State(one.State); !state.Gone() && state != cloud.ShuttingDown {
			running.instances[one.InstanceID] = one
		}
	}
	d.inventory.Store(running)
}

// lastInventory returns the last inventory; before the first it is empty, and its start time is zero. It is safe
// for concurrent use.
func (d *driftState) lastInventory() runningInstances {
	if running := d.inventory.Load(); running != nil {
		return *running
	}
	return runningInstances{}
}

// clear drops the inventory and the evaluations.
func (d *driftState) clear() {
	d.inventory.Store(nil)
	d.evaluated = nil
}

// reconcileDrift updates the condition Drifted of each claim. An error on one does not stop the
// others.
func (s *Service) reconcileDrift(ctx context.Context, w clusterState) error {
	settled := make(map[types.UID]driftInputs, len(w.claims))
	var jobs []effect.Job
	for _, c := range w.claims {
		v, ok := s.driftView(c, w)
		if !ok {
			continue
		}
		sight := s.driftInputsOf(v)
		if before := s.drift.evaluated[c.UID]; sight.isUnchanged(before) {
			settled[c.UID] = before
			continue
		}
		drifted := conditions.WithDrifted(c, drift.Reason(v), v.Now)
		if drifted.Equal(c.Status.Conditions) {
			settled[c.UID] = sight
			continue
		}
		next := c.DeepCopy()
		next.Status.Conditions = drifted
		jobs = append(jobs, effect.Job{Name: "drift of NodeClaim " + c.Name, Effects: []effect.Effect{effect.UpdateStatus{Object: next}}})
	}
	s.drift.evaluated = settled
	return errors.Join(s.executor.ExecuteJobs(ctx, jobs)...)
}

// driftView collects the inputs for a claim's drift; false if the claim is being deleted, or its
// pool does not exist or is not Joist's.
func (s *Service) driftView(c *karpenter.NodeClaim, w clusterState) (drift.View, bool) {
	np := w.pools[c.Labels[karpenter.NodePoolLabelKey]]
	if c.DeletionTimestamp != nil || np == nil {
		return drift.View{}, false
	}
	v := drift.View{Claim: c, Pool: np, Reservations: s.ReservedCapacity, Now: s.Now()}
	if ref := np.Spec.Template.Spec.NodeClassRef; ref != nil {
		v.Class = w.classes[ref.Name]
	}
	if id, err := c.Instance(); err == nil {
		v.Instance = s.drift.lastInventory().instances[id.InstanceID]
	}
	return v, true
}

func (s *Service) driftInputsOf(v drift.View) driftInputs {
	return driftInputs{
		claim: v.Claim, pool: v.Pool.UID, generation: v.Pool.Generation,
		hash:  v.Pool.Annotations[karpenter.NodePoolHashVersionAnnotationKey] + " " + v.Pool.Annotations[karpenter.NodePoolHashAnnotationKey],
		class: v.Class, inventoryStarted: s.drift.lastInventory().started, checkedAt: v.Now,
	}
}

// isUnchanged reports whether the inputs equal those of the last evaluation and driftInterval has
// not passed since.
func (d driftInputs) isUnchanged(before driftInputs) bool {
	lately := d.checkedAt.Sub(before.checkedAt) < driftInterval
	before.checkedAt = d.checkedAt
	return lately && d == before
}
