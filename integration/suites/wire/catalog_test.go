package wire

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws"
	service "github.com/joist-autoscaler/joist/services/catalog"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// publishedEvents records the facts that a service publishes.
type publishedEvents struct {
	events []event.Envelope
}

func (f *publishedEvents) Send(_ context.Context, messages ...queue.Outgoing) error {
	for _, m := range messages {
		e, err := event.Decode(m.Body)
		if err != nil {
			return err
		}
		f.events = append(f.events, e)
	}
	return nil
}

// TestCatalogOverTheWire publishes the market of a whole region through every adapter,
// and then again with one permission after the other missing.
func TestCatalogOverTheWire(t *testing.T) {
	sold, err := catalog.EmbeddedCatalogue(fakeaws.Region)
	if err != nil {
		t.Fatal(err)
	}
	for _, denied := range []memcloud.Action{
		"", memcloud.DescribeInstanceTypes, memcloud.DescribeInstanceTypeOfferings, memcloud.DescribeAvailabilityZones,
		memcloud.DescribeSpotPriceHistory, memcloud.GetProducts, memcloud.GetManagedResource,
	} {
		t.Run("without "+string(denied), func(t *testing.T) {
			s := startCloudWith(t, sold)
			s.model.Deny(denied)
			cluster, bus := event.Cluster{Name: s.Cluster.Name, UID: "uid-1"}, &publishedEvents{}
			blobs := memblob.New(memblob.Options{Now: s.clock.Now})
			c := service.Service{
				Instances: s, Network: s, Placements: s, Images: s, Clusters: s, Market: s, Prices: s, Shifts: s,
				Blobs: blobs, Bus: bus, Cluster: cluster, Region: fakeaws.Region, Now: s.clock.Now,
			}
			tick, err := event.Maker{Service: "scheduler", Cluster: cluster}.New(s.clock.Now(), event.Tick{Want: event.WantCatalogue, Due: s.clock.Now()}, nil)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if err := c.Handle(ctx, tick); err != nil {
				t.Fatal(err)
			}
			fact, err := event.DecodeBody[event.CatalogRefreshed](bus.events[0])
			if err != nil {
				t.Fatal(err)
			}
			doc, err := blob.Get[catalog.Catalogue](ctx, blobs, fact.Catalogue)
			if err != nil || len(doc.Types) != len(sold.Types) {
				t.Errorf("%d types of %d (%v)", len(doc.Types), len(sold.Types), err)
			}
			warned := strings.Join(fact.Warnings, "\n")
			if denied == "" && warned != "" || denied != "" && (len(fact.Warnings) != 1 || !strings.Contains(warned, "allow "+string(denied)+" in the IAM policy")) {
				t.Errorf("warnings: %q", fact.Warnings)
			}
		})
	}
}
