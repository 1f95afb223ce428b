// Package catalog reads AWS: the cluster's instances, the resources that an
// EC2NodeClass selects, and the region's instance types and prices. It changes
// nothing in AWS except documents in the bucket.
//
// The rules:
//
//   - A list is complete or it is not published: an error on one page fails the list.
//   - An inventory's start time is taken before the EC2 call. An instance that is
//     missing in it was launched later, or no longer exists.
//   - A mistake in an EC2NodeClass is a Problem with a fix, never an error. A missing
//     AWS permission is an error, so that it never makes a working class unready.
package catalog

import (
	"context"
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/services/catalog/internal/cache"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Types are the types of the messages that the catalog consumes.
var Types = []event.Type{event.NodeClassChangedType, event.InventoryWantedType, event.TickType}

// Service handles the catalog's messages.
type Service struct {
	Instances cloud.Instances
	Network   cloud.Network
	// Placements lists capacity reservations and placement groups. It is called for
	// classes that select one, and for the catalogue's counts.
	Placements cloud.Placements
	Images     cloud.Images
	Clusters   cloud.Clusters
	Blobs      blob.Store
	Bus        queue.Sender
	Cluster    event.Cluster
	// ClusterOverrides replaces the cluster facts that EKS reports.
	ClusterOverrides ClusterOverrides
	// Region is the AWS region of the published catalogue.
	Region string
	// Market reads instance types, offerings and spot prices. Prices reads on-demand
	// prices and is not called if Isolated is set. Shifts reads zonal shifts and may be nil.
	Market   cloud.Market
	Prices   cloud.Prices
	Shifts   cloud.ZonalShifts
	Isolated bool
	// StaticCatalogue returns the catalogue if Market is nil. If both are nil, the embedded
	// catalogue is published.
	StaticCatalogue func(ctx context.Context, region string) (catalog.Catalogue, error)
	// OfferingCache caches the catalogue's offerings; nil disables the cache.
	OfferingCache *cache.Offerings
	Now           func() time.Time
}

// Handle handles one message.
func (s Service) Handle(ctx context.Context, e event.Envelope) error {
	switch e.Type {
	case event.NodeClassChangedType:
		return host.HandleBody(ctx, s.resolveNodeClass, e)
	case event.InventoryWantedType:
		return host.HandleBody(ctx, s.handleInventoryWanted, e)
	case event.TickType:
		return host.HandleBody(ctx, s.handleTick, e)
	default:
		return fault.F("handling "+string(e.Type), fault.Poison, "the catalog does not consume this type")
	}
}

// handleInventoryWanted publishes the inventory that the watcher requested.
func (s Service) handleInventoryWanted(ctx context.Context, e event.Envelope, _ event.InventoryWanted) error {
	return s.listInstances(ctx, e)
}

// handleTick publishes an inventory or a catalogue. It ignores other ticks, because one
// rule sends all of them.
func (s Service) handleTick(ctx context.Context, e event.Envelope, b event.Tick) error {
	switch b.Want {
	case event.WantInventory:
		return s.listInstances(ctx, e)
	case event.WantCatalogue:
		return s.refreshCatalogue(ctx, e)
	default:
		return nil
	}
}

// publishEvent publishes an event that e caused.
func (s Service) publishEvent(ctx context.Context, e event.Envelope, body event.Body) error {
	return queue.PublishBody(ctx, s.Bus, event.Maker{Service: "catalog", Cluster: s.Cluster}, s.Now(), body, &e)
}

// describeCluster returns the facts with which nodes join the cluster.
func (s Service) describeCluster(ctx context.Context) (cloud.ClusterInfo, error) {
	if s.ClusterOverrides.NoEKS {
		return s.ClusterOverrides.clusterInfo(s.Cluster.Name)
	}
	info, err := s.Clusters.DescribeCluster(ctx, s.Cluster.Name)
	if fault.Is(err, fault.Missing) {
		return info, fault.E("describing cluster "+s.Cluster.Name, fault.Missing, err).
			WithHint("set the cluster's name as EKS spells it, and the cluster's region")
	}
	if err != nil {
		return info, fmt.Errorf("describing cluster %s: %w", s.Cluster.Name, err)
	}
	return s.ClusterOverrides.applyTo(info), nil
}
