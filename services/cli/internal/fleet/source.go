package fleet

import (
	"maps"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/scenario"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// Source is a snapshot and what it may be filled from, for those who ask what would
// be if it were another.
type Source struct {
	Title    string
	Notes    []string
	Snapshot scheduling.Snapshot
	// Ageless says that nothing in it has an age, so that nobody wrote down how old its
	// nodes may become.
	Ageless bool
	// Stock is what EC2 has for the classes of a snapshot.
	Stock func(scheduling.Snapshot) scheduling.Stock
}

// FromCatalogue is a snapshot of a cluster, and its catalogue.
func FromCatalogue(s scheduling.Snapshot, c catalog.Catalogue) Source {
	return Source{Title: s.Cluster, Snapshot: s, Stock: func(s scheduling.Snapshot) scheduling.Stock { return scheduling.NewStock(s, c) }}
}

// FromScenario is a scenario. It sells the same to every class.
func FromScenario(s *scenario.Scenario) Source {
	snapshot, stock := s.Fleet()
	return Source{Title: s.Name, Notes: s.Notes, Snapshot: snapshot, Ageless: true, Stock: func(s scheduling.Snapshot) scheduling.Stock {
		out := stock
		out.Types = maps.Clone(stock.Types)
		for _, types := range stock.Types {
			for i := range s.NodeClasses {
				if name := s.NodeClasses[i].Name; out.Types[name] == nil {
					out.Types[name] = types
				}
			}
		}
		return out
	}}
}

// Fleet is the nodes of the source.
func (s Source) Fleet() *Fleet { return s.Shown(s.Snapshot) }

// Shown is the source with a snapshot instead of its own. What that sells no more
// keeps the price that it had.
func (s Source) Shown(snapshot scheduling.Snapshot) *Fleet {
	f := &Fleet{title: s.Title, stock: s.Stock(snapshot), prices: prices{}, left: map[string]string{}}
	f.prices.add(s.Stock(s.Snapshot))
	f.prices.add(f.stock)
	f.settle(snapshot)
	return f
}
