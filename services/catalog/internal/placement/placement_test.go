package placement

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

var account = []cloud.Reservation{
	{ID: "cr-3", InstanceType: "p5.48xlarge", Zone: "us-west-2a", Owner: "111111111111", Match: "targeted", Kind: "capacity-block", Ends: noon.Add(40 * time.Minute), Available: 4},
	{ID: "cr-1", InstanceType: "m6i.large", Zone: "us-west-2a", Owner: "111111111111", Match: "open", Kind: "default", Tags: map[string]string{"team": "web"}, Available: 2},
	{ID: "cr-2", InstanceType: "m6i.large", Zone: "us-west-2b", Owner: "222222222222", Match: "targeted", Kind: "default", Interruptible: true, Tags: map[string]string{"team": "ml"}},
}

func TestSelectReservations(t *testing.T) {
	type term = karpenter.CapacityReservationSelectorTerm
	tags := func(value string) map[string]string { return map[string]string{"team": value} }
	for _, tt := range []struct {
		name  string
		terms []term
		want  []string
	}{
		{"no terms", nil, nil},
		{"an empty term", []term{{}}, nil},
		{"id", []term{{ID: "cr-2"}}, []string{"cr-2"}},
		{"unknown id", []term{{ID: "cr-9"}}, nil},
		{"tag", []term{{Tags: tags("ml")}}, []string{"cr-2"}},
		{"tag with *", []term{{Tags: tags("*")}}, []string{"cr-1", "cr-2"}},
		{"tag with a prefix", []term{{Tags: tags("w*")}}, []string{"cr-1"}},
		{"owner", []term{{OwnerID: "111111111111", Tags: tags("*")}}, []string{"cr-1"}},
		{"open", []term{{InstanceMatchCriteria: "open"}}, []string{"cr-1"}},
		{"targeted", []term{{InstanceMatchCriteria: "targeted"}}, []string{"cr-2", "cr-3"}},
		{"all of a term", []term{{InstanceMatchCriteria: "open", Tags: tags("ml")}}, nil},
		{"any of the terms", []term{{ID: "cr-3"}, {Tags: tags("web")}, {ID: "cr-1"}}, []string{"cr-1", "cr-3"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, r := range SelectReservations(account, tt.terms, noon) {
				got = append(got, r.ID)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Fatalf("reservations (-want +got):\n%s", diff)
			}
		})
	}
}

// A reservation that the schema does not allow must not make the status invalid.
func TestSelectReservationsSkipsUnknownKinds(t *testing.T) {
	terms := []karpenter.CapacityReservationSelectorTerm{{ID: "cr-1"}, {ID: "cr-2"}}
	for name, change := range map[string]func(*cloud.Reservation){
		"criteria": func(r *cloud.Reservation) { r.Match = "shared" },
		"kind":     func(r *cloud.Reservation) { r.Kind = "future-capacity" },
		"no zone":  func(r *cloud.Reservation) { r.Zone = "" },
	} {
		unsupported := account[1]
		change(&unsupported)
		if got := SelectReservations([]cloud.Reservation{unsupported, account[2]}, terms, noon); len(got) != 1 || got[0].ID != "cr-2" {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestCapacityBlockExpires(t *testing.T) {
	terms := []karpenter.CapacityReservationSelectorTerm{{ID: "cr-3"}}
	want := event.Reservation{
		ID: "cr-3", InstanceType: "p5.48xlarge", Zone: "us-west-2a", OwnerID: "111111111111", MatchCriteria: "targeted",
		Kind: "capacity-block", Ends: noon.Add(40 * time.Minute), Expiring: true,
	}
	if diff := cmp.Diff([]event.Reservation{want}, SelectReservations(account, terms, noon)); diff != "" {
		t.Errorf("40 minutes before the end (-want +got):\n%s", diff)
	}
	if got := SelectReservations(account, terms, noon.Add(-1)); got[0].Expiring {
		t.Error("it expires more than 40 minutes before its end")
	}
	plain := account[0]
	plain.Kind = cloud.DefaultReservation
	if got := SelectReservations([]cloud.Reservation{plain}, terms, noon.Add(time.Hour)); got[0].Expiring {
		t.Error("a reservation that is not a capacity block expires")
	}
}

func TestFindGroup(t *testing.T) {
	groups := []cloud.PlacementGroup{{ID: "pg-1", Name: "a"}, {ID: "pg-2", Name: "b"}}
	for _, tt := range []struct {
		name     string
		selector karpenter.PlacementGroupSelector
		want     string
	}{
		{"name", karpenter.PlacementGroupSelector{Name: new("b")}, "pg-2"},
		{"id", karpenter.PlacementGroupSelector{ID: new("pg-1")}, "pg-1"},
		{"both match", karpenter.PlacementGroupSelector{ID: new("pg-1"), Name: new("a")}, "pg-1"},
		{"they contradict each other", karpenter.PlacementGroupSelector{ID: new("pg-1"), Name: new("b")}, ""},
		{"a pattern is a name", karpenter.PlacementGroupSelector{Name: new("*")}, ""},
		{"neither", karpenter.PlacementGroupSelector{}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, found := FindGroup(groups, tt.selector)
			if got.ID != tt.want || found != (tt.want != "") {
				t.Fatalf("got %+v, %t", got, found)
			}
		})
	}
}

// The catalogue is valid for any order of EC2's results, and unchanged counts give the same
// document.
func TestAddTo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Account{
			Counted: noon, Reservations: rapid.Permutation(account).Draw(t, "reservations"),
			Subnets: rapid.Permutation([]cloud.Subnet{{ID: "subnet-1", FreeIPs: 7}, {ID: "subnet-2"}, {ID: "subnet-3", FreeIPs: 1}}).Draw(t, "subnets"),
			Groups:  rapid.Permutation([]cloud.PlacementGroup{{ID: "pg-1", Name: "a", Strategy: "spread"}, {ID: "pg-2", Name: "b", Strategy: "partition", Partitions: 7}}).Draw(t, "groups"),
		}
		doc := a.AddTo(catalog.Catalogue{Region: "us-west-2", AsOf: noon.AddDate(0, -1, 0)}, catalog.Catalogue{})
		if err := doc.Validate(); err != nil {
			t.Fatal(err)
		}
		if !doc.CountedAt().Equal(noon) || len(doc.Reservations) != 3 || doc.Reservations[0].Count != 2 || doc.Subnets[0].FreeIPs != 7 || doc.PlacementGroups[1].Partitions != 7 {
			t.Fatalf("catalogue %+v", doc)
		}
		a.Counted = noon.Add(time.Hour)
		if again := a.AddTo(catalog.Catalogue{Region: "us-west-2", AsOf: doc.AsOf}, doc); !cmp.Equal(doc, again) {
			t.Fatal("the same counts give another document")
		}
		a.Subnets[0].FreeIPs++
		if other := a.AddTo(catalog.Catalogue{}, doc); !other.Counted.Equal(a.Counted) {
			t.Fatal("changed counts keep the old time")
		}
	})
}
