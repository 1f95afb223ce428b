package catalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/services/catalog/internal/listing"
	"github.com/joist-autoscaler/joist/services/catalog/internal/market"
	"github.com/joist-autoscaler/joist/services/catalog/internal/recall"
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

// withdrawn are the offerings of instances that are not in the catalogue. An
// inventory is worth more than this, and goes without it.
func (s Service) withdrawn(ctx context.Context, instances []cloud.Instance) []event.Offering {
	var offerings []event.Offering
	for i := range instances {
		if one := listing.OfferingOf(instances[i]); !slices.Contains(offerings, one) {
			offerings = append(offerings, one)
		}
	}
	missing, err := s.Sold.Missing(ctx, offerings, s.sold)
	if err != nil {
		host.Say(ctx, "warnings", []string{market.Short("whether types are sold is not told with the inventory: " + err.Error())})
		return nil
	}
	return missing
}

// sold tells of the catalogue's offerings, nil where there is no catalogue.
func (s Service) sold(ctx context.Context) (recall.Sells, error) {
	read := s.current
	if s.Market == nil {
		read = s.offers
	}
	doc, err := read(ctx)
	if err != nil || len(doc.Types) == 0 {
		return nil, err
	}
	return sells(doc), nil
}

// sells reads off the catalogue what Karpenter's drift asks: whether the type exists, whether it is bought by that capacity
// type at all, and whether anything is sold in the zone. Which zones sell the type itself is no matter of drift, and which
// reservations are left is for CapacityReservationDrift (Karpenter: pkg/controllers/nodeclaim/disruption/drift.go,
// instanceTypeNotFound).
func sells(doc catalog.Catalogue) recall.Sells {
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
