package catalog

import (
	"context"
	"fmt"

	"github.com/joist-autoscaler/joist/services/catalog/internal/listing"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// list says which instances exist that were launched for NodePools of the
// cluster, in every state: a terminated one is the proof that a claim may go.
func (s Service) list(ctx context.Context, e event.Envelope) error {
	// Before the call: whatever the list lacks was launched after this moment.
	started := s.Now().UTC()
	// Both tags: EKS puts the first on the instances of managed node groups too,
	// and what is listed without a claim is ended.
	owned := map[string]string{karpenter.ClusterTagPrefix + s.Cluster.Name: "owned", karpenter.NodePoolTagKey: ""}
	instances, err := s.Instances.DescribeInstances(ctx, cloud.InstanceFilter{Tags: owned})
	if err != nil {
		return fmt.Errorf("listing the instances of cluster %s: %w", s.Cluster.Name, err)
	}
	ref, err := blob.Put(ctx, s.Blobs, s.Now(), event.InventoryKind, listing.Of(started, instances))
	if err != nil {
		return fmt.Errorf("storing the inventory: %w", err)
	}
	host.Say(ctx, "instances", len(instances))
	fact := event.InstancesListed{Started: started, Inventory: ref, Count: len(instances), Shifts: s.shiftsInForce(ctx)}
	return s.publish(ctx, e, fact)
}
