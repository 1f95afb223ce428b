package scenarios

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/catalog"
)

const testSeed = 42

// waiting returns the number of pending pods of a scenario.
func waiting(s Scenario) int {
	count := len(s.Pods)
	for _, g := range s.PodGroups {
		count += g.Count
	}
	return count
}

func TestEachKindHasRequestedSize(t *testing.T) {
	for _, k := range Kinds() {
		for _, size := range []int{1, 7, 100, 1003} {
			s := k.Make(size, testSeed)
			pods, nodes := size, 0
			if k.Fleet {
				pods, nodes = 0, size
			}
			if waiting(s) != pods || len(s.Nodes) != nodes {
				t.Errorf("%s: %d pods pending and %d nodes, want %d and %d", s.Name, waiting(s), len(s.Nodes), pods, nodes)
			}
		}
	}
}

func TestSameSeedGivesSameBytes(t *testing.T) {
	for _, k := range Kinds() {
		first, again, other := text(t, k.Make(300, testSeed)), text(t, k.Make(300, testSeed)), text(t, k.Make(300, testSeed+1))
		if first != again {
			t.Errorf("%s: two scenarios of a seed differ:\n%s", k.Name, cmp.Diff(first, again))
		}
		// Identical pods do not depend on the seed, except for the seed's own field.
		if k.Name != "a" && first == other {
			t.Errorf("%s: another seed gives the same scenario", k.Name)
		}
	}
}

func text(t *testing.T, s Scenario) string {
	t.Helper()
	s.Seed = 0
	out, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestLargerScenarioBeginsWithSmaller(t *testing.T) {
	k, err := Find("b")
	if err != nil {
		t.Fatal(err)
	}
	small, large := k.Make(1000, testSeed), k.Make(5000, testSeed)
	for i, g := range small.PodGroups[:len(small.PodGroups)-1] {
		if diff := cmp.Diff(g.Template, large.PodGroups[i].Template); diff != "" {
			t.Fatalf("deployment %d differs:\n%s", i, diff)
		}
	}
}

func TestZonesHaveMostOfferings(t *testing.T) {
	cat, err := catalog.EmbeddedCatalogue(region)
	if err != nil {
		t.Fatal(err)
	}
	offers := map[string]int{}
	for _, it := range cat.Types {
		for _, o := range it.Offerings {
			offers[o.Zone]++
		}
	}
	least := len(cat.Types) * 2
	for _, zone := range Zones() {
		least = min(least, offers[zone])
	}
	for zone, count := range offers {
		if !slices.Contains(Zones(), zone) && count > least {
			t.Errorf("%s has %d offerings, more than one of %v with %d", zone, count, Zones(), least)
		}
	}
}

func TestTypesHavePrices(t *testing.T) {
	types, err := Types()
	if err != nil {
		t.Fatal(err)
	}
	if len(types) < 850 {
		t.Errorf("%d instance types, want 850 or more", len(types))
	}
	sold := map[string][]string{}
	for _, it := range types {
		dearest := map[string]float64{}
		for _, o := range it.Offerings {
			if o.CapacityType == catalog.OnDemand {
				dearest[o.Zone] = o.Price
				sold[it.Name] = append(sold[it.Name], o.Zone)
			}
		}
		for _, o := range it.Offerings {
			if limit, known := dearest[o.Zone]; o.Price <= 0 || known && o.Price > limit {
				t.Errorf("%s in %s costs %v as %s, on-demand %v", it.Name, o.Zone, o.Price, o.CapacityType, limit)
			}
		}
	}
	for _, name := range fleetTypes {
		if diff := cmp.Diff(Zones(), sold[name]); diff != "" {
			t.Errorf("the fleets' %s is not sold in every zone:\n%s", name, diff)
		}
	}
}
