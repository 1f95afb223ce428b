package watcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// sendRequests requests from the catalog service the resolution of each node class and an inventory
// of the instances. A failure for one class does not affect the others.
func (s *Service) sendRequests(ctx context.Context) error {
	var failures []error
	for _, class := range cluster.ListCached[*karpenter.EC2NodeClass](s.Cache, cluster.NodeClasses) {
		failures = append(failures, s.requestNodeClass(ctx, class))
	}
	// Request an inventory even if there are no claims: only an inventory reveals orphan instances.
	failures = append(failures, s.sendEvery("inventory", inventoryInterval, func() error {
		if err := s.sendMessage(ctx, s.Catalog, event.InventoryWanted{Asked: s.Now().UTC()}); err != nil {
			return fmt.Errorf("requesting an inventory: %w", err)
		}
		return nil
	}))
	return errors.Join(failures...)
}

// requestNodeClass requests the resolution of a class's selectors from the catalog service if due.
func (s *Service) requestNodeClass(ctx context.Context, class *karpenter.EC2NodeClass) error {
	every := nodeClassInterval
	subnets, _ := class.Status.Conditions.Get(karpenter.ConditionTypeSubnetsReady)
	if !class.Status.Conditions.IsTrue(karpenter.ConditionTypeReady) || subnets.ObservedGeneration != class.Generation {
		every = unreadyNodeClassInterval
	}
	if class.DeletionTimestamp != nil {
		return nil
	}
	// Lifecycle checks the annotation with each result, and a change of it has no generation.
	shared := class.Annotations[karpenter.NVIDIAConsumableCapacityAnnotationKey]
	return s.sendEvery(fmt.Sprintf("resolve/%s/%d%s", class.UID, class.Generation, shared), every, func() error {
		spec, err := json.Marshal(class.Spec)
		if err != nil {
			return fault.E("encoding EC2NodeClass "+class.Name, fault.Bug, err)
		}
		body := event.NodeClassChanged{
			Name: class.Name, UID: string(class.UID), Generation: class.Generation, Spec: spec,
			Expressions: s.Settings.Gates.NodeClassCEL, ReservedENIs: s.Settings.ReservedENIs, Asked: s.Now().UTC(),
		}
		if err := s.sendMessage(ctx, s.Catalog, body); err != nil {
			return fmt.Errorf("requesting EC2NodeClass %s: %w", class.Name, err)
		}
		return nil
	})
}
