package cloudtest

import (
	"context"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

var faults = []behaviour{
	{"a denied call names its action", deniesCalls},
	{"a throttled call is fault.Throttled", throttlesCalls},
	{"a write without a response is fault.Unknown", losesResponses},
	{"a cancelled context has no effect", honoursContext},
}

// call is one call of the interfaces and the action that it needs.
type call struct {
	action string
	write  bool
	do     func(ctx context.Context, s Subject, ids []string, request cloud.FleetRequest) error
}

// anything is a selector that matches nothing.
var anything = []cloud.Selector{{Tags: map[string]string{"joist/absent": "*"}}}

var calls = []call{
	{"ec2:DescribeInstances", false, func(ctx context.Context, s Subject, ids []string, _ cloud.FleetRequest) error {
		_, err := s.DescribeInstances(ctx, cloud.InstanceFilter{IDs: ids})
		return err
	}},
	{"ec2:CreateLaunchTemplate", true, func(ctx context.Context, s Subject, _ []string, _ cloud.FleetRequest) error {
		return s.EnsureTemplate(ctx, s.template("joist-fault"))
	}},
	{"ec2:DescribeLaunchTemplates", false, func(ctx context.Context, s Subject, _ []string, _ cloud.FleetRequest) error {
		_, err := s.Templates(ctx, map[string]string{"joist/test": ""})
		return err
	}},
	{"ec2:DeleteLaunchTemplate", true, func(ctx context.Context, s Subject, _ []string, _ cloud.FleetRequest) error {
		return s.DeleteTemplate(ctx, "joist-fault")
	}},
	{"ec2:CreateFleet", true, func(ctx context.Context, s Subject, _ []string, request cloud.FleetRequest) error {
		_, err := s.CreateFleet(ctx, request)
		return err
	}},
	{"ec2:CreateTags", true, func(ctx context.Context, s Subject, ids []string, _ cloud.FleetRequest) error {
		return s.Tag(ctx, ids, map[string]string{"k": "v"})
	}},
	{"ec2:RebootInstances", true, func(ctx context.Context, s Subject, ids []string, _ cloud.FleetRequest) error {
		return s.Reboot(ctx, ids[0])
	}},
	{"ec2:TerminateInstances", true, func(ctx context.Context, s Subject, ids []string, _ cloud.FleetRequest) error {
		return s.Terminate(ctx, ids)
	}},
	{"ec2:DescribeSubnets", false, func(ctx context.Context, s Subject, _ []string, _ cloud.FleetRequest) error {
		_, err := s.DescribeSubnets(ctx, anything)
		return err
	}},
	{"ec2:DescribeSecurityGroups", false, func(ctx context.Context, s Subject, _ []string, _ cloud.FleetRequest) error {
		_, err := s.DescribeSecurityGroups(ctx, anything)
		return err
	}},
	{"ec2:DescribeCapacityReservations", false, func(ctx context.Context, s Subject, _ []string, _ cloud.FleetRequest) error {
		_, err := s.DescribeReservations(ctx)
		return err
	}},
	{"ec2:DescribePlacementGroups", false, func(ctx context.Context, s Subject, _ []string, _ cloud.FleetRequest) error {
		_, err := s.DescribePlacementGroups(ctx)
		return err
	}},
	{"ec2:DescribeImages", false, func(ctx context.Context, s Subject, _ []string, _ cloud.FleetRequest) error {
		_, err := s.DescribeImages(ctx, anything)
		return err
	}},
	{"ec2:DescribeInstanceStatus", false, func(ctx context.Context, s Subject, _ []string, _ cloud.FleetRequest) error {
		_, err := s.DescribeStatus(ctx)
		return err
	}},
	{"ec2:DescribeInstanceTypes", false, func(ctx context.Context, s Subject, _ []string, _ cloud.FleetRequest) error {
		_, err := s.InstanceTypes(ctx)
		return err
	}},
	{"ec2:DescribeInstanceTypeOfferings", false, func(ctx context.Context, s Subject, _ []string, _ cloud.FleetRequest) error {
		_, err := s.TypeOfferings(ctx)
		return err
	}},
	{"ec2:DescribeAvailabilityZones", false, func(ctx context.Context, s Subject, _ []string, _ cloud.FleetRequest) error {
		_, err := s.AvailabilityZones(ctx)
		return err
	}},
	{"ec2:DescribeSpotPriceHistory", false, func(ctx context.Context, s Subject, _ []string, _ cloud.FleetRequest) error {
		_, err := s.SpotPrices(ctx, time.Now())
		return err
	}},
	{"pricing:GetProducts", false, func(ctx context.Context, s Subject, _ []string, _ cloud.FleetRequest) error {
		_, err := s.OnDemandPrices(ctx, s.Region)
		return err
	}},
	{"arc-zonal-shift:GetManagedResource", false, func(ctx context.Context, s Subject, _ []string, _ cloud.FleetRequest) error {
		_, err := s.ZonalShifts(ctx, s.Cluster.ARN)
		return err
	}},
	{"ssm:GetParameter", false, func(ctx context.Context, s Subject, _ []string, _ cloud.FleetRequest) error {
		_, err := s.Parameter(ctx, s.ImageParameter)
		return err
	}},
	{"eks:DescribeCluster", false, func(ctx context.Context, s Subject, _ []string, _ cloud.FleetRequest) error {
		_, err := s.DescribeCluster(ctx, s.Cluster.Name)
		return err
	}},
	{"iam:ListInstanceProfiles", false, func(ctx context.Context, s Subject, _ []string, _ cloud.FleetRequest) error {
		_, err := s.ListProfiles(ctx, "/joist/")
		return err
	}},
	{"iam:CreateInstanceProfile", true, func(ctx context.Context, s Subject, _ []string, _ cloud.FleetRequest) error {
		return s.EnsureProfile(ctx, s.profile(s.Role))
	}},
	{"iam:DeleteInstanceProfile", true, func(ctx context.Context, s Subject, _ []string, _ cloud.FleetRequest) error {
		return s.DeleteProfile(ctx, s.profile("").Name)
	}},
}

// each makes the calls in order, with a fault injected by spoil, and then again without it, so that the next call
// finds its resources.
func each(t *testing.T, s Subject, spoil func(action string) (mend func()), which func(call) bool, want fault.Kind) {
	t.Helper()
	launched := s.launched(t, 1)
	request := s.request(t, t.Name()[:10], 1)
	for _, c := range calls {
		if which(c) {
			mend := spoil(c.action)
			err := c.do(context.Background(), s, launched, request)
			mend()
			if got := fault.KindOf(err); got != want {
				t.Errorf("%s: error kind %q (%v), want %q", c.action, got, err, want)
			}
		}
		if err := c.do(context.Background(), s, launched, request); err != nil {
			t.Errorf("%s after the fault: %v", c.action, err)
		}
	}
}

func always(call) bool { return true }

func deniesCalls(t *testing.T, s Subject) {
	need(t, s.Deny != nil, "Deny")
	each(t, s, s.Deny, always, fault.Denied)
}

// once converts a fault that affects one call and need not be removed.
func once(spoil func(action string)) func(string) func() {
	return func(action string) func() {
		spoil(action)
		return func() {}
	}
}

func throttlesCalls(t *testing.T, s Subject) {
	need(t, s.Throttle != nil, "Throttle")
	each(t, s, s.Throttle, always, fault.Throttled)
}

func losesResponses(t *testing.T, s Subject) {
	need(t, s.Lose != nil, "Lose")
	each(t, s, once(s.Lose), func(c call) bool { return c.write }, fault.Unknown)
}

func honoursContext(t *testing.T, s Subject) {
	request := s.request(t, "cancelled", 1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range calls {
		err := c.do(ctx, s, []string{noInstance}, request)
		if got := fault.KindOf(err); got != fault.Retry && got != fault.Unknown {
			t.Errorf("%s: error kind %q (%v)", c.action, got, err)
		}
	}
	s.wantCount(t, 0)
}
