package catalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/services/catalog/internal/cache"
	"github.com/joist-autoscaler/joist/services/catalog/internal/listing"
	"github.com/joist-autoscaler/joist/services/catalog/internal/market"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// listInstances publishes the instances that were launched for NodePools of the cluster,
// in every state. Lifecycle needs a terminated instance to delete its NodeClaim.
func (s Service) listInstances(ctx context.Context, e event.Envelope) error {
	// The time is taken before the call: an instance that is missing was launched later.
	started := s.Now().UTC()
	// Both tags are required, because EKS adds the first one to instances of managed
	// node groups, and lifecycle terminates listed instances that have no NodeClaim.
	owned := map[string]string{karpenter.ClusterTagPrefix + s.Cluster.Name: "owned", karpenter.NodePoolTagKey: ""}
	instances, err := s.Instances.DescribeInstances(ctx, cloud.InstanceFilter{Tags: owned})
	if err != nil {
		return fmt.Errorf("listing the instances of cluster %s: %w", s.Cluster.Name, err)
	}
	ref, err := blob.Put(ctx, s.Blobs, s.Now(), event.InventoryKind, listing.BuildInventory(started, instances, s.findWithdrawn(ctx, instances)))
	if err != nil {
		return fmt.Errorf("storing the inventory: %w", err)
	}
	host.AddLogFields(ctx, "instances", len(instances))
	fact := event.InstancesListed{Started: started, Inventory: ref, Count: len(instances), Shifts: s.listActiveShifts(ctx)}
	return s.publishEvent(ctx, e, fact)
}

// findWithdrawn returns the offerings of the instances that are not in the catalogue. It
// returns nil if the catalogue cannot be read: the inventory is published without them.
func (s Service) findWithdrawn(ctx context.Context, instances []cloud.Instance) []event.Offering {
	var offerings []event.Offering
	for i := range instances {
		if one := listing.OfferingOf(instances[i]); !slices.Contains(offerings, one) {
			offerings = append(offerings, one)
		}
	}
	missing, err := s.OfferingCache.FindMissing(ctx, offerings, s.readOffered)
	if err != nil {
		host.AddLogFields(ctx, "warnings", []string{market.TruncateWarning("the inventory does not mark withdrawn offerings: " + err.Error())})
		return nil
	}
	return missing
}

// readOffered returns a function that reports which offerings the catalogue has, or nil without a
// catalogue of EC2's types and zones: an instance of a type that the embedded catalogue lacks is not
// withdrawn.
func (s Service) readOffered(ctx context.Context) (cache.IsOffered, error) {
	read := s.currentCatalogue
	if s.Market == nil {
		read = s.staticCatalogue
	}
	doc, err := read(ctx)
	if err != nil || len(doc.Types) == 0 || doc.Embedded {
		return nil, err
	}
	return offeredIn(doc), nil
}

// offeredIn returns a function that reports whether a catalogue has an offering, by the rule of
// Karpenter's drift: the type exists, supports the capacity type, and the zone has an offering of
// any type (Karpenter: pkg/controllers/nodeclaim/disruption/drift.go, instanceTypeNotFound).
// CapacityReservationDrift covers reservations.
func offeredIn(doc catalog.Catalogue) cache.IsOffered {
	usage, zones := map[string][]string{}, map[string]bool{"": true}
	for i := range doc.Types {
		t := &doc.Types[i]
		usage[t.Name] = append([]string{"", catalog.Reserved}, t.SupportedUsage...)
		for _, o := range t.Offerings {
			zones[o.Zone] = true
		}
	}
	return func(o event.Offering) bool {
		return slices.Contains(usage[o.InstanceType], o.CapacityType) && zones[o.Zone]
	}
}
