package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/joist-autoscaler/joist/services/catalog/internal/listing"
	"github.com/joist-autoscaler/joist/services/catalog/internal/market"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
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
	ref, err := blob.Put(ctx, s.Blobs, s.Now(), event.InventoryKind, listing.Of(started, instances, s.withdrawn(ctx, instances)))
	if err != nil {
		return fmt.Errorf("storing the inventory: %w", err)
	}
	host.Say(ctx, "instances", len(instances))
	fact := event.InstancesListed{Started: started, Inventory: ref, Count: len(instances), Shifts: s.shiftsInForce(ctx)}
	return s.publish(ctx, e, fact)
}

// withdrawn are the types of instances that are not in the catalogue (B162). An
// inventory is worth more than this, and goes without it.
func (s Service) withdrawn(ctx context.Context, instances []cloud.Instance) []string {
	types := map[string]bool{}
	for i := range instances {
		types[instances[i].Type] = true
	}
	missing, err := s.Sold.Missing(ctx, slices.Sorted(maps.Keys(types)), s.sold)
	if err != nil {
		host.Say(ctx, "warnings", []string{market.Short("whether types are sold is not told with the inventory: " + err.Error())})
		return nil
	}
	return missing
}

// sold are the names of the types of the catalogue, none where there is no
// catalogue.
func (s Service) sold(ctx context.Context) (map[string]bool, error) {
	read := s.current
	if s.Market == nil {
		read = s.offers
	}
	doc, err := read(ctx)
	return names(doc), err
}

func names(doc catalog.Catalogue) map[string]bool {
	out := make(map[string]bool, len(doc.Types))
	for i := range doc.Types {
		out[doc.Types[i].Name] = true
	}
	return out
}
