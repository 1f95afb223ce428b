package wire

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws"
	fakeec2 "github.com/joist-autoscaler/joist/integration/environment/fakeaws/ec2"
	fakeeks "github.com/joist-autoscaler/joist/integration/environment/fakeaws/eks"
	fakeiam "github.com/joist-autoscaler/joist/integration/environment/fakeaws/iam"
	fakepricing "github.com/joist-autoscaler/joist/integration/environment/fakeaws/pricing"
	fakessm "github.com/joist-autoscaler/joist/integration/environment/fakeaws/ssm"
	fakests "github.com/joist-autoscaler/joist/integration/environment/fakeaws/sts"
	fakeshift "github.com/joist-autoscaler/joist/integration/environment/fakeaws/zonalshift"
	"github.com/joist-autoscaler/joist/services/launcher/launchertest"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/cloudtest"
	"github.com/joist-autoscaler/joist/shared/cloud/ec2cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/ekscluster"
	"github.com/joist-autoscaler/joist/shared/cloud/iamprofile"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cloud/pricing"
	"github.com/joist-autoscaler/joist/shared/cloud/ssmparameters"
	"github.com/joist-autoscaler/joist/shared/cloud/zonalshift"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// account has all adapters of package cloud, connected to one server.
type account struct {
	ec2cloud.Cloud
	ssmparameters.Parameters
	ekscluster.Clusters
	iamprofile.Profiles
	pricing.Prices
	zonalshift.Shifts
}

// site is an in-memory account behind a server.
type site struct {
	account
	memcloud.World
	model  *memcloud.Cloud
	server *fakeaws.Server
	clock  *clock
}

func startCloud(t *testing.T) site {
	t.Helper()
	return startCloudWith(t, catalog.Catalogue{})
}

// startCloudWith starts an account that offers the catalogue's instance types.
func startCloudWith(t *testing.T, catalogue catalog.Catalogue) site {
	t.Helper()
	c := &clock{}
	model := memcloud.New(memcloud.Options{Now: c.Now, Seed: 1, Region: fakeaws.Region, Catalogue: catalogue})
	server := fakeaws.Start(t, fakeaws.Options{More: []fakeaws.Service{
		fakeec2.New(model), fakeiam.New(model), fakessm.New(model), fakeeks.New(model), fakests.New(model),
		fakepricing.New(model), fakeshift.New(model),
	}})
	config := productionConfig(t, server)
	return site{
		account: account{
			ec2cloud.New(attemptOnce(config)), ssmparameters.New(config), ekscluster.New(config), iamprofile.New(config),
			pricing.New(config), zonalshift.New(config),
		},
		World: model.Furnish("web"), model: model, server: server, clock: c,
	}
}

// attemptOnce returns the configuration of the launcher's EC2 client, whose limiter sees each throttled call.
func attemptOnce(config aws.Config) aws.Config {
	config.RetryMaxAttempts = 1
	return config
}

// testType is an instance type of the model's small catalogue.
const testType = "m6i.large"

// TestCloudSuite runs the conformance suite on the adapters of EC2, SSM, EKS and IAM with the attempts of the launcher.
func TestCloudSuite(t *testing.T) { testCloudSuite(t, 1) }

// TestCloudSuiteWithRetries does the same with the attempts of catalog and interruption. They write nothing to EC2.
func TestCloudSuiteWithRetries(t *testing.T) { testCloudSuite(t, retry.DefaultMaxAttempts) }

func testCloudSuite(t *testing.T, ec2Attempts int) {
	cloudtest.Run(t, func(t *testing.T) cloudtest.Subject {
		s := startCloud(t)
		if ec2Attempts > 1 {
			s.Cloud = ec2cloud.New(productionConfig(t, s.server))
		}
		s.model.AddRole("other")
		image := s.model.AddImage(cloud.Image{
			Name: "joist-test-1", Arch: "amd64", Tags: map[string]string{"joist/image": "yes"},
			Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		})
		s.model.SetParameter("/joist/image", image.ID)
		reservations, groups := cloudtest.AddPlacements(s.model, testType, s.Subnets[0].Zone, s.clock.Now())
		return cloudtest.Subject{
			Cloud: s.account,
			World: cloudtest.World{
				Region: fakeaws.Region, Cluster: s.Cluster, ImageParameter: "/joist/image", Subnets: s.Subnets, SecurityGroup: s.SecurityGroup,
				TagKey: "karpenter.sh/discovery", TagValue: "web", Image: image, Type: testType,
				Reservations: reservations, PlacementGroups: groups,
				Role: s.Role, OtherRole: "other",
			},
			Features: hands(s, ec2Attempts),
		}
	})
}

// hands returns the functions that change the account. A fault affects all attempts of a call; ec2cloud makes one for
// CreateFleet.
func hands(s site, ec2Attempts int) cloudtest.Features {
	all := func(do func(memcloud.Action)) func(string) {
		return func(action string) {
			attempts := retry.DefaultMaxAttempts
			switch {
			case action == "ec2:CreateFleet":
				attempts = 1
			case action == "ec2:DescribeInstanceStatus":
				attempts = 3 * ec2Attempts // The adapter makes three calls at the same time.
			case strings.HasPrefix(action, "ec2:"):
				attempts = ec2Attempts
			}
			for range attempts {
				do(memcloud.Action(action))
			}
		}
	}
	throttle := all(func(action memcloud.Action) {
		s.model.Refuse(action, fault.Throttled, "RequestLimitExceeded", "Request limit exceeded.")
	})
	f := cloudtest.Features{
		Wait: s.clock.Advance,
		Leave: func(zone string, n int) {
			s.model.SetCapacity(event.Offering{InstanceType: testType, Zone: zone, CapacityType: cloud.OnDemand}, n)
		},
		Deny: func(action string) func() {
			s.model.Deny(memcloud.Action(action))
			return func() { s.model.Allow(memcloud.Action(action)) }
		},
		Throttle: func(action string) func() {
			throttle(action)
			return func() { s.model.EndFaults(memcloud.Action(action)) } // The adapter cancels its other calls after the first error.
		},
		Lose:   all(s.model.LoseAnswer),
		Lag:    func(d time.Duration) { s.model.SetFaults(memcloud.Faults{Lag: d}) },
		Impair: s.model.Impair,
		Plan:   s.model.Plan,
		Shift:  cloudtest.Shifter(s.model.Shift, s.clock.Now),
	}
	if ec2Attempts > 1 {
		f.Lose = nil
	}
	return f
}

// TestTemplateOnTheWire sends every field of a launch template, and checks what the
// server received.
func TestTemplateOnTheWire(t *testing.T) {
	for _, test := range []struct {
		name     string
		template cloud.Template
	}{
		{"with security groups", cloud.Template{
			SecurityGroups: []string{"sg-1", "sg-2"},
			BlockDevices:   []cloud.BlockDevice{{Device: "/dev/xvda", SizeGiB: 20, Type: "gp3"}},
		}},
		{"with one network interface", cloud.Template{
			SecurityGroups: []string{"sg-1"}, PublicIP: new(false), PrefixCount: new(int32(2)),
			Connections: &cloud.ConnectionTracking{TCPEstablished: new(int32(60)), UDPStream: new(int32(120)), UDP: new(int32(30))},
		}},
		{"with several network interfaces", cloud.Template{
			SecurityGroups: []string{"sg-1"},
			Interfaces:     []cloud.NetworkInterface{{Kind: "efa"}, {Card: 1, Device: 1, Kind: "efa-only"}},
		}},
		{"with all other fields", cloud.Template{
			InstanceProfile: "web-node", Monitoring: true,
			BlockDevices: []cloud.BlockDevice{{
				Device: "/dev/xvda", SizeGiB: 1, Type: "io2", IOPS: 2, ThroughputMiBps: 3, Encrypted: new(true), KMSKey: "key",
				Snapshot: "snap", DeleteOnTermination: new(false), InitializationRate: 4,
			}, {Device: "/dev/xvdb", SizeGiB: 5, Type: "gp3", DeleteOnTermination: new(true)}},
			CPU:         &cloud.CPUOptions{NestedVirtualization: "enabled"},
			Enclaves:    true,
			Placement:   &cloud.Placement{Group: "g", Partition: 2, Tenancy: "dedicated"},
			Reservation: &cloud.ReservationTarget{ID: "cr-1", Preference: "capacity-reservations-only"},
			PrivateDNS:  &cloud.PrivateDNSOptions{HostnameType: "resource-name"},
			TagSets: []cloud.TagSet{
				{Resource: "instance", Tags: map[string]string{"a": "1", "b": "é & <x>"}},
				{Resource: "volume", Tags: map[string]string{"a": "2"}},
			},
			Tags: map[string]string{"owner": "joist"},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := startCloud(t)
			want := test.template
			want.Name, want.ImageID, want.UserData = "karpenter.k8s.aws/1", "ami-1", "#!/bin/sh\necho ü\n"
			want.Metadata = cloud.Metadata{Endpoint: "enabled", IPv6: "disabled", HopLimit: 1, Tokens: "required", Tags: "enabled"}
			if err := s.EnsureTemplate(t.Context(), want); err != nil {
				t.Fatal(err)
			}
			got, ok := s.model.Template(want.Name)
			if !ok {
				t.Fatal("the template did not arrive")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// fleetOf requests one instance of the type in all subnets.
func (s site) fleetOf(t *testing.T, template cloud.Template) cloud.FleetRequest {
	t.Helper()
	template.Name, template.ImageID = "joist-wire", s.ImageAMD64.ID
	if err := s.EnsureTemplate(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	config := cloud.FleetConfig{Template: template.Name}
	for _, subnet := range s.Subnets {
		config.Overrides = append(config.Overrides,
			cloud.Override{InstanceType: testType, SubnetID: subnet.ID, Zone: subnet.Zone})
	}
	return cloud.FleetRequest{
		Token: "token", Count: 1, CapacityType: cloud.OnDemand, Strategy: "lowest-price", Configs: []cloud.FleetConfig{config},
	}
}

// TestFleetIsTriedOnce checks that the adapter does not retry CreateFleet where the SDK
// would: only the caller may.
func TestFleetIsTriedOnce(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(*memcloud.Cloud)
		want  fault.Kind
	}{
		{"throttled", func(c *memcloud.Cloud) {
			c.Refuse(memcloud.CreateFleet, fault.Throttled, "RequestLimitExceeded", "Request limit exceeded.")
		}, fault.Throttled},
		{"lost", func(c *memcloud.Cloud) { c.LoseAnswer(memcloud.CreateFleet) }, fault.Unknown},
		{"failed", func(c *memcloud.Cloud) {
			c.Refuse(memcloud.CreateFleet, fault.Retry, "InternalError", "An internal error has occurred.")
		}, fault.Unknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := startCloud(t)
			// With the SDK's retries, as in main.
			ec2 := ec2cloud.New(s.server.Config())
			request := s.fleetOf(t, cloud.Template{})
			test.spoil(s.model)
			_, err := ec2.CreateFleet(t.Context(), request)
			if got := fault.KindOf(err); got != test.want {
				t.Errorf("got kind %q (%v), want %q", got, err, test.want)
			}
			if n := s.model.Counts()[memcloud.CreateFleet].Calls; n != 1 {
				t.Errorf("%d calls arrived", n)
			}
		})
	}
}

// TestReservationOnTheWire checks that plain reservations are on-demand capacity in a
// fleet.
func TestReservationOnTheWire(t *testing.T) {
	s := startCloud(t)
	reserved := event.Offering{InstanceType: testType, Zone: s.Subnets[0].Zone, CapacityType: cloud.Reserved}
	s.model.SetCapacity(reserved, 1)
	request := s.fleetOf(t, cloud.Template{Reservation: &cloud.ReservationTarget{ID: "cr-1"}})
	request.CapacityType = cloud.Reserved
	result, err := s.CreateFleet(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Instances) != 1 || result.Instances[0].CapacityType != cloud.Reserved {
		t.Fatalf("got %+v", result)
	}
	found, err := s.DescribeInstances(t.Context(), cloud.InstanceFilter{IDs: result.Instances[0].IDs})
	if err != nil || len(found) != 1 || found[0].CapacityType != cloud.Reserved {
		t.Errorf("described %+v, %v", found, err)
	}
}

// TestPlaceOnTheWire checks that a described instance has what it was launched with, so
// that drift can be detected.
func TestPlaceOnTheWire(t *testing.T) {
	s := startCloud(t)
	securityGroup := s.model.AddSecurityGroup(cloud.SecurityGroup{Name: "nodes"})
	group := s.model.AddPlacementGroup(cloud.PlacementGroup{Name: "near", Strategy: "cluster"})
	s.model.SetCapacity(event.Offering{InstanceType: testType, Zone: s.Subnets[0].Zone, CapacityType: cloud.Reserved}, 1)
	request := s.fleetOf(t, cloud.Template{
		SecurityGroups: []string{securityGroup.ID}, Placement: &cloud.Placement{Group: "near"}, Reservation: &cloud.ReservationTarget{ID: "cr-1"},
	})
	request.CapacityType = cloud.Reserved
	result, err := s.CreateFleet(t.Context(), request)
	if err != nil || len(result.Instances) != 1 {
		t.Fatalf("launched %+v, %v", result, err)
	}
	found, err := s.DescribeInstances(t.Context(), cloud.InstanceFilter{IDs: result.Instances[0].IDs})
	if err != nil || len(found) != 1 {
		t.Fatalf("described %+v, %v", found, err)
	}
	i := found[0]
	if i.SubnetID != s.Subnets[0].ID || !slices.Equal(i.SecurityGroups, []string{securityGroup.ID}) || i.Reservation != "cr-1" ||
		i.PlacementGroup != "near" || i.PlacementGroupID != group.ID {
		t.Errorf("described %+v", i)
	}
}

func TestDenialOnTheWireNamesTheAction(t *testing.T) {
	s := startCloud(t)
	request := s.fleetOf(t, cloud.Template{})
	s.model.Refuse(memcloud.CreateFleet, fault.Denied, "UnauthorizedOperation",
		"User: arn:aws:sts::1:assumed-role/x/y is not authorized to perform: iam:PassRole on resource: z")
	_, err := s.CreateFleet(t.Context(), request)
	const want = "allow iam:PassRole in the IAM policy of this service's role (ec2:CreateFleet needs it too); " +
		"also look for a service control policy or permissions boundary that denies it"
	if got := fault.FindHint(err); got != want {
		t.Errorf("got hint %q of %v", got, err)
	}
}

func TestCallerIdentity(t *testing.T) {
	s := startCloud(t)
	out, err := sts.NewFromConfig(s.server.Config()).GetCallerIdentity(context.Background(), &sts.GetCallerIdentityInput{})
	if err != nil {
		t.Fatal(err)
	}
	if *out.Account != s.model.Account() {
		t.Errorf("got account %s", *out.Account)
	}
}

// TestServicesDoNotOverlap checks that exactly one service matches each request, in any
// order.
func TestServicesDoNotOverlap(t *testing.T) {
	model := memcloud.New(memcloud.Options{Now: time.Now})
	services := map[string]fakeaws.Service{
		"ec2": fakeec2.New(model), "iam": fakeiam.New(model), "sts": fakests.New(model),
		"ssm": fakessm.New(model), "eks": fakeeks.New(model), "pricing": fakepricing.New(model), "shifts": fakeshift.New(model),
	}
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	for _, test := range []struct {
		name, method, path, body string
		header                   http.Header
		want                     string
	}{
		{"EC2", "POST", "/", "Action=DescribeInstances&Version=2016-11-15", form, "ec2"},
		{"IAM", "POST", "/", "Action=GetInstanceProfile&Version=2010-05-08", form, "iam"},
		{"STS", "POST", "/", "Action=GetCallerIdentity&Version=2011-06-15", form, "sts"},
		{"SSM", "POST", "/", "{}", http.Header{"X-Amz-Target": {"AmazonSSM.GetParameter"}}, "ssm"},
		{"EKS", "GET", "/clusters/web", "", http.Header{"Authorization": {"x/eks/aws4_request, y"}}, "eks"},
		{"prices", "POST", "/", "{}", http.Header{"X-Amz-Target": {"AWSPriceListService.GetProducts"}}, "pricing"},
		{"shifts", "GET", "/managedresources/arn%3Aaws", "", http.Header{"Authorization": {"x/arc-zonal-shift/aws4_request, y"}}, "shifts"},
		{"an object", "GET", "/clusters/web", "", http.Header{"Authorization": {"x/s3/aws4_request, y"}}, ""},
		{"SQS", "POST", "/", "{}", http.Header{"X-Amz-Target": {"AmazonSQS.SendMessage"}}, ""},
	} {
		request, err := http.NewRequestWithContext(t.Context(), test.method, "http://localhost"+test.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = test.header
		for name, service := range services {
			if got := service.Match(request, []byte(test.body)); got != (name == test.want) {
				t.Errorf("%s: %s matches: %v", test.name, name, got)
			}
		}
	}
}

// TestLauncherExactlyOnce launches over HTTP, with the SDK's retries as in main: errors
// inside a 200 response, lost responses and token mismatches have EC2's formats.
func TestLauncherExactlyOnce(t *testing.T) {
	launchertest.Run(t, func(t *testing.T) launchertest.Environment {
		s := startCloud(t)
		return launchertest.Environment{EC2: s.Cloud, Model: s.model, World: s.World, Now: s.clock.Now, AdvanceClock: s.clock.Advance}
	})
}
