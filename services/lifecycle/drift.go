package lifecycle

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodepool"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/drift"
)

// driftEvery is how often a claim is looked at for drift though nothing of what
// decides has changed.
const driftEvery = 5 * time.Minute

// drifting is what is remembered for drift: what the last inventory told of each
// instance, and from what each claim was found to be as its conditions say. Who
// loses it sees no drift of an instance until the next inventory, and takes none
// back.
type drifting struct {
	taken     time.Time
	instances map[string]*event.Listed
	settled   map[types.UID]driftSight
}

// driftSight is what a claim was looked at with. What belongs to the cache is
// another object when it has changed; of a pool, whose status changes with each of
// its nodes, it is what decides.
type driftSight struct {
	claim      *karpenter.NodeClaim
	pool       types.UID
	generation int64
	hash       string
	class      *karpenter.EC2NodeClass
	taken      time.Time
	looked     time.Time
}

// told remembers an inventory, unless a newer one is known.
func (d *drifting) told(inventory event.Inventory) {
	if inventory.Started.Before(d.taken) {
		return
	}
	d.taken, d.instances = inventory.Started, make(map[string]*event.Listed, len(inventory.Instances))
	for i := range inventory.Instances {
		one := &inventory.Instances[i]
		// EC2 takes the network off an instance that ends.
		if state := cloud.State(one.State); !state.Gone() && state != cloud.ShuttingDown {
			d.instances[one.InstanceID] = one
		}
	}
}

// drifts keeps the condition Drifted of each claim. One that cannot be
// written holds up no other.
func (s *Service) drifts(ctx context.Context, w world) error {
	settled := make(map[types.UID]driftSight, len(w.claims))
	var jobs []effect.Job
	for _, c := range w.claims {
		v, ok := s.drifting(c, w)
		if !ok {
			continue
		}
		sight := s.sightOf(v)
		if before := s.drift.settled[c.UID]; sight.same(before) {
			settled[c.UID] = before
			continue
		}
		drifted := conditions.WithDrifted(c, drift.Reason(v), v.Now)
		if conditions.Equal(drifted, c.Status.Conditions) {
			settled[c.UID] = sight
			continue
		}
		next := c.DeepCopy()
		next.Status.Conditions = drifted
		jobs = append(jobs, effect.Job{Name: "drift of NodeClaim " + c.Name, Effects: []effect.Effect{effect.UpdateStatus{Object: next}}})
	}
	s.drift.settled = settled
	return errors.Join(s.do.All(ctx, jobs)...)
}

// drifting gathers what decides about a claim's drift; false where nobody is to
// decide: it goes, or its pool is gone or somebody else's.
func (s *Service) drifting(c *karpenter.NodeClaim, w world) (drift.View, bool) {
	np := w.pools[c.Labels[karpenter.NodePoolLabelKey]]
	if c.DeletionTimestamp != nil || np == nil || nodepool.ForeignClass(np) {
		return drift.View{}, false
	}
	v := drift.View{Claim: c, Pool: np, Reservations: s.ReservedCapacity, Now: s.Now()}
	if ref := np.Spec.Template.Spec.NodeClassRef; ref != nil {
		v.Class = w.classes[ref.Name]
	}
	if id, err := c.Instance(); err == nil {
		v.Instance = s.drift.instances[id.InstanceID]
	}
	return v, true
}

func (s *Service) sightOf(v drift.View) driftSight {
	return driftSight{
		claim: v.Claim, pool: v.Pool.UID, generation: v.Pool.Generation,
		hash:  v.Pool.Annotations[karpenter.NodePoolHashVersionAnnotationKey] + " " + v.Pool.Annotations[karpenter.NodePoolHashAnnotationKey],
		class: v.Class, taken: s.drift.taken, looked: v.Now,
	}
}

// same reports whether nothing of what decides has changed since, lately.
func (d driftSight) same(before driftSight) bool {
	lately := d.looked.Sub(before.looked) < driftEvery
	before.looked = d.looked
	return lately && d == before
}
