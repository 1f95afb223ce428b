package launchresult_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/launcher/internal/launchresult"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

func TestMergeRefusals(t *testing.T) {
	short := func(message, zone string) event.Refusal {
		return event.Refusal{Code: "Insufficient", Message: message, Blamed: []event.Offering{spotOffering("m6g.large", zone)}}
	}
	in := []event.Refusal{
		{Code: "Denied", Message: "no"}, {Code: "Denied", Message: "never"}, {Code: "Zone", Subnet: "subnet-c"}, {Code: "Zone", Reservation: "cr-1"},
		short("short in b", "b"), short("short in a", "a"), short("short in a", "a"), short("short in c", "a0"),
		{Code: "Addresses", Subnet: "subnet-b", Blamed: []event.Offering{{Zone: "b"}}},
		{Code: "Addresses", Subnet: "subnet-a", Blamed: []event.Offering{{Zone: "a"}}},
		{Code: "Insufficient", PlacementGroup: "pg-1", Blamed: []event.Offering{spotOffering("m6g.large", "a")}},
	}
	want := []event.Refusal{
		{Code: "Addresses", Subnet: "subnet-a", Blamed: []event.Offering{{Zone: "a"}}},
		{Code: "Addresses", Subnet: "subnet-b", Blamed: []event.Offering{{Zone: "b"}}},
		{Code: "Insufficient", Message: "short in a (and 2 similar messages)",
			Blamed: []event.Offering{spotOffering("m6g.large", "a"), spotOffering("m6g.large", "a0"), spotOffering("m6g.large", "b")}},
		{Code: "Insufficient", PlacementGroup: "pg-1", Blamed: []event.Offering{spotOffering("m6g.large", "a")}},
		{Code: "Zone", Reservation: "cr-1"},
		{Code: "Zone", Subnet: "subnet-c"},
		{Code: "Denied", Message: "never (and 1 similar messages)"},
	}
	if diff := cmp.Diff(want, launchresult.MergeRefusals(in)); diff != "" {
		t.Error(diff)
	}
	slices.Reverse(in)
	if diff := cmp.Diff(want, launchresult.MergeRefusals(in)); diff != "" {
		t.Errorf("in another order got %s", diff)
	}
	if got := launchresult.MergeRefusals(nil); len(got) != 0 {
		t.Errorf("without refusals got %v", got)
	}
}

// Many codes and long messages are truncated, and refusals that make an offering
// unavailable are kept.
func TestMergeRefusalsIsBounded(t *testing.T) {
	var in []event.Refusal
	for i := range 300 {
		in = append(in, event.Refusal{Code: fmt.Sprintf("A%03d%s", i, strings.Repeat("x", 500)), Message: "It failed: " + strings.Repeat("ä", 5000) + " (try: this)"})
	}
	in = append(in, event.Refusal{Code: "Z", Blamed: []event.Offering{spotOffering("m6g.large", "a")}})
	out := launchresult.MergeRefusals(in)
	if len(out) != 32 || out[0].Code != "Z" {
		t.Fatalf("got %d refusals, the first with code %s", len(out), out[0].Code)
	}
	for _, r := range out[1:] {
		if len(r.Code) > 128 || len(r.Code) < 124 || len(r.Message) > 1024 || len(r.Message) < 1016 || !utf8.ValidString(r.Message) ||
			!strings.HasPrefix(r.Message, "It failed: ") || !strings.HasSuffix(r.Message, "(try: this)") {
			t.Errorf("got a code of %d bytes and a message of %d bytes: %.40s", len(r.Code), len(r.Message), r.Message)
		}
	}
}

// Texts of exactly the limit are not truncated.
func TestMergeRefusalsKeepsTextsOfTheLimit(t *testing.T) {
	r := event.Refusal{Code: strings.Repeat("c", 128), Message: strings.Repeat("m", 1024)}
	if diff := cmp.Diff([]event.Refusal{r}, launchresult.MergeRefusals([]event.Refusal{r})); diff != "" {
		t.Error(diff)
	}
}

// In a reserved fleet, an error makes the reservation unavailable, but no other offering of
// the type and zone.
func TestUnavailableReservations(t *testing.T) {
	reserved := launchspec.Intent{ID: "3f2a", Fleet: cloud.FleetRequest{Token: "3f2a", Count: 1, CapacityType: cloud.Reserved}}
	for _, id := range []string{"cr-1", "cr-2"} {
		reserved.Templates = append(reserved.Templates, cloud.Template{Name: "t-" + id, Reservation: &cloud.ReservationTarget{ID: id}})
		reserved.Fleet.Configs = append(reserved.Fleet.Configs, cloud.FleetConfig{Template: "t-" + id, Overrides: []cloud.Override{
			{InstanceType: "m6g.large", Zone: "a", SubnetID: "subnet-a"},
		}})
	}
	offering := []event.Offering{{InstanceType: "m6g.large", Zone: "a", CapacityType: cloud.Reserved}}
	named := cloud.FleetError{InstanceType: "m6g.large", Zone: "a", SubnetID: "subnet-a", Template: "t-cr-2"}
	refusal := func(code, id string) event.Refusal {
		return event.Refusal{Code: code, Blamed: offering, Reservation: id}
	}
	for _, test := range []struct {
		code string
		from cloud.FleetError
		want []event.Refusal
	}{
		{"ReservationCapacityExceeded", named, []event.Refusal{refusal("ReservationCapacityExceeded", "cr-2")}},
		{"InvalidCapacityReservationState.Unavailable", named, []event.Refusal{refusal("InvalidCapacityReservationState.Unavailable", "cr-2")}},
		{"InsufficientInstanceCapacity", cloud.FleetError{}, []event.Refusal{refusal("InsufficientInstanceCapacity", "cr-1"), refusal("InsufficientInstanceCapacity", "cr-2")}},
		{"InsufficientFreeAddressesInSubnet", named, []event.Refusal{
			{Code: "InsufficientFreeAddressesInSubnet", Blamed: []event.Offering{{Zone: "a"}}, Subnet: "subnet-a"},
			refusal("InsufficientFreeAddressesInSubnet", "cr-2"),
		}},
		{"AuthFailure.ServiceLinkedRoleCreationNotPermitted", named, []event.Refusal{
			{Code: "AuthFailure.ServiceLinkedRoleCreationNotPermitted", Blamed: []event.Offering{{CapacityType: cloud.Spot}}},
		}},
		{"InsufficientInstanceCapacity", cloud.FleetError{InstanceType: "m6g.large", Zone: "b"}, []event.Refusal{ // no reservation is there
			{Code: "InsufficientInstanceCapacity", Blamed: []event.Offering{{InstanceType: "m6g.large", Zone: "b", CapacityType: cloud.Reserved}}},
		}},
		{"UnauthorizedOperation", named, []event.Refusal{{Code: "UnauthorizedOperation"}}},
	} {
		test.from.Code = test.code
		result, _ := launchresult.FromFleet(reserved, cloud.FleetResult{Errors: []cloud.FleetError{test.from}})
		if diff := cmp.Diff(test.want, result.Refusals); diff != "" {
			t.Errorf("%s: %s", test.code, diff)
		}
	}
}
