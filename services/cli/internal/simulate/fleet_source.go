package simulate

import (
	"maps"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/live"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// Source is a snapshot with the instance types for it and for changed copies.
type Source struct {
	Title string
	// Kind is cluster, snapshot, store or scenario.
	Kind     string
	Notes    []string
	Snapshot planning.Snapshot
	// PricesFrom is account, embedded, catalogue or scenario. Region and PricesAsOf are empty for a
	// scenario.
	PricesFrom, Region string
	PricesAsOf         time.Time
	// Unread are the kinds of a running cluster that could not be read.
	Unread []live.Unread
	// HasNoAges reports that the snapshot has no ages and no expireAfter of nodes.
	HasNoAges bool
	// Stock returns the instance types for the classes of a snapshot.
	Stock func(planning.Snapshot) instancetypes.InstanceTypes
}

// SourceFromCatalogue returns the source of a cluster's snapshot and its catalogue.
func SourceFromCatalogue(s planning.Snapshot, c catalog.Catalogue) Source {
	return Source{Title: s.Cluster, Kind: "snapshot", PricesFrom: "catalogue", Region: c.Region, PricesAsOf: c.AsOf, Snapshot: s, Stock: func(s planning.Snapshot) instancetypes.InstanceTypes { return instancetypes.New(s, c) }}
}

// SourceFromScenario returns the source of a scenario, in which all classes have the same
// instance types.
func SourceFromScenario(s *scenario.Scenario) Source {
	snapshot, stock := s.Fleet()
	return Source{Title: s.Name, Kind: "scenario", PricesFrom: "scenario", Notes: s.Notes, Snapshot: snapshot, HasNoAges: true, Stock: func(s planning.Snapshot) instancetypes.InstanceTypes {
		out := stock
		out.ByNodeClass = maps.Clone(stock.ByNodeClass)
		for _, types := range stock.ByNodeClass {
			for i := range s.NodeClasses {
				if name := s.NodeClasses[i].Name; out.ByNodeClass[name] == nil {
					out.ByNodeClass[name] = types
				}
			}
		}
		return out
	}}
}

// Fleet returns the nodes of the source.
func (s Source) Fleet() *Fleet { return s.FleetOf(s.Snapshot) }

// FleetOf returns the nodes of another snapshot with the source's instance types. Offerings
// that it no longer has keep their prices.
func (s Source) FleetOf(snapshot planning.Snapshot) *Fleet {
	f := &Fleet{title: s.Title, stock: s.Stock(snapshot), prices: prices{}, unscheduled: map[string]string{}}
	f.prices.addStock(s.Stock(s.Snapshot))
	f.prices.addStock(f.stock)
	f.completeInFlight(snapshot)
	return f
}
