package lifecyclepass

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// inventoryInterval is at least the time that lifecycle requires between two inventories that lack an instance, and
// between a launch and the first of them.
const inventoryInterval = 6 * time.Minute

// CollectGarbage runs a pass in place of Karpenter's garbage collection. Joist believes only the second of two inventories
// that an instance is missing, so it gets two of the same content, the first an interval after the present of the specs.
func CollectGarbage(ctx context.Context) error {
	s, err := currentSystem()
	if err != nil {
		return err
	}
	const controller = "nodeclaim/garbagecollection"
	return errors.Join(s.pass(ctx, controller), s.sendInventories(ctx), s.pass(ctx, controller))
}

// sendInventories sends two inventories.
func (s *system) sendInventories(ctx context.Context) error {
	defer func() { s.ahead = 0 }()
	var failures []error
	for range 2 {
		s.ahead += inventoryInterval
		if err := s.sendInventory(ctx); !fault.Is(err, fault.Denied) { // Joist removes nothing and counts a refusal.
			failures = append(failures, err)
		}
	}
	if current.account != nil { // The queue does not deliver these commands before their time.
		failures = append(failures, s.answerCommands(ctx))
	}
	return errors.Join(failures...)
}

// sendInventory sends the instances as an inventory.
func (s *system) sendInventory(ctx context.Context) error {
	inventory, err := listInventory(ctx)
	if err != nil {
		return err
	}
	ref, err := blob.Put(ctx, s.blobs, now(), event.InventoryKind, inventory)
	if err != nil {
		return err
	}
	return s.handle(ctx, event.InstancesListed{Started: inventory.Started, Inventory: ref, Count: len(inventory.Instances)})
}

// listInventory returns the account's or the cloud provider's instances.
func listInventory(ctx context.Context) (event.Inventory, error) {
	inventory := event.Inventory{Started: now()}
	if current.account != nil {
		return current.account.ListInstances(ctx, clusterIdentity, inventory.Started)
	}
	instances, err := current.cloud.List(ctx)
	if err != nil {
		return inventory, err
	}
	for _, i := range instances {
		id, err := karpenter.ParseProviderID(i.Status.ProviderID)
		if err != nil {
			return inventory, err
		}
		inventory.Instances = append(inventory.Instances, event.Listed{
			InstanceID: id.InstanceID, State: string(cloud.Running), Claim: i.Name, NodePool: i.Labels[karpenter.NodePoolLabelKey], Launched: now().Add(-time.Hour),
			Offering: event.Offering{InstanceType: i.Labels[corev1.LabelInstanceTypeStable], Zone: i.Labels[corev1.LabelTopologyZone], CapacityType: i.Labels[karpenter.CapacityTypeLabelKey]},
		})
	}
	return inventory, nil
}
