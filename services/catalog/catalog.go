// Package catalog reads AWS and decides nothing: which instances exist, what an
// EC2NodeClass's selectors find, and what the region sells.
//
// The invariants:
//
//   - It writes nothing in AWS but documents and one pointer in the store.
//   - A list is complete or it is not said: an error on any page is an error of
//     the whole.
//   - The time of an inventory is taken before EC2 is asked, so that what it
//     lacks was launched later, or is gone.
//   - What a person has to mend in an EC2NodeClass is a Problem with a remedy,
//     never an error; what a person has to mend in AWS's rights is an error, so
//     that a lost right never makes a working class unready.
package catalog

import (
	"context"
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/services/catalog/internal/recall"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Types are the messages that the catalog takes.
var Types = []event.Type{event.NodeClassChangedType, event.InventoryWantedType, event.TickType}

// Service is the catalog over its ports.
type Service struct {
	Instances cloud.Instances
	Network   cloud.Network
	// Placements are asked for classes that select any, and for the catalogue.
	Placements cloud.Placements
	Images     cloud.Images
	Clusters   cloud.Clusters
	Blobs      blob.Store
	Bus        queue.Sender
	Cluster    event.Cluster
	// Given is what the settings say of how nodes join, in place of what EKS names.
	Given Given
	// Region is whose catalogue is published.
	Region string
	// Market reads what the region sells, Prices what it costs on demand, unless
	// Isolated, and Shifts which zones to avoid, unless it is nil.
	Market   cloud.Market
	Prices   cloud.Prices
	Shifts   cloud.ZonalShifts
	Isolated bool
	// Offers has a catalogue at hand, where Market is nil; where it is nil too, the
	// embedded catalogue is published.
	Offers func(ctx context.Context, region string) (catalog.Catalogue, error)
	// Sold remembers which types the catalogue has; nil remembers nothing.
	Sold *recall.Types
	Now  func() time.Time
}

// Handle answers one message.
func (s Service) Handle(ctx context.Context, e event.Envelope) error {
	switch e.Type {
	case event.NodeClassChangedType:
		return host.Body(ctx, s.resolve, e)
	case event.InventoryWantedType:
		return host.Body(ctx, s.wanted, e)
	case event.TickType:
		return host.Body(ctx, s.tick, e)
	default:
		return fault.F("handling "+string(e.Type), fault.Poison, "the catalog does not know the type")
	}
}

// wanted answers the watcher's question.
func (s Service) wanted(ctx context.Context, e event.Envelope, _ event.InventoryWanted) error {
	return s.list(ctx, e)
}

// tick does what is due. A tick for somebody else is no error: the rule that
// sends them need not know who wants which.
func (s Service) tick(ctx context.Context, e event.Envelope, b event.Tick) error {
	switch b.Want {
	case event.WantInventory:
		return s.list(ctx, e)
	case event.WantCatalogue:
		return s.refresh(ctx, e)
	default:
		return nil
	}
}

// publish says a fact that e caused.
func (s Service) publish(ctx context.Context, e event.Envelope, body event.Body) error {
	maker := event.Maker{Service: "catalog", Cluster: s.Cluster}
	fact, err := maker.New(s.Now(), body, &e)
	if err != nil {
		return err
	}
	if err := queue.Publish(ctx, s.Bus, fact); err != nil {
		return fmt.Errorf("publishing %s: %w", fact.Type, err)
	}
	return nil
}

// describe reads how nodes join the cluster.
func (s Service) describe(ctx context.Context) (cloud.ClusterInfo, error) {
	if s.Given.NoEKS {
		return s.Given.whole(s.Cluster.Name)
	}
	info, err := s.Clusters.DescribeCluster(ctx, s.Cluster.Name)
	if fault.Is(err, fault.Missing) {
		return info, fault.E("describing cluster "+s.Cluster.Name, fault.Missing, err).
			WithHint("set the cluster's name as EKS spells it, and the region in which it is")
	}
	if err != nil {
		return info, fmt.Errorf("describing cluster %s: %w", s.Cluster.Name, err)
	}
	return s.Given.over(info), nil
}
