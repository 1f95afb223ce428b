package launchspec

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// newOffer returns an offer in zone a.
func newOffer(kind, capacityType string, price float64, edits ...func(*offer)) offer {
	o := offer{PricedOffering: planning.PricedOffering{PricePerHour: price}}
	o.InstanceType, o.CapacityType, o.Zone = kind, capacityType, "a"
	for _, edit := range edits {
		edit(&o)
	}
	return o
}

func exotic(o *offer)             { o.exotic = true }
func in(zone string) func(*offer) { return func(o *offer) { o.Zone = zone } }
func overlaid(o *offer)           { o.PricedByOverlay = true }

// from makes the offer one of a reservation: of a capacity block if the id begins with "block",
// interruptible if it begins with "loan".
func from(id string, left int) func(*offer) {
	return func(o *offer) {
		r := &karpenter.CapacityReservation{ID: id, Interruptible: strings.HasPrefix(id, "loan")}
		if strings.HasPrefix(id, "block") {
			r.ReservationType = karpenter.CapacityReservationTypeCapacityBlock
		}
		o.CapacityType, o.reservation, o.left = cloud.Reserved, r, left
	}
}

// words returns a short text for offers: the type, then zone or reservation if they are not the
// default.
func words(offers []offer) string {
	var out []string
	for _, o := range offers {
		word := o.InstanceType
		if o.Zone != "a" {
			word += "/" + o.Zone
		}
		if o.reservation != nil {
			word += ":" + o.reservation.ID
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

func TestFilters(t *testing.T) {
	varied := planning.Requirements{karpenter.LabelInstanceFamily: planning.AnyValue().WithMinValues(2)}
	only := func(key string, values ...string) planning.Requirements {
		return planning.Requirements{key: planning.In(values...)}
	}
	for _, tt := range []struct {
		filter, name string
		reqs         planning.Requirements
		offers       []offer
		want         string
	}{
		{"CompatibleLaunchable", "no requirements", nil, []offer{newOffer("m", "spot", 1), newOffer("n", "on-demand", 2)}, "m n"},
		{"CompatibleLaunchable", "another type", only("node.kubernetes.io/instance-type", "n"), []offer{newOffer("m", "spot", 1), newOffer("n", "spot", 2)}, "n"},
		{"CompatibleLaunchable", "another zone", only("topology.kubernetes.io/zone", "b"), []offer{newOffer("m", "spot", 1), newOffer("m", "spot", 2, in("b"))}, "m/b"},
		{"CompatibleLaunchable", "another capacity type", only(karpenter.CapacityTypeLabelKey, "on-demand"), []offer{newOffer("m", "spot", 1), newOffer("n", "on-demand", 2)}, "n"},
		{"CompatibleLaunchable", "another reservation", only(karpenter.LabelCapacityReservationID, "cr-2"), []offer{newOffer("m", "", 1, from("cr-1", 1)), newOffer("m", "", 1, from("cr-2", 1))}, "m:cr-2"},
		{"CompatibleLaunchable", "a reservation that the class no longer has", nil, []offer{newOffer("m", "reserved", 1), newOffer("n", "spot", 2)}, "n"},

		{"CompatibleLaunchable", "a full reservation", nil, []offer{newOffer("m", "", 1, from("cr-1", 0)), newOffer("m", "", 1, from("cr-2", 1)), newOffer("n", "on-demand", 2)}, "m:cr-2 n"},
		{"CompatibleLaunchable", "a full capacity block", nil, []offer{newOffer("m", "", 1, from("block-1", 0)), newOffer("n", "on-demand", 2), newOffer("o", "spot", 3)}, "n o"},

		{"CapacityReservationType", "no reserved offerings", nil, []offer{newOffer("m", "spot", 1), newOffer("n", "on-demand", 2)}, "m n"},
		{"CapacityReservationType", "reserved offerings only", nil, []offer{newOffer("m", "spot", 1), newOffer("n", "", 2, from("cr-1", 1))}, "n:cr-1"},
		{"CapacityReservationType", "the cheapest market", nil, []offer{newOffer("m", "", 1, from("block-1", 1)), newOffer("n", "", 2, from("cr-1", 1)), newOffer("o", "", 3, from("block-2", 1))}, "m:block-1 o:block-2"},
		{"CapacityReservationType", "default reservations before others of equal price", nil, []offer{newOffer("m", "", 1, from("loan-1", 1)), newOffer("n", "", 1, from("block-1", 1)), newOffer("o", "", 1, from("cr-1", 1))}, "o:cr-1"},
		{"CapacityReservationType", "capacity blocks before interruptible reservations", nil, []offer{newOffer("m", "", 1, from("loan-1", 1)), newOffer("n", "", 1, from("block-1", 1))}, "n:block-1"},

		{"CapacityBlock", "only the cheapest block", nil, []offer{newOffer("m", "", 2, from("block-1", 9)), newOffer("n", "", 1, from("block-2", 1)), newOffer("o", "", 3, from("block-3", 1))}, "n:block-2"},
		{"CapacityBlock", "no blocks", nil, []offer{newOffer("m", "", 2, from("cr-1", 1)), newOffer("n", "", 3, from("cr-2", 1))}, "m:cr-1 n:cr-2"},

		{"ReservedOffering", "the largest reservation per type and zone", nil, []offer{
			newOffer("m", "", 1, from("cr-1", 1)), newOffer("m", "", 1, from("cr-2", 5)), newOffer("m", "", 1, in("b"), from("cr-3", 1)), newOffer("n", "", 1, from("cr-4", 1)),
		}, "m:cr-2 m/b:cr-3 n:cr-4"},
		{"ReservedOffering", "the first of equal ones", nil, []offer{newOffer("m", "", 1, from("cr-1", 2)), newOffer("m", "", 1, from("cr-2", 2))}, "m:cr-1"},
		{"ReservedOffering", "no reserved offerings", nil, []offer{newOffer("m", "spot", 1), newOffer("m", "spot", 2)}, "m m"},

		{"ExoticInstanceType", "dropped if others remain", nil, []offer{newOffer("gpu", "spot", 1, exotic), newOffer("m", "spot", 2)}, "m"},
		{"ExoticInstanceType", "kept if nothing else remains", nil, []offer{newOffer("gpu", "spot", 1, exotic)}, "gpu"},
		{"ExoticInstanceType", "kept for minValues", varied, []offer{newOffer("gpu", "spot", 1, exotic), newOffer("m", "spot", 2)}, "gpu m"},

		{"SpotOffering", "dropped if it is more expensive than on-demand", nil, []offer{newOffer("m", "spot", 1), newOffer("n", "on-demand", 2), newOffer("o", "spot", 3)}, "m n"},
		{"SpotOffering", "kept at the same price", nil, []offer{newOffer("n", "on-demand", 2), newOffer("o", "spot", 2)}, "n o"},
		{"SpotOffering", "kept at any price if there is no on-demand", nil, []offer{newOffer("m", "spot", 9)}, "m"},
		{"SpotOffering", "kept for minValues", varied, []offer{newOffer("n", "on-demand", 2), newOffer("o", "spot", 3)}, "n o"},
	} {
		t.Run(tt.filter+"/"+tt.name, func(t *testing.T) {
			for _, f := range filters {
				if f.name != tt.filter {
					continue
				}
				if got := words(f.keep(tt.reqs, tt.offers)); got != tt.want {
					t.Errorf("kept %q, want %q", got, tt.want)
				}
				return
			}
			t.Fatal("unknown filter")
		})
	}
}

func TestFiltersInOrder(t *testing.T) {
	var got []string
	for _, f := range filters {
		got = append(got, f.name)
	}
	want := []string{"CompatibleLaunchable", "CapacityReservationType", "CapacityBlock", "ReservedOffering", "ExoticInstanceType", "SpotOffering"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestChoice checks capacity type, target, strategy and order of the remaining offers.
func TestChoice(t *testing.T) {
	for _, tt := range []struct {
		name   string
		offers []offer
		want   string
	}{
		{"spot before on-demand", []offer{newOffer("m", "spot", 1), newOffer("n", "on-demand", 2)}, "spot  price-capacity-optimized m"},
		{"on-demand if spot is more expensive", []offer{newOffer("n", "on-demand", 2), newOffer("m", "spot", 3)}, "on-demand  lowest-price n"},
		{"reserved before both", []offer{newOffer("m", "spot", 1), newOffer("o", "", 2, from("cr-1", 1)), newOffer("n", "on-demand", 3)}, "reserved  lowest-price o:cr-1"},
		{"a capacity block", []offer{newOffer("o", "", 2, from("block-1", 1))}, "reserved capacity-block  o:block-1"},
		{"an interruptible reservation", []offer{newOffer("o", "", 2, from("loan-1", 1))}, "reserved reserved-capacity  o:loan-1"},
		{"overlaid spot", []offer{newOffer("m", "spot", 1, overlaid), newOffer("n", "spot", 2)}, "spot  capacity-optimized-prioritized m n"},
		{"overlaid on-demand", []offer{newOffer("m", "on-demand", 1), newOffer("n", "on-demand", 2, overlaid)}, "on-demand  prioritized m n"},
		{"an overlay of an excluded offering", []offer{newOffer("m", "spot", 1), newOffer("n", "on-demand", 2, overlaid)}, "spot  price-capacity-optimized m"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := narrow(nil, tt.offers)
			if got := strings.Join([]string{c.capacityType, c.target(), c.strategy(), words(c.offers)}, " "); got != tt.want {
				t.Errorf("choice = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPrioritiesAreIntegers(t *testing.T) {
	c := narrow(nil, []offer{newOffer("m", "spot", 0.1, overlaid), newOffer("n", "spot", 0.1), newOffer("o", "spot", 0.25), newOffer("p", "spot", 3)})
	if diff := cmp.Diff(map[float64]float64{0.1: 0, 0.25: 1, 3: 2}, c.priorities()); diff != "" {
		t.Error(diff)
	}
	if plain := narrow(nil, []offer{newOffer("m", "spot", 1)}).priorities(); plain != nil {
		t.Errorf("priorities without an overlay = %v, want none", plain)
	}
}

func TestMaxLaunchTypes(t *testing.T) {
	var offers []offer
	for i := range 80 {
		offers = append(offers, newOffer(fmt.Sprintf("t%02d", i), "spot", float64(i+1)))
	}
	offers = append(offers, newOffer("t00", "spot", 99, in("b")), newOffer("t70", "spot", 100, in("b")))
	got := narrow(nil, offers).offers
	if len(got) != 61 || got[60].InstanceType != "t00" {
		t.Errorf("%d offerings, the last one %+v; want the 60 cheapest types with all their offerings", len(got), got[len(got)-1])
	}
	offers = nil
	for i := range 500 {
		offers = append(offers, newOffer(fmt.Sprintf("t%02d", i%50), "spot", float64(i), in(strconv.Itoa(i))))
	}
	if got := narrow(nil, offers).offers; len(got) != maxOverrides {
		t.Errorf("%d overrides, but EC2 allows %d", len(got), maxOverrides)
	}
}

// TestMinValuesAreCoveredOrRejected checks that a launch covers the pool's minValues or fails.
func TestMinValuesAreCoveredOrRejected(t *testing.T) {
	family := func(name string) func(*offer) {
		return func(o *offer) { o.labels = map[string]string{karpenter.LabelInstanceFamily: name} }
	}
	var offers []offer
	for i := range 60 {
		offers = append(offers, newOffer(fmt.Sprintf("t%02d", i), "spot", float64(i), family("t")))
	}
	offers = append(offers, newOffer("m", "spot", 99, family("m")))
	node := &planning.PlannedNode{NodePool: "p", Requirements: planning.Requirements{karpenter.LabelInstanceFamily: planning.AnyValue().WithMinValues(2)}}
	for _, tt := range []struct {
		name       string
		offers     []offer
		bestEffort bool
		relaxed    bool
		want       string
	}{
		{"enough", offers[30:], false, false, ""},
		{"too few values in the cheapest types", offers, false, false, "1 values of karpenter.k8s.aws/instance-family"},
		{"too few values, policy BestEffort", offers, true, false, ""},
		{"too few values, minValues relaxed in the plan", offers, false, true, ""},
		{"no offerings", nil, true, true, "none of the 0 matching offerings"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			node.MinValuesRelaxed = tt.relaxed
			err := narrow(node.Requirements, tt.offers).check(node, len(tt.offers), tt.bestEffort)
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want it to contain %q", err, tt.want)
			}
		})
	}
}
