package ec2cloud

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

// refusing is an EC2 that knows one instance, and whose error for unknown ids does not name them.
type refusing struct {
	known string
	calls [][]string
}

func (r *refusing) Do(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, key := range []string{"InstanceId.1", "InstanceId.2", "InstanceId.3"} {
		if id := form.Get(key); id != "" {
			ids = append(ids, id)
		}
	}
	r.calls = append(r.calls, ids)
	status, text := http.StatusOK, `<TerminateInstancesResponse/>`
	if len(ids) != 1 || ids[0] != r.known {
		status, text = http.StatusBadRequest,
			`<Response><Errors><Error><Code>InvalidInstanceID.NotFound</Code><Message>no</Message></Error></Errors></Response>`
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewBufferString(text))}, nil
}

func TestTerminateWithoutInstanceInError(t *testing.T) {
	server := &refusing{known: "i-2"}
	c := New(aws.Config{Region: "us-west-2", HTTPClient: server, Credentials: aws.AnonymousCredentials{}})
	if err := c.Terminate(t.Context(), []string{"i-1", "i-2", "i-3"}); err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"i-1", "i-2", "i-3"}, {"i-1"}, {"i-2"}, {"i-3"}}
	if diff := cmp.Diff(want, server.calls); diff != "" {
		t.Error(diff)
	}
}

func TestOrigin(t *testing.T) {
	request := cloud.FleetRequest{Configs: []cloud.FleetConfig{
		{Template: "amd", Overrides: []cloud.Override{{InstanceType: "a", SubnetID: "s1", Zone: "z1", ImageID: "i1"}}},
		{Template: "arm", Overrides: []cloud.Override{
			{InstanceType: "b", SubnetID: "s1", Zone: "z1"}, {InstanceType: "b", SubnetID: "s2", Zone: "z2"},
		}},
	}}
	said := func(instanceType, subnet, zone, template string) *types.LaunchTemplateAndOverridesResponse {
		return &types.LaunchTemplateAndOverridesResponse{
			Overrides: &types.FleetLaunchTemplateOverrides{
				InstanceType: types.InstanceType(instanceType), SubnetId: optional(subnet), AvailabilityZone: optional(zone),
			},
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecification{LaunchTemplateName: optional(template)},
		}
	}
	for _, test := range []struct {
		name                 string
		answer               *types.LaunchTemplateAndOverridesResponse
		zone, subnet, origin string
	}{
		{"whole", said("b", "s2", "z2", "arm"), "z2", "s2", "arm"},
		{"override without a zone", said("b", "s2", "", "arm"), "z2", "s2", "arm"},
		{"override without a template", said("b", "s1", "z1", ""), "z1", "s1", "arm"},
		{"override without zone and template", said("a", "s1", "", ""), "z1", "s1", "amd"},
		{"override of another template", said("c", "s1", "", ""), "", "s1", ""},
		{"no override", nil, "", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := origin(request, test.answer)
			if got.Zone != test.zone || got.SubnetID != test.subnet || got.template != test.origin {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestImpaired(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	earlier, later := now.Add(-time.Hour), now.Add(time.Minute)
	failed := func(since ...*time.Time) *types.InstanceStatusSummary {
		out := &types.InstanceStatusSummary{Status: types.SummaryStatusImpaired}
		for _, at := range since {
			out.Details = append(out.Details, types.InstanceStatusDetails{ImpairedSince: at})
		}
		return out
	}
	passed := &types.InstanceStatusSummary{Status: types.SummaryStatusOk, Details: []types.InstanceStatusDetails{{ImpairedSince: &earlier}}}
	for _, test := range []struct {
		name      string
		summaries []*types.InstanceStatusSummary
		want      time.Time
		undated   bool
	}{
		{"no status checks", []*types.InstanceStatusSummary{nil, nil}, time.Time{}, false},
		{"all checks passed", []*types.InstanceStatusSummary{passed, passed}, time.Time{}, false},
		{"system check failed", []*types.InstanceStatusSummary{passed, failed(&later)}, later, false},
		{"both", []*types.InstanceStatusSummary{failed(&later), failed(&later, &earlier)}, earlier, false},
		{"failed check without a time", []*types.InstanceStatusSummary{failed(nil)}, time.Time{}, true},
		{"one failed check without a time", []*types.InstanceStatusSummary{failed(nil), failed(&later)}, later, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, undated := impaired(test.summaries...); !got.Equal(test.want) || undated != test.undated {
				t.Errorf("impaired since %v, undated %t, want %v, %t", got, undated, test.want, test.undated)
			}
		})
	}
}

func TestEndedEventsAreDropped(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	event := func(code types.EventCode, text string) types.InstanceStatusEvent {
		return types.InstanceStatusEvent{Code: code, Description: aws.String(text), NotBefore: &at}
	}
	got := pending([]types.InstanceStatusEvent{
		event(types.EventCodeInstanceReboot, "[Completed] reboot"),
		event(types.EventCodeInstanceRetirement, "retirement"),
		event(types.EventCodeSystemReboot, "[Canceled] reboot"),
	})
	want := []cloud.ScheduledEvent{{Code: "instance-retirement", NotBefore: at}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestQueries(t *testing.T) {
	var many []cloud.Selector
	for range filterValues + 1 {
		many = append(many, cloud.Selector{ID: "x"})
	}
	available := filter("state", "available")
	for _, test := range []struct {
		name      string
		selectors []cloud.Selector
		common    []types.Filter
		want      string
	}{
		{"nothing", []cloud.Selector{{}}, nil, ""},
		{"IDs share one call", []cloud.Selector{{ID: "a"}, {ID: "b"}}, nil, "id=a,b"},
		{"at most 200 values in a call", many, nil, "id=" + strings.Repeat("x,", filterValues-1) + "x|id=x"},
		{"at most 200 values in all filters of a call", many, []types.Filter{available},
			"id=" + strings.Repeat("x,", filterValues-2) + "x;state=available|id=x,x;state=available"},
		{"everything", []cloud.Selector{{Any: true}}, []types.Filter{available}, "state=available"},
		{"each tag selector is one call", []cloud.Selector{
			{Tags: map[string]string{"k": "*", "j": "v*"}}, {ID: "a", Tags: map[string]string{"k": "v"}}, {Name: "n?"},
		}, []types.Filter{available}, "tag:j=v*;tag-key=k;state=available|id=a;tag:k=v;state=available|name=n?;state=available"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var calls []string
			for _, q := range queries(test.selectors, "id", "name", test.common...) {
				var filters []string
				for _, f := range q.filters {
					filters = append(filters, aws.ToString(f.Name)+"="+strings.Join(f.Values, ","))
				}
				calls = append(calls, strings.Join(filters, ";"))
			}
			if got := strings.Join(calls, "|"); got != test.want {
				t.Errorf("queries %s, want %s", got, test.want)
			}
		})
	}
}

// Only a name without an owner is restricted to the account's and Amazon's images. An image of another account may have the
// account's tags.
func TestImageOwners(t *testing.T) {
	for _, tt := range []struct {
		name     string
		selector cloud.Selector
		want     []string
	}{
		{"a name", cloud.Selector{Name: "golden-*"}, []string{"self", "amazon"}},
		{"a name and tags", cloud.Selector{Name: "golden-*", Tags: map[string]string{"golden": "true"}}, []string{"self", "amazon"}},
		{"a name and an owner", cloud.Selector{Name: "golden-*", Owner: "111122223333"}, []string{"111122223333"}},
		{"tags", cloud.Selector{Tags: map[string]string{"golden": "true"}}, nil},
		{"an id", cloud.Selector{ID: "ami-1"}, nil},
	} {
		for _, q := range queries([]cloud.Selector{tt.selector}, "image-id", "name") {
			if diff := cmp.Diff(tt.want, owners(q)); diff != "" {
				t.Errorf("%s: %s", tt.name, diff)
			}
		}
	}
}

// EC2 also puts on-demand instances into open reservations with their type; these are not reserved capacity.
func TestCapacityTypeOfInstances(t *testing.T) {
	reservation := aws.String("cr-1")
	prefers := func(p types.CapacityReservationPreference) *types.CapacityReservationSpecificationResponse {
		return &types.CapacityReservationSpecificationResponse{CapacityReservationPreference: p}
	}
	for _, tt := range []struct {
		name          string
		instance      types.Instance
		want, reserve string
	}{
		{"on-demand", types.Instance{CapacityReservationSpecification: prefers(types.CapacityReservationPreferenceOpen)}, cloud.OnDemand, ""},
		{"on-demand in an open reservation", types.Instance{CapacityReservationId: reservation, CapacityReservationSpecification: prefers(types.CapacityReservationPreferenceOpen)}, cloud.OnDemand, ""},
		{"launched into a reservation", types.Instance{CapacityReservationId: reservation, CapacityReservationSpecification: prefers(types.CapacityReservationPreferenceCapacityReservationsOnly)}, cloud.Reserved, "cr-1"},
		{"a capacity block", types.Instance{CapacityReservationId: reservation, InstanceLifecycle: types.InstanceLifecycleTypeCapacityBlock}, cloud.Reserved, "cr-1"},
		{"spot", types.Instance{InstanceLifecycle: types.InstanceLifecycleTypeSpot}, cloud.Spot, ""},
	} {
		if got := fromInstance(tt.instance); got.CapacityType != tt.want || got.Reservation != tt.reserve {
			t.Errorf("%s: capacity type %s in reservation %q, want %s in %q", tt.name, got.CapacityType, got.Reservation, tt.want, tt.reserve)
		}
	}
}
