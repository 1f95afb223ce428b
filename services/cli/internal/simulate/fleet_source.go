package simulate

import (
	"maps"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// Source is a snapshot and what it may be filled from, for those who ask what would
// be if it were another.
type Source struct {
	Title    string
	Notes    []string
	Snapshot planning.Snapshot
	// Ageless says that nothing in it has an age, so that nobody wrote down how old its
	// nodes may become.
	Ageless bool
	// Stock is what EC2 has for the classes of a snapshot.
	Stock func(planning.Snapshot) instancetypes.InstanceTypes
}

// SourceFromCatalogue is a snapshot of a cluster, and its catalogue.
func SourceFromCatalogue(s planning.Snapshot, c catalog.Catalogue) Source {
	return Source{Title: s.Cluster, Snapshot: s, Stock: func(s planning.Snapshot) instancetypes.InstanceTypes { return instancetypes.New(s, c) }}
}

// SourceFromScenario is a scenario. It sells the same to every class.
func SourceFromScenario(s *scenario.Scenario) Source {
	snapshot, stock := s.Fleet()
	return Source{Title: s.Name, Notes: s.Notes, Snapshot: snapshot, Ageless: true, Stock: func(s planning.Snapshot) instancetypes.InstanceTypes {
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

// Fleet is the nodes of the source.
func (s Source) Fleet() *Fleet { return s.FleetOf(s.Snapshot) }

// FleetOf is the source with a snapshot instead of its own. What that sells no more
// keeps the price that it had.
func (s Source) FleetOf(snapshot planning.Snapshot) *Fleet {
	f := &Fleet{title: s.Title, stock: s.Stock(snapshot), prices: prices{}, unscheduled: map[string]string{}}
	f.prices.add(s.Stock(s.Snapshot))
	f.prices.add(f.stock)
	f.completeInFlight(snapshot)
	return f
}
