package launching

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"

	catalogservice "github.com/joist-autoscaler/joist/services/catalog"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/drift"
)

// ClaimDrift is a NodeClaim that may have drifted from its node class.
type ClaimDrift struct {
	NodeClass *awsv1.EC2NodeClass
	NodeClaim *karpv1.NodeClaim
	// Type is the instance type of the NodeClaim; nil if it is unknown.
	Type         *cloudprovider.InstanceType
	Reservations bool
}

// reasonsOfClass are the reasons of drift that depend on the node class.
var reasonsOfClass = []string{drift.AMIDrift, drift.SecurityGroupDrift, drift.SubnetDrift, drift.CapacityReservationDrift, drift.PlacementGroupDrift}

// FindDrift returns why the NodeClaim has drifted from its node class, or "". The instance is the one in an inventory that
// the catalog service makes of the fake. If Joist cannot evaluate a check, it keeps the condition Drifted; Karpenter
// returns an error, and so does FindDrift.
func (s *FakeLauncher) FindDrift(ctx context.Context, q ClaimDrift) (string, error) {
	class, claim := &karpenter.EC2NodeClass{}, &karpenter.NodeClaim{}
	if err := convertObject(q.NodeClass, class); err != nil {
		return "", err
	}
	if err := convertObject(q.NodeClaim, claim); err != nil {
		return "", err
	}
	id, err := claim.Instance()
	if err != nil {
		return "", fmt.Errorf("reading the instance of the NodeClaim: %w", err)
	}
	view := drift.View{Claim: claim, Pool: &karpenter.NodePool{}, Class: class, Reservations: q.Reservations, Now: time.Now()}
	if view.Instance, err = s.listInstance(ctx, id.InstanceID); err != nil {
		return "", err
	}
	claim.Labels = labelsOf(q.Type, view.Instance, claim.Labels)
	launched := claim.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeLaunched, Status: metav1.ConditionTrue, Reason: "Launched"}, view.Now)
	claim.Status.Conditions = launched
	if reason := drift.Reason(view); reason != "" {
		return reason, nil
	}
	for _, reason := range reasonsOfClass {
		claim.Status.Conditions = launched.With(metav1.Condition{Type: karpenter.ConditionTypeDrifted, Status: metav1.ConditionTrue, Reason: reason}, view.Now)
		if drift.Reason(view) != "" {
			return "", fmt.Errorf("drift of NodeClaim %s by %s cannot be evaluated: its condition Drifted stays", claim.Name, reason)
		}
	}
	return "", nil
}

// labelsOf returns the labels of a NodeClaim with the labels that a launch sets.
func labelsOf(t *cloudprovider.InstanceType, listed *event.Listed, own map[string]string) map[string]string {
	out := map[string]string{}
	if t != nil {
		for key, r := range t.Requirements {
			if values := r.Values(); r.Operator() == corev1.NodeSelectorOpIn && len(values) == 1 {
				out[key] = values[0]
			}
		}
	}
	if listed != nil {
		out[karpenter.CapacityTypeLabelKey] = listed.CapacityType
	}
	maps.Copy(out, own)
	return out
}

// listInstance returns the instance as the catalog service lists it; nil if it does not exist.
func (s *FakeLauncher) listInstance(ctx context.Context, id string) (*event.Listed, error) {
	inventory, err := makeInventory(ctx, oneInstance{s.cloud, id}, event.Cluster{Name: "specs", UID: "specs"}, time.Now())
	if err != nil || len(inventory.Instances) == 0 {
		return nil, err
	}
	return &inventory.Instances[0], nil
}

// makeInventory makes an inventory with the catalog service.
func makeInventory(ctx context.Context, instances cloud.Instances, identity event.Cluster, at time.Time) (event.Inventory, error) {
	now := func() time.Time { return at }
	blobs, bus := memblob.New(memblob.Options{Now: now}), &recordingBus{}
	service := catalogservice.Service{
		Instances: instances, Blobs: blobs, Bus: bus, Cluster: identity, Region: Region, Now: now,
		StaticCatalogue: func(context.Context, string) (catalog.Catalogue, error) {
			return catalog.Catalogue{Region: Region}, nil
		},
	}
	tick, err := event.Maker{Service: "specs", Cluster: identity}.New(at, event.Tick{Want: event.WantInventory}, nil)
	if err != nil {
		return event.Inventory{}, fmt.Errorf("writing the request of an inventory: %w", err)
	}
	if err := service.Handle(ctx, tick); err != nil {
		return event.Inventory{}, err
	}
	body, err := event.DecodeBody[event.InstancesListed](bus.published[0])
	if err != nil {
		return event.Inventory{}, err
	}
	return blob.Get[event.Inventory](ctx, blobs, body.Inventory)
}

// oneInstance describes an instance with any tags, because the specs' instances have none.
type oneInstance struct {
	cloud.Instances
	id string
}

// DescribeInstances describes the instance.
func (o oneInstance) DescribeInstances(ctx context.Context, _ cloud.InstanceFilter) ([]cloud.Instance, error) {
	return o.Instances.DescribeInstances(ctx, cloud.InstanceFilter{IDs: []string{o.id}})
}
