package launchresult_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/launcher/internal/launchresult"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// spotIntent returns an intent for n spot instances of two types in two zones.
func spotIntent(n int) launchspec.Intent {
	return launchspec.Intent{
		ID:        "3f2a",
		Templates: []cloud.Template{{Name: "t-arm", ImageID: "ami-arm"}, {Name: "t-amd", ImageID: "ami-amd"}},
		Fleet: cloud.FleetRequest{
			Token: "3f2a", Count: n, CapacityType: cloud.Spot,
			Configs: []cloud.FleetConfig{
				{Template: "t-arm", Overrides: []cloud.Override{
					{InstanceType: "m6g.large", Zone: "a", SubnetID: "subnet-a"}, {InstanceType: "m6g.large", Zone: "b", SubnetID: "subnet-b"},
				}},
				{Template: "t-amd", Overrides: []cloud.Override{{InstanceType: "m6i.large", Zone: "a", SubnetID: "subnet-a"}}},
			},
		},
	}
}

func spotOffering(instanceType, zone string) event.Offering {
	return event.Offering{InstanceType: instanceType, Zone: zone, CapacityType: cloud.Spot}
}

// Each error code makes the right offerings unavailable. With too few, the launch fails
// again; with too many, no pod can be planned for minutes.
func TestUnavailableOfferings(t *testing.T) {
	one := []event.Offering{spotOffering("m6g.large", "b")}
	everywhere := []event.Offering{spotOffering("m6g.large", "a"), spotOffering("m6g.large", "b"), spotOffering("m6i.large", "a")}
	named := cloud.FleetError{InstanceType: "m6g.large", Zone: "b", SubnetID: "subnet-b"}
	for _, test := range []struct {
		name   string
		code   string
		from   cloud.FleetError
		blamed []event.Offering
		subnet string
	}{
		{"no capacity", "InsufficientInstanceCapacity", named, one, ""},
		{"too many spot instances", "MaxSpotInstanceCountExceeded", named, one, ""},
		{"too many CPUs", "VcpuLimitExceeded", named, one, ""},
		{"unfulfillable", "UnfulfillableCapacity", named, one, ""},
		{"unsupported", "Unsupported", named, one, ""},
		{"too many fleets", "MaxFleetCountExceeded", named, one, ""},
		{"reservation full", "ReservationCapacityExceeded", named, one, ""},
		{"reservation reclaimed", "InvalidCapacityReservationState.Unavailable", named, one, ""},
		{"spot price above the maximum", "SpotMaxPriceTooLow", named, one, ""},
		{"no addresses", "InsufficientFreeAddressesInSubnet", named, []event.Offering{{Zone: "b"}}, "subnet-b"},
		{"no role for spot", "AuthFailure.ServiceLinkedRoleCreationNotPermitted", named, []event.Offering{{CapacityType: cloud.Spot}}, ""},

		{"throttled", "RequestLimitExceeded", named, nil, ""},
		{"denied", "UnauthorizedOperation", named, nil, ""},
		{"invalid", "InvalidParameterValue", named, nil, ""},
		{"template not visible yet", "InvalidLaunchTemplateName.NotFoundException", named, nil, ""},
		{"an unknown code", "TooManyCoffees", named, nil, ""},
		{"no code", "", named, nil, ""},

		{"zone of the subnet", "InsufficientInstanceCapacity", cloud.FleetError{InstanceType: "m6g.large", SubnetID: "subnet-b"}, one, ""},
		{"an offering that the intent does not name", "InsufficientInstanceCapacity", cloud.FleetError{InstanceType: "m6i.large", Zone: "b"},
			[]event.Offering{spotOffering("m6i.large", "b")}, ""},
		{"a subnet that the intent does not name", "InsufficientInstanceCapacity", cloud.FleetError{InstanceType: "m6g.large", Zone: "b", SubnetID: "subnet-x"}, one, ""},
		{"no offering named", "InsufficientInstanceCapacity", cloud.FleetError{}, everywhere, ""},
		{"type alone", "Unsupported", cloud.FleetError{InstanceType: "m6g.large"}, everywhere[:2], ""},
		{"zone alone", "UnfulfillableCapacity", cloud.FleetError{Zone: "b"}, one, ""},
		{"addresses of an unknown subnet", "InsufficientFreeAddressesInSubnet", cloud.FleetError{SubnetID: "subnet-x"}, nil, "subnet-x"},
		{"addresses, by subnet alone", "InsufficientFreeAddressesInSubnet", cloud.FleetError{SubnetID: "subnet-a"}, []event.Offering{{Zone: "a"}}, "subnet-a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.from.Code, test.from.Message = test.code, "text"
			result, ok := launchresult.FromFleet(spotIntent(1), cloud.FleetResult{Errors: []cloud.FleetError{test.from}})
			if !ok {
				t.Fatal("the result of a call with an error is empty")
			}
			want := []event.Refusal{{Code: test.code, Message: "text", Blamed: test.blamed, Subnet: test.subnet}}
			if diff := cmp.Diff(want, result.Refusals); diff != "" {
				t.Error(diff)
			}
			for _, o := range result.Refusals[0].Blamed {
				if o == (event.Offering{}) {
					t.Error("all offerings are unavailable")
				}
			}
		})
	}
}

func TestResultFromFleet(t *testing.T) {
	noCapacity := cloud.FleetError{Code: "InsufficientInstanceCapacity", InstanceType: "m6g.large", Zone: "a"}
	launched := func(ids ...string) cloud.FleetInstances {
		return cloud.FleetInstances{IDs: ids, InstanceType: "m6g.large", SubnetID: "subnet-b", Template: "t-arm"}
	}
	for _, test := range []struct {
		name      string
		result    cloud.FleetResult
		ok        bool
		instances int
		codes     []string
	}{
		{"all", cloud.FleetResult{Instances: []cloud.FleetInstances{launched("i-1", "i-2")}}, true, 2, nil},
		{"all instances and an error", cloud.FleetResult{Instances: []cloud.FleetInstances{launched("i-1"), launched("i-2")}, Errors: []cloud.FleetError{noCapacity}}, true, 2, []string{noCapacity.Code}},
		{"some", cloud.FleetResult{Instances: []cloud.FleetInstances{launched("i-1")}, Errors: []cloud.FleetError{noCapacity}}, true, 1, []string{noCapacity.Code}},
		{"some instances without an error", cloud.FleetResult{Instances: []cloud.FleetInstances{launched("i-1")}}, true, 1, []string{"Unfulfilled"}},
		{"none", cloud.FleetResult{Errors: []cloud.FleetError{noCapacity, noCapacity}}, true, 0, []string{noCapacity.Code, noCapacity.Code}},
		{"neither", cloud.FleetResult{FleetID: "fleet-1"}, false, 0, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			result, ok := launchresult.FromFleet(spotIntent(2), test.result)
			if ok != test.ok {
				t.Fatalf("got ok %t, want %t", ok, test.ok)
			}
			if !ok {
				return
			}
			if err := result.Validate(); err != nil {
				t.Error(err)
			}
			var codes []string
			for _, r := range result.Refusals {
				codes = append(codes, r.Code)
			}
			if diff := cmp.Diff(test.codes, codes); diff != "" {
				t.Error(diff)
			}
			if !result.Spent || result.Wanted != 2 || result.Intent != "3f2a" || len(result.Instances) != test.instances {
				t.Errorf("unexpected result %+v", result)
			}
			for _, i := range result.Instances {
				if i.ImageID != "ami-arm" || i.Offering != spotOffering("m6g.large", "b") {
					t.Errorf("unexpected instance %+v", i)
				}
			}
		})
	}
}

func TestResultFromError(t *testing.T) {
	result := launchresult.FromError(spotIntent(2), fault.F("creating", fault.Denied, "no"))
	want := event.LaunchSettled{Intent: "3f2a", Wanted: 2, Refusals: []event.Refusal{{Code: "denied", Message: "creating: no"}}}
	if diff := cmp.Diff(want, result); diff != "" {
		t.Error(diff)
	}
	for code, blamed := range map[string][]event.Offering{
		"UnauthorizedOperation":                             nil,
		"AuthFailure.ServiceLinkedRoleCreationNotPermitted": {{CapacityType: cloud.Spot}},
		"MaxFleetCountExceeded":                             {spotOffering("m6g.large", "a"), spotOffering("m6g.large", "b"), spotOffering("m6i.large", "a")},
	} {
		got := launchresult.FromError(spotIntent(2), fault.E("creating", fault.Denied, &memcloud.Refusal{Code: code})).Refusals[0]
		if diff := cmp.Diff(blamed, got.Blamed); diff != "" || got.Code != code {
			t.Errorf("%s: %s %s", code, got.Code, diff)
		}
	}
	if err := result.Validate(); err != nil {
		t.Error(err)
	}
}

func TestResultFromInstances(t *testing.T) {
	for _, test := range []struct {
		name   string
		found  int
		wanted int
		spent  bool
	}{{"all", 2, 2, true}, {"some: EC2 may return others later", 1, 2, false}, {"more than wanted", 3, 3, true}} {
		var instances []cloud.Instance
		for range test.found {
			instances = append(instances, cloud.Instance{ID: "i-1", Type: "m6g.large", Zone: "b", CapacityType: cloud.Spot, ImageID: "ami-arm"})
		}
		result := launchresult.FromInstances(spotIntent(2), instances)
		if err := result.Validate(); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if result.Spent != test.spent || result.Wanted != test.wanted || len(result.Instances) != test.found {
			t.Errorf("%s: %+v", test.name, result)
		}
		if got := result.Instances[0]; got.Offering != spotOffering("m6g.large", "b") || got.ImageID != "ami-arm" {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
}

// Insufficient capacity in a placement group does not affect launches outside it. A full
// group accepts no instance type.
func TestUnavailableInPlacementGroups(t *testing.T) {
	placed := spotIntent(1)
	for i := range placed.Templates {
		placed.Templates[i].Placement = &cloud.Placement{Group: "near", GroupID: "pg-1"}
	}
	e := cloud.FleetError{Code: "InsufficientInstanceCapacity", InstanceType: "m6g.large", Zone: "b", Template: "t-arm"}
	other := placed
	other.Templates = slices.Clone(placed.Templates)
	other.Templates[1].Placement = &cloud.Placement{GroupID: "pg-2"}
	unnamed, second := e, e
	unnamed.Template, second.Template = "", "t-amd"
	full := e
	full.Message = "You've reached the limit of instances in this spread placement group."
	reserved := placed
	reserved.Fleet.CapacityType, reserved.Templates = cloud.Reserved, slices.Clone(placed.Templates)
	reserved.Templates[0].Reservation = &cloud.ReservationTarget{ID: "cr-1"}
	for _, test := range []struct {
		name   string
		intent launchspec.Intent
		from   cloud.FleetError
		blamed event.Offering
		group  string
	}{
		{"insufficient capacity in the group", placed, e, spotOffering("m6g.large", "b"), "pg-1"},
		{"EC2 names no template", placed, unnamed, spotOffering("m6g.large", "b"), "pg-1"},
		{"the group of the second template", other, second, spotOffering("m6g.large", "b"), "pg-2"},
		{"full, with a reservation", reserved, full, event.Offering{Zone: "b"}, "pg-1"},
		{"full", placed, full, event.Offering{Zone: "b"}, "pg-1"},
		{"the message of a full group without a group", spotIntent(1), full, spotOffering("m6g.large", "b"), ""},
	} {
		result, _ := launchresult.FromFleet(test.intent, cloud.FleetResult{Errors: []cloud.FleetError{test.from}})
		if r := result.Refusals[0]; r.PlacementGroup != test.group || !slices.Equal(r.Blamed, []event.Offering{test.blamed}) {
			t.Errorf("%s: %+v", test.name, r)
		}
	}
}

// Codes that operators know are labels of the metric. Others share one label.
func TestMetricCode(t *testing.T) {
	for code, want := range map[string]string{
		"InsufficientInstanceCapacity": "InsufficientInstanceCapacity", "UnauthorizedOperation": "UnauthorizedOperation", "TooManyCoffees": "other", "": "other",
	} {
		if got := launchresult.MetricCode(code); got != want {
			t.Errorf("the label of %q is %q, want %q", code, got, want)
		}
	}
}
