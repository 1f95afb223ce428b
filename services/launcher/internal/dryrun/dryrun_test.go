package dryrun_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/launcher/internal/dryrun"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

func resolvedClass(edits ...func(*karpenter.EC2NodeClass)) *karpenter.EC2NodeClass {
	c := &karpenter.EC2NodeClass{}
	c.Name = "web"
	c.Spec.Tags = map[string]string{"team": "shop", "karpenter.k8s.aws/ec2nodeclass": "spoofed"}
	c.Status = karpenter.EC2NodeClassStatus{
		AMIs: []karpenter.AMI{{ID: "ami-1"}}, SecurityGroups: []karpenter.SecurityGroup{{ID: "sg-1"}}, InstanceProfile: "prod_1",
		Subnets: []karpenter.Subnet{{ID: "subnet-a", Zone: "a"}, {ID: "subnet-b", Zone: "b"}},
	}
	for _, edit := range edits {
		edit(c)
	}
	return c
}

// The calls have the tags of a launch and the resources of the class, which IAM policies
// check.
func TestBuildRequests(t *testing.T) {
	requests, err := dryrun.BuildRequests(resolvedClass(), "prod", event.NodeClassEnsure{})
	if err != nil {
		t.Fatal(err)
	}
	tags := map[string]string{
		"team": "shop", "karpenter.k8s.aws/ec2nodeclass": "web", "karpenter.sh/nodepool": "",
		"kubernetes.io/cluster/prod": "owned", "eks:eks-cluster-name": "prod",
	}
	for _, got := range []map[string]string{requests.Template.Tags, requests.Fleet.TagSets[0].Tags, requests.Runs[0].TagSets[0].Tags} {
		if diff := cmp.Diff(tags, got); diff != "" {
			t.Error(diff)
		}
	}
	if requests.Template.ImageID != "ami-1" || requests.Template.InstanceProfile != "prod_1" || !cmp.Equal(requests.Template.SecurityGroups, []string{"sg-1"}) {
		t.Errorf("unexpected template %+v", requests.Template)
	}
	if requests.Fleet.Count != 1 {
		t.Errorf("the fleet has %d instances", requests.Fleet.Count)
	}
	name := requests.Template.Name
	overrides := []cloud.Override{{InstanceType: "m5.large", SubnetID: "subnet-a", Zone: "a"}, {InstanceType: "m5.large", SubnetID: "subnet-b", Zone: "b"}}
	if diff := cmp.Diff([]cloud.FleetConfig{{Template: name, Overrides: overrides}}, requests.Fleet.Configs); diff != "" {
		t.Error(diff)
	}
	if len(requests.Runs) != 2 || requests.Runs[1].SubnetID != "subnet-b" || requests.Runs[1].Template != name || requests.Fleet.Token != "" {
		t.Errorf("unexpected runs %+v", requests.Runs)
	}
}

// The template and the runs have the volumes and the metadata options of a launch: a policy may deny volumes
// that are not encrypted, or instances without IMDSv2.
func TestDryRunHasVolumesAndMetadataOfALaunch(t *testing.T) {
	class := resolvedClass(func(c *karpenter.EC2NodeClass) {
		c.Spec.AMIFamily = new(karpenter.AMIFamilyAL2023)
		c.Spec.MetadataOptions = &karpenter.MetadataOptions{HTTPPutResponseHopLimit: new(int64(2))}
	})
	encrypted := []cloud.BlockDevice{{Device: "/dev/xvda", SizeGiB: 20, Type: "gp3", Encrypted: new(true)}}
	for region, want := range map[string]cloud.Metadata{
		"eu-west-1":     {Endpoint: "enabled", IPv6: "disabled", HopLimit: 2, Tokens: "required", Tags: "disabled"},
		"us-iso-east-1": {Endpoint: "enabled", HopLimit: 2, Tokens: "required", Tags: "disabled"},
	} {
		requests, err := dryrun.BuildRequests(class, "prod", event.NodeClassEnsure{Tags: map[string]string{corev1.LabelTopologyRegion: region}})
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range []cloud.Metadata{requests.Template.Metadata, requests.Runs[0].Metadata, requests.Runs[1].Metadata} {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("metadata options in %s: %s", region, diff)
			}
		}
		for _, got := range [][]cloud.BlockDevice{requests.Template.BlockDevices, requests.Runs[0].BlockDevices, requests.Runs[1].BlockDevices} {
			if diff := cmp.Diff(encrypted, got); diff != "" {
				t.Errorf("block devices in %s: %s", region, diff)
			}
		}
	}
}

// The dry runs have the tenancy of real launches.
func TestDryRunTenancy(t *testing.T) {
	for tenancy, want := range map[string]*cloud.Placement{"": nil, "dedicated": {Tenancy: "dedicated"}} {
		requests, err := dryrun.BuildRequests(resolvedClass(), "prod", event.NodeClassEnsure{Tenancy: tenancy})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, requests.Template.Placement); diff != "" {
			t.Errorf("%q: %s", tenancy, diff)
		}
	}
}

// The dry runs have the class's interfaces if the instance type can have them, and its
// security groups.
func TestDryRunInterfaces(t *testing.T) {
	ordinary := func(card, device int32) karpenter.NetworkInterface {
		return karpenter.NetworkInterface{NetworkCardIndex: card, DeviceIndex: device, InterfaceType: karpenter.InterfaceTypeInterface}
	}
	adapter := karpenter.NetworkInterface{DeviceIndex: 1, InterfaceType: karpenter.InterfaceTypeEFAOnly}
	one := []cloud.NetworkInterface{{}}
	for _, tt := range []struct {
		name       string
		interfaces []karpenter.NetworkInterface
		want       []cloud.NetworkInterface
	}{
		{"none", nil, one},
		{"two", []karpenter.NetworkInterface{ordinary(0, 0), ordinary(0, 1)}, []cloud.NetworkInterface{{Kind: "interface"}, {Device: 1, Kind: "interface"}}},
		{"on another card", []karpenter.NetworkInterface{ordinary(0, 0), ordinary(1, 1)}, one},
		{"an EFA", []karpenter.NetworkInterface{ordinary(0, 0), adapter}, one},
		{"three", []karpenter.NetworkInterface{ordinary(0, 0), ordinary(0, 1), ordinary(0, 2)},
			[]cloud.NetworkInterface{{Kind: "interface"}, {Device: 1, Kind: "interface"}, {Device: 2, Kind: "interface"}}},
		{"four", []karpenter.NetworkInterface{ordinary(0, 0), ordinary(0, 1), ordinary(0, 2), ordinary(0, 3)}, one},
	} {
		t.Run(tt.name, func(t *testing.T) {
			requests, err := dryrun.BuildRequests(resolvedClass(func(c *karpenter.EC2NodeClass) {
				c.Spec.NetworkInterfaces, c.Spec.AssociatePublicIPAddress = tt.interfaces, new(false)
			}), "prod", event.NodeClassEnsure{})
			if err != nil {
				t.Fatal(err)
			}
			if p := requests.Template.PublicIP; p == nil || *p || len(requests.Runs) != 2 {
				t.Errorf("unexpected requests %+v", requests)
			}
			for _, run := range requests.Runs {
				for _, got := range [][]cloud.NetworkInterface{run.Interfaces, requests.Template.Interfaces} {
					if diff := cmp.Diff(tt.want, got); diff != "" {
						t.Error(diff)
					}
				}
				if !cmp.Equal(run.SecurityGroups, []string{"sg-1"}) {
					t.Errorf("unexpected security groups %v", run.SecurityGroups)
				}
			}
		})
	}
}

func TestTemplateNamesAndTypes(t *testing.T) {
	name := func(edits ...func(*karpenter.EC2NodeClass)) (string, string) {
		requests, err := dryrun.BuildRequests(resolvedClass(edits...), "prod", event.NodeClassEnsure{})
		if err != nil {
			t.Fatal(err)
		}
		return requests.Template.Name, requests.Runs[0].InstanceType
	}
	first, amd := name()
	again, _ := name()
	other, arm := name(func(c *karpenter.EC2NodeClass) {
		c.Status.AMIs[0].Requirements = []corev1.NodeSelectorRequirement{{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"arm64"}}}
		c.Status.AMIs[0].ID = "ami-2"
	})
	if first != again || first == other || amd != "m5.large" || arm != "m6g.large" {
		t.Errorf("names %s, %s, %s; types %s, %s", first, again, other, amd, arm)
	}
}

// The instance type has the architecture that the AMI requires.
func TestDryRunArchitecture(t *testing.T) {
	require := func(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
	}
	for name, c := range map[string]struct {
		requirement corev1.NodeSelectorRequirement
		want        string
	}{
		"arm64":         {require(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "arm64"), "m6g.large"},
		"amd64":         {require(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "amd64"), "m5.large"},
		"not arm64":     {require(corev1.LabelArchStable, corev1.NodeSelectorOpNotIn, "arm64"), "m5.large"},
		"another label": {require("example.com/build", corev1.NodeSelectorOpIn, "arm64"), "m5.large"},
	} {
		requests, err := dryrun.BuildRequests(resolvedClass(func(c2 *karpenter.EC2NodeClass) {
			c2.Status.AMIs[0].Requirements = []corev1.NodeSelectorRequirement{c.requirement}
		}), "prod", event.NodeClassEnsure{})
		if err != nil {
			t.Fatal(err)
		}
		if got := requests.Runs[0].InstanceType; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// The instance type of the request is used for images of each architecture.
func TestDryRunHasTheTypeOfTheRequest(t *testing.T) {
	requests, err := dryrun.BuildRequests(resolvedClass(), "prod", event.NodeClassEnsure{InstanceType: "c7i.large"})
	if err != nil {
		t.Fatal(err)
	}
	if run, fleet := requests.Runs[0].InstanceType, requests.Fleet.Configs[0].Overrides[0].InstanceType; run != "c7i.large" || fleet != "c7i.large" {
		t.Errorf("the run has the type %s and the fleet %s", run, fleet)
	}
}

func TestUnresolvedClassIsInvalid(t *testing.T) {
	for name, edit := range map[string]func(*karpenter.EC2NodeClass){
		"images":  func(c *karpenter.EC2NodeClass) { c.Status.AMIs = nil },
		"groups":  func(c *karpenter.EC2NodeClass) { c.Status.SecurityGroups = nil },
		"subnets": func(c *karpenter.EC2NodeClass) { c.Status.Subnets = nil },
		"profile": func(c *karpenter.EC2NodeClass) { c.Status.InstanceProfile = "" },
		"family":  func(c *karpenter.EC2NodeClass) { c.Spec.AMISelectorTerms = []karpenter.AMISelectorTerm{{Alias: "x"}} },
	} {
		if _, err := dryrun.BuildRequests(resolvedClass(edit), "prod", event.NodeClassEnsure{}); !fault.Is(err, fault.Invalid) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}
