package launchspec_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/launchspec/userdata"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// world is a batch and its catalogue.
type world struct {
	batch planning.Batch
	cat   catalog.Catalogue
}

func (w *world) class() *karpenter.EC2NodeClass { return &w.batch.Snapshot.NodeClasses[0] }
func (w *world) pool() *karpenter.NodePool      { return &w.batch.Snapshot.NodePools[0] }

// require replaces the pool's requirements.
func (w *world) require(requirements ...karpenter.NodeSelectorRequirementWithMinValues) {
	w.pool().Spec.Template.Spec.Requirements = requirements
}

func in(key string, values ...string) karpenter.NodeSelectorRequirementWithMinValues {
	return karpenter.NodeSelectorRequirementWithMinValues{Key: key, Operator: karpenter.NodeSelectorOpIn, Values: values}
}

func newWorld(pods ...planning.PodClass) *world {
	return &world{planningtest.NewBatch(pods...), planningtest.NewCatalogue()}
}

func (w *world) build(t *testing.T) launchspec.Built {
	t.Helper()
	ref, _, err := blob.Encode(planning.BatchKind, w.batch)
	if err != nil {
		t.Fatal(err)
	}
	built, err := launchspec.Build(w.batch, ref, solver.Solve(w.batch, w.cat), w.cat)
	if err != nil {
		t.Fatal(err)
	}
	if len(built.Plan.Unplaced) > 0 {
		t.Fatalf("unplaced pods: %+v", built.Plan.Unplaced)
	}
	verify(t, built, w.batch.Snapshot, w.cat)
	return built
}

// request is the request to EC2 for an intent, with user data split into lines.
type request struct {
	Templates []shown            `json:"templates"`
	Fleet     cloud.FleetRequest `json:"fleet"`
}

type shown struct {
	cloud.Template
	UserData []string `json:"userData"`
}

func show(t *testing.T, name string, intent launchspec.Intent) {
	t.Helper()
	out := request{Fleet: intent.Fleet}
	for _, template := range intent.Templates {
		out.Templates = append(out.Templates, shown{template, strings.Split(strings.ReplaceAll(template.UserData, "\r\n", "\n"), "\n")})
	}
	golden(t, name, text(t, out))
}

// enrich sets every field of an EC2NodeClass.
func enrich(class *karpenter.EC2NodeClass) {
	s := &class.Spec
	s.Tags = map[string]string{"Env": "prd", "Name": "web", "karpenter.sh/discovery": "demo"}
	s.DetailedMonitoring, s.AssociatePublicIPAddress, s.IPPrefixCount = new(true), new(true), new(int32(2))
	s.Context, s.CPUOptions = new("ctx-1"), &karpenter.CPUOptions{NestedVirtualization: new("enabled")}
	s.ConnectionTracking = &karpenter.ConnectionTracking{TCPEstablishedTimeout: new(int32(600)), UDPStreamTimeout: new(int32(90)), UDPTimeout: new(int32(45))}
	s.PlacementGroupSelector = &karpenter.PlacementGroupSelector{Name: new("tight")}
	s.InstanceStorePolicy = new(karpenter.InstanceStorePolicyRAID0)
	s.MetadataOptions = &karpenter.MetadataOptions{
		HTTPEndpoint: new("enabled"), HTTPProtocolIPv6: new("enabled"), HTTPPutResponseHopLimit: new(int64(2)), HTTPTokens: new("optional"),
	}
	s.BlockDeviceMappings = []karpenter.BlockDeviceMapping{
		{DeviceName: new("/dev/xvda"), RootVolume: true, EBS: &karpenter.BlockDevice{
			VolumeSize: new(resource.MustParse("100G")), VolumeType: new("gp3"), IOPS: new(int64(4000)), Throughput: new(int64(250)),
			Encrypted: new(true), KMSKeyID: new("alias/disks"), DeleteOnTermination: new(true),
		}},
		{DeviceName: new("/dev/xvdb"), EBS: &karpenter.BlockDevice{
			SnapshotID: new("snap-1"), VolumeInitializationRate: new(int32(200)), DeleteOnTermination: new(false),
		}},
	}
	s.NetworkInterfaces = []karpenter.NetworkInterface{
		{InterfaceType: karpenter.InterfaceTypeInterface}, {NetworkCardIndex: 0, DeviceIndex: 1, InterfaceType: karpenter.InterfaceTypeEFAOnly},
	}
	s.EnclaveOptions = &karpenter.EnclaveOptions{Enabled: true}
	if err := yaml.Unmarshal([]byte(`
clusterDNS: [10.0.1.100]
maxPods: 20
podsPerCore: 20
systemReserved: {cpu: 100m, memory: 100Mi, ephemeral-storage: 1Gi}
kubeReserved: {cpu: 200m, memory: 100Mi, ephemeral-storage: 3Gi}
evictionHard: {memory.available: 5%, nodefs.available: 10%, nodefs.inodesFree: 10%}
evictionSoft: {memory.available: 500Mi}
evictionSoftGracePeriod: {memory.available: 1m0s}
evictionMaxPodGracePeriod: 60
imageGCHighThresholdPercent: 85
imageGCLowThresholdPercent: 80
cpuCFSQuota: true
`), &s.Kubelet); err != nil {
		panic(err) // the text above is wrong
	}
}

// TestFamilyGoldens compares the complete request for each family with golden files: for the default
// objects, and for a class with every field set.
func TestFamilyGoldens(t *testing.T) {
	for family, custom := range map[string]string{
		karpenter.AMIFamilyAL2: "#!/bin/sh\necho hello\n", karpenter.AMIFamilyAL2023: "#!/bin/sh\necho hello\n",
		karpenter.AMIFamilyBottlerocket: "[settings.kernel]\nlockdown = 'integrity'\n", karpenter.AMIFamilyCustom: "anything at all",
		karpenter.AMIFamilyWindows2019: "Write-Host hello", karpenter.AMIFamilyWindows2022: "Write-Host hello", karpenter.AMIFamilyWindows2025: "Write-Host hello",
	} {
		for _, kind := range []string{"seed", "rich"} {
			t.Run(family+" "+kind, func(t *testing.T) {
				w := newWorld(planningtest.NewPods("inflate", 1, "1", "1Gi"))
				w.class().Spec.AMIFamily = &family
				if strings.HasPrefix(family, "Windows") {
					w.require(in(karpenter.LabelInstanceFamily, "t3"), in(karpenter.LabelInstanceCPU, "2"), in(corev1.LabelOSStable, "windows"))
				}
				if kind == "rich" {
					enrich(w.class())
					for i := range w.cat.Types {
						w.cat.Types[i].Network.EFAs = 1 // The class lists one EFA.
						w.cat.Types[i].Enclaves, w.cat.Types[i].NestedVirtualization = true, true
					}
					w.class().Spec.UserData = &custom
				}
				built := w.build(t)
				show(t, strings.ToLower(family)+"-"+kind+".json", built.Intents[0])
				for _, template := range built.Intents[0].Templates {
					if family == karpenter.AMIFamilyCustom {
						break
					}
					if _, err := userdata.Parse(template.UserData); err != nil {
						t.Errorf("no node can join with this user data: %v", err)
					}
				}
			})
		}
	}
}

// reserve gives the class reservations for types in the default zone, and adds their counts to the
// catalogue.
func (w *world) reserve(reservations ...karpenter.CapacityReservation) {
	w.batch.Snapshot.Settings.Gates.ReservedCapacity = true
	pool := w.pool().Spec.Template.Spec.Requirements
	for i := range pool {
		if pool[i].Key == karpenter.CapacityTypeLabelKey {
			pool[i].Values = append(pool[i].Values, "reserved")
		}
	}
	for _, r := range reservations {
		r.AvailabilityZone, r.State, r.OwnerID, r.InstanceMatchCriteria = "ap-northeast-2a", karpenter.CapacityReservationStateActive, "123456789012", "targeted"
		w.class().Status.CapacityReservations = append(w.class().Status.CapacityReservations, r)
		w.cat.Reservations = append(w.cat.Reservations, catalog.ReservationCount{ID: r.ID, Count: 3})
	}
}

func TestReservedLaunches(t *testing.T) {
	for _, tt := range []struct {
		name           string
		reservation    karpenter.CapacityReservation
		target, market string
		strategy       string
	}{
		{"plain", karpenter.CapacityReservation{ID: "cr-1", InstanceType: "t4g.medium"}, "", "", "lowest-price"},
		{"interruptible", karpenter.CapacityReservation{ID: "cr-1", InstanceType: "t4g.medium", Interruptible: true}, cloud.TargetReservedCapacity, cloud.MarketInterruptible, ""},
		{"capacity block", karpenter.CapacityReservation{ID: "cr-1", InstanceType: "t4g.medium", ReservationType: karpenter.CapacityReservationTypeCapacityBlock}, cloud.TargetCapacityBlock, cloud.MarketCapacityBlock, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(planningtest.NewPods("inflate", 1, "1", "0"))
			w.reserve(tt.reservation)
			built := w.build(t)
			intent := built.Intents[0]
			if f := intent.Fleet; f.CapacityType != cloud.Reserved || f.Target != tt.target || f.Strategy != tt.strategy || len(f.Configs) != 1 || len(f.Configs[0].Overrides) != 1 {
				t.Errorf("fleet = %+v", f)
			}
			template := intent.Templates[0]
			if diff := cmp.Diff(&cloud.ReservationTarget{ID: "cr-1", Preference: "capacity-reservations-only"}, template.Reservation); diff != "" || template.Market != tt.market {
				t.Errorf("market %q, reservation %s", template.Market, diff)
			}
			labels := built.Plan.Intents[0].Claims[0].Object.Labels
			if labels[karpenter.CapacityTypeLabelKey] != "reserved" || labels[karpenter.LabelCapacityReservationID] != "cr-1" || labels[karpenter.LabelCapacityReservationType] == "" {
				t.Errorf("labels of the claim: %v", labels)
			}
		})
	}
}

// TestOtherLaunchesUseNoReservation checks that launches without a reservation do not use open
// reservations, whose capacity the plan has counted for other nodes.
func TestOtherLaunchesUseNoReservation(t *testing.T) {
	for _, gate := range []bool{false, true} {
		w := newWorld(planningtest.NewPods("inflate", 1, "1", "0"))
		w.batch.Snapshot.Settings.Gates.ReservedCapacity = gate
		var want *cloud.ReservationTarget
		if gate {
			want = &cloud.ReservationTarget{Preference: "none"}
		}
		if diff := cmp.Diff(want, w.build(t).Intents[0].Templates[0].Reservation); diff != "" {
			t.Errorf("gate %t: %s", gate, diff)
		}
	}
}

func TestOverlaidPrices(t *testing.T) {
	w := newWorld(planningtest.NewPods("inflate", 1, "1", "0"))
	w.batch.Snapshot.Settings.Gates.NodeOverlay = true
	overlay := karpenter.NodeOverlay{}
	overlay.Name = "dear"
	overlay.Spec.Requirements = []karpenter.OverlayRequirement{{Key: corev1.LabelInstanceTypeStable, Operator: karpenter.NodeSelectorOpIn, Values: []string{"t4g.medium"}}}
	overlay.Spec.PriceAdjustment = new("-50%")
	w.batch.Snapshot.NodeOverlays = []karpenter.NodeOverlay{overlay}
	fleet := w.build(t).Intents[0].Fleet
	if fleet.Strategy != "capacity-optimized-prioritized" {
		t.Errorf("strategy = %s", fleet.Strategy)
	}
	for _, config := range fleet.Configs {
		for _, o := range config.Overrides {
			if first := o.InstanceType == "t4g.medium"; o.Priority == nil || (*o.Priority == 0) != first {
				t.Errorf("override %+v has the wrong priority", o)
			}
		}
	}
}

// TestFactsMatchPlan checks that the facts of types equal the values of the plan, including
// overlays and placement groups.
func TestFactsMatchPlan(t *testing.T) {
	w := newWorld(planningtest.NewPods("inflate", 1, "1", "0"))
	w.batch.Snapshot.Settings.Gates.NodeOverlay = true
	overlay := karpenter.NodeOverlay{}
	overlay.Name = "licensed"
	overlay.Spec.Capacity = corev1.ResourceList{"example.com/licence": resource.MustParse("3")}
	w.batch.Snapshot.NodeOverlays = []karpenter.NodeOverlay{overlay}
	w.class().Spec.PlacementGroupSelector = &karpenter.PlacementGroupSelector{Name: new("tight")}
	w.cat.PlacementGroups = []catalog.PlacementGroup{{ID: "pg-1", Name: "tight", Strategy: catalog.SpreadStrategy}}
	built := w.build(t)
	for name, facts := range built.Intents[0].Types {
		licences := facts.Allocatable["example.com/licence"]
		if licences.Value() != 3 || facts.Labels[karpenter.LabelPlacementGroupID] != "pg-1" {
			t.Errorf("facts of type %s = %+v", name, facts)
		}
		for resource := range facts.Allocatable {
			if planning.IsAttachLimit(resource) {
				t.Errorf("type %s has resource %s", name, resource)
			}
		}
	}
	ceiling := built.Plan.Intents[0].Claims[0].Ceiling["example.com/licence"]
	if ceiling.Value() != 3 {
		t.Errorf("the ceiling has %s of the licence resource", ceiling.String())
	}
}

// TestEFAInterfaces checks for one EFA on each network card if a pod requests any.
func TestEFAInterfaces(t *testing.T) {
	efa := func(s *planning.PodSpec) { s.Requests[karpenter.ResourceEFA] = resource.MustParse("1") }
	w := newWorld(planningtest.NewPods("train", 1, "1", "0", efa))
	w.require(in(corev1.LabelArchStable, "amd64"), in(karpenter.CapacityTypeLabelKey, "on-demand"))
	w.pool().Spec.Limits = nil
	intent := w.build(t).Intents[0]
	for i, template := range intent.Templates {
		hardware, _ := w.cat.Find(intent.Fleet.Configs[i].Overrides[0].InstanceType)
		if n := len(template.Interfaces); n == 0 || int64(n) != hardware.Network.EFAs {
			t.Fatalf("%d interfaces, but %s has %d EFAs", n, hardware.Name, hardware.Network.EFAs)
		}
		for card, got := range template.Interfaces {
			if want := (cloud.NetworkInterface{Card: int32(card), Device: min(int32(card), 1), Kind: "efa"}); got != want {
				t.Errorf("interface %d = %+v, want %+v", card, got, want)
			}
		}
		for _, o := range intent.Fleet.Configs[i].Overrides {
			if other, _ := w.cat.Find(o.InstanceType); other.Network.EFAs != hardware.Network.EFAs {
				t.Errorf("%s has %d EFAs and shares the template of %s", o.InstanceType, other.Network.EFAs, hardware.Name)
			}
		}
	}
	w.class().Spec.NetworkInterfaces = []karpenter.NetworkInterface{
		{InterfaceType: karpenter.InterfaceTypeInterface}, {DeviceIndex: 1, InterfaceType: karpenter.InterfaceTypeEFAOnly},
	}
	if got := w.build(t).Intents[0].Templates[0].Interfaces; len(got) != 2 || got[1].Kind != cloud.InterfaceEFAOnly {
		t.Errorf("interfaces of the class = %+v", got)
	}
}

// TestTemplatesPerValue checks which values need separate templates, and that overrides are with the
// template of their type.
func TestTemplatesPerValue(t *testing.T) {
	w := newWorld(planningtest.NewPods("inflate", 1, "500m", "0"))
	intent := w.build(t).Intents[0]
	if len(intent.Templates) < 2 {
		t.Fatalf("%d templates for types with different numbers of pods", len(intent.Templates))
	}
	names := map[string]bool{}
	for i, template := range intent.Templates {
		names[template.Name] = true
		joining, err := userdata.Parse(template.UserData)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(template.Name, "karpenter.k8s.aws/") || intent.Fleet.Configs[i].Template != template.Name {
			t.Errorf("config %d has template %s, want %s", i, intent.Fleet.Configs[i].Template, template.Name)
		}
		for _, o := range intent.Fleet.Configs[i].Overrides {
			pods := intent.Types[o.InstanceType].Capacity[corev1.ResourcePods]
			if pods.Value() != int64(joining.MaxPods) {
				t.Errorf("%s has %s pods and a template for %d", o.InstanceType, pods.String(), joining.MaxPods)
			}
		}
	}
	if len(names) != len(intent.Templates) {
		t.Error("two templates have the same name")
	}
}

// TestIPv6 checks that nodes of an IPv6 cluster get IPv6 addresses.
func TestIPv6(t *testing.T) {
	w := newWorld(planningtest.NewPods("inflate", 1, "1", "0"))
	w.cat.Cluster.IPFamily, w.cat.Cluster.ServiceCIDR = "ipv6", "fd30:1c53::/108"
	if template := w.build(t).Intents[0].Templates[0]; !template.IPv6 || !strings.Contains(template.UserData, "cidr: fd30:1c53::/108") {
		t.Errorf("IPv6 = %t, user data:\n%s", template.IPv6, template.UserData)
	}
}

// TestIntentsSpreadOverSubnets checks that an intent accounts for the addresses of earlier intents.
func TestIntentsSpreadOverSubnets(t *testing.T) {
	w := newWorld(planningtest.NewPods("big", 60, "3", "0"))
	w.pool().Spec.Limits, w.batch.Snapshot.PodsUseNodeSubnets = nil, true
	w.class().Status.Subnets = append(w.class().Status.Subnets, karpenter.Subnet{ID: "subnet-0a000000000000002", Zone: "ap-northeast-2a", ZoneID: "apne2-az1"})
	w.cat.Subnets = []catalog.SubnetCount{{ID: "subnet-0a000000000000001", FreeIPs: 1000}, {ID: "subnet-0a000000000000002", FreeIPs: 950}}
	var got []string
	for _, intent := range w.build(t).Intents {
		got = append(got, intent.Fleet.Configs[0].Overrides[0].SubnetID)
	}
	if diff := cmp.Diff([]string{"subnet-0a000000000000001", "subnet-0a000000000000002"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestWarnings(t *testing.T) {
	for _, tt := range []struct {
		name, rule, says string
		edit             func(*world)
	}{
		{"few on-demand types and no spot", launchspec.WarnFlexibility, "3 on-demand types", func(w *world) {
			w.batch.Snapshot.Unavailable = []planning.Unavailable{{Until: planningtest.Now.Add(time.Minute)}}
			w.batch.Snapshot.Unavailable[0].CapacityType = cloud.Spot
			w.batch.Pending = []planning.PodClass{planningtest.NewPods("inflate", 1, "1", "0")}
			w.require(in(karpenter.LabelInstanceFamily, "t4g"), in(karpenter.LabelInstanceCPU, "2"), in(corev1.LabelInstanceTypeStable, "t4g.small", "t4g.medium", "t4g.large"))
		}},
		{"user data of 90 % of the limit", launchspec.WarnUserData, "16384", func(w *world) {
			w.class().Spec.AMIFamily, w.class().Spec.UserData = new(karpenter.AMIFamilyCustom), new(strings.Repeat("x", 14745))
		}},
		{"instance store on Windows", launchspec.WarnInstanceStore, "instanceStorePolicy", func(w *world) {
			w.class().Spec.AMIFamily, w.class().Spec.InstanceStorePolicy = new(karpenter.AMIFamilyWindows2022), new(karpenter.InstanceStorePolicyRAID0)
			w.require(in(karpenter.LabelInstanceFamily, "m5"), in(corev1.LabelOSStable, "windows"))
		}},
		{"tags that Joist sets", launchspec.WarnTags, "karpenter.sh/nodeclaim", func(w *world) {
			w.class().Spec.Tags = map[string]string{"Env": "dev", "karpenter.sh/nodeclaim": "stolen", "kubernetes.io/cluster/other": "owned"}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(planningtest.NewPods("inflate", 1, "1", "0"))
			tt.edit(w)
			built := w.build(t)
			if len(built.Plan.Warnings) != 1 {
				t.Fatalf("warnings = %+v", built.Plan.Warnings)
			}
			got := built.Plan.Warnings[0]
			if got.Rule != tt.rule || !strings.Contains(got.Message, tt.says) || got.NodePool != "default" || got.NodeClass != "default" {
				t.Errorf("warning = %+v, want %s that contains %q", got, tt.rule, tt.says)
			}
			for key := range built.Intents[0].Templates[0].Tags {
				if key == "karpenter.sh/nodeclaim" || key == "kubernetes.io/cluster/other" {
					t.Errorf("the user's tag %s was set", key)
				}
			}
		})
	}
	if built := newWorld(planningtest.NewPods("inflate", 1, "1", "0")).build(t); len(built.Plan.Warnings) != 0 {
		t.Errorf("warnings without cause: %+v", built.Plan.Warnings)
	}
}

// TestInvalidClassesLeavePodsUnplaced checks that each error says what to correct.
func TestInvalidClassesLeavePodsUnplaced(t *testing.T) {
	for _, tt := range []struct {
		name, says string
		edit       func(*world)
	}{
		{"too much user data", "16384", func(w *world) { w.class().Spec.UserData = new(strings.Repeat("x", 20000)) }},
		{"no instance profile", "InstanceProfileReady", func(w *world) { w.class().Status.InstanceProfile = "" }},
		{"unknown cluster", "eks:DescribeCluster", func(w *world) { w.cat.Cluster = catalog.ClusterFacts{} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(planningtest.NewPods("inflate", 2, "1", "0"))
			tt.edit(w)
			ref, _, err := blob.Encode(planning.BatchKind, w.batch)
			if err != nil {
				t.Fatal(err)
			}
			built, err := launchspec.Build(w.batch, ref, solver.Solve(w.batch, w.cat), w.cat)
			if err != nil || fault.Is(err, fault.Invalid) {
				t.Fatal(err)
			}
			if len(built.Intents) != 0 || len(built.Plan.Unplaced) == 0 {
				t.Fatalf("built = %+v", built)
			}
			if detail := built.Plan.Unplaced[0].Rejections[0].Detail; !strings.Contains(detail, tt.says) {
				t.Errorf("reason %q, want it to contain %q", detail, tt.says)
			}
			want := planning.Warning{NodePool: "default", NodeClass: "default", Rule: launchspec.WarnUnwritable, Message: built.Plan.Unplaced[0].Rejections[0].Detail}
			if !slices.Equal(built.Plan.Warnings, []planning.Warning{want}) {
				t.Errorf("warnings = %+v", built.Plan.Warnings)
			}
		})
	}
}
