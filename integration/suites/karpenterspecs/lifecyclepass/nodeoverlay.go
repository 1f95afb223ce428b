package lifecyclepass

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/joist-autoscaler/joist/integration/suites/karpenterspecs/planner"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// OverlaidTypes are the instance types of each NodePool after the NodeOverlays are applied.
type OverlaidTypes struct{ types instancetypes.InstanceTypes }

// EvaluateOverlays applies the NodeOverlays to the instance types of each NodePool, which are given by its name, as planning
// does. Lifecycle writes the result of the plan on each NodeOverlay.
func EvaluateOverlays(ctx context.Context, types map[string][]*cloudprovider.InstanceType) (OverlaidTypes, error) {
	running.Lock()
	defer running.Unlock()
	s, err := currentSystem()
	if err != nil {
		return OverlaidTypes{}, err
	}
	s.client.controller = "nodeoverlay"
	if err := errors.Join(s.reconcileNothing(ctx), s.refresh(ctx)); err != nil {
		return OverlaidTypes{}, err
	}
	overlays, err := s.list(ctx, cluster.NodeOverlays)
	if err != nil {
		return OverlaidTypes{}, err
	}
	pools, err := s.list(ctx, cluster.NodePools)
	if err != nil {
		return OverlaidTypes{}, err
	}
	overlaid, statuses := applyOverlays(types, cluster.CastAll[*karpenter.NodeOverlay](overlays), cluster.CastAll[*karpenter.NodePool](pools))
	held, err := s.sendBatch(ctx)
	if err != nil {
		return OverlaidTypes{}, err
	}
	if err := s.answerBatch(ctx, held, planning.Plan{OverlayStatuses: statuses}); err != nil {
		return OverlaidTypes{}, err
	}
	return OverlaidTypes{overlaid}, s.client.awaitSpecCache(ctx, current.client)
}

// applyOverlays returns the types of each NodePool with the overlays, and the status of each overlay. Every NodePool has a
// node class of its own, because the specs' cloud provider has types for NodePools.
func applyOverlays(types map[string][]*cloudprovider.InstanceType, objects []*karpenter.NodeOverlay, live []*karpenter.NodePool) (instancetypes.InstanceTypes, []planning.OverlayStatus) {
	var overlays []karpenter.NodeOverlay
	var pools []karpenter.NodePool
	for _, o := range objects {
		overlays = append(overlays, *o)
	}
	for _, p := range live {
		pool := *p.DeepCopy()
		pool.Spec.Template.Spec.NodeClassRef.Name = pool.Name
		pools = append(pools, pool)
	}
	overlaid, problems := planner.ConvertTypes(types).ApplyOverlays(overlays, pools)
	var statuses []planning.OverlayStatus
	for i := range overlays {
		status := planning.OverlayStatus{Name: overlays[i].Name, Generation: overlays[i].Generation}
		if at := slices.IndexFunc(problems, func(p instancetypes.OverlayProblem) bool { return p.Overlay == status.Name }); at >= 0 {
			status.Reason, status.Message = problems[at].Reason, problems[at].Message
		}
		statuses = append(statuses, status)
	}
	return overlaid, statuses
}

// Apply returns instance types of a NodePool with the prices and resources that overlays change.
func (o OverlaidTypes) Apply(nodePool string, before []*cloudprovider.InstanceType) []*cloudprovider.InstanceType {
	var out []*cloudprovider.InstanceType
	after := o.types.TypesForPool(nodePool, nodePool)
	for _, t := range before {
		changed := &cloudprovider.InstanceType{
			Name: t.Name, Requirements: t.Requirements, Overhead: t.Overhead, VolumeAttachmentLimits: t.VolumeAttachmentLimits,
			DynamicResources: t.DynamicResources, Capacity: t.Capacity, Offerings: slices.Clone(t.Offerings),
		}
		for i := range after {
			if after[i].Name == t.Name {
				applyType(&after[i], changed)
			}
		}
		out = append(out, changed)
	}
	return out
}

// applyType sets the resources of an instance type, and the prices of the offerings with such a price.
func applyType(from *instancetypes.Type, into *cloudprovider.InstanceType) {
	extra := maps.Clone(from.Capacity)
	maps.DeleteFunc(extra, func(name corev1.ResourceName, q resource.Quantity) bool {
		before, has := into.Capacity[name]
		return has && before.Cmp(q) == 0
	})
	if len(extra) > 0 {
		into.ApplyCapacityOverlay(extra)
	}
	for _, o := range from.Offerings {
		for i, old := range into.Offerings {
			if o.PricedByOverlay && old.Zone() == o.Zone && old.CapacityType() == o.CapacityType && (o.Reservation == "" || old.ReservationID() == o.Reservation) {
				priced := *old
				priced.ApplyPriceOverlay(strconv.FormatFloat(o.PricePerHour, 'f', -1, 64))
				into.Offerings[i] = &priced
			}
		}
	}
}
