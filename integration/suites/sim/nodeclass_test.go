package sim_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// The classes that people start with, as they write them: the walkthroughs'
// and the reference's, whose image is selected by an id that it writes
// as a name.
const (
	walkthroughClass = `
spec:
  amiFamily: AL2023
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: demo}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: demo}}]
  role: demo-node`
	referenceClass = `
spec:
  amiFamily: AL2
  amiSelectorTerms: [{name: ami-0123456789abcdef0}]
  blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 100Gi, volumeType: gp3, encrypted: true}}]
  detailedMonitoring: true
  metadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 2, httpTokens: required}
  instanceProfile: demo-node
  securityGroupSelectorTerms: [{tags: {Name: foo-private-sg}}]
  subnetSelectorTerms: [{tags: {Name: foo-private-subnet}}]
  tags: {Env: prd, ManagedBy: "https://example.com/foo.git", Name: bar-cluster-foo-karpenter, karpenter.sh/discovery: foo-cluster}`
)

// runServices runs watcher, catalog, lifecycle and launcher for this time and returns the node class.
func runServices(t *testing.T, w *embedded.EmbeddedCluster, d time.Duration) *karpenter.EC2NodeClass {
	t.Helper()
	ctx := context.Background()
	for end := w.Now().Add(d); w.Now().Before(end); {
		if err := w.Advance(ctx, w.Now().Add(500*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		for _, a := range w.Activities() {
			a.Run(ctx)
		}
	}
	class, err := cluster.Get[*karpenter.EC2NodeClass](ctx, w.Kube, cluster.NodeClasses, cluster.Key{Name: "default"})
	if err != nil {
		t.Fatal(err)
	}
	return class
}

func TestClassesBecomeReady(t *testing.T) {
	for _, tt := range []struct {
		name, manifest string
		edit           func(*karpenter.EC2NodeClassSpec)
		images         int
		subnets        int
		broken         string
	}{
		{"the walkthroughs' class", walkthroughClass, nil, 2, 4, ""},
		{"the reference's class as it is", referenceClass, nil, 0, 1, karpenter.ConditionTypeAMIsReady},
		{"the reference's class, mended", referenceClass, func(s *karpenter.EC2NodeClassSpec) {
			s.AMISelectorTerms = []karpenter.AMISelectorTerm{{ID: "ami-0123456789abcdef0"}}
		}, 1, 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, err := embedded.New(embedded.Options{Seed: 1, Families: instanceFamilies})
			if err != nil {
				t.Fatal(err)
			}
			w.Cloud.AddSubnet(cloud.Subnet{Zone: w.AWS.Subnets[0].Zone, FreeIPs: 100, Tags: map[string]string{"Name": "foo-private-subnet"}})
			w.Cloud.AddSecurityGroup(cloud.SecurityGroup{Name: "sg", Tags: map[string]string{"Name": "foo-private-sg"}})
			w.Cloud.AddImage(cloud.Image{ID: "ami-0123456789abcdef0", Name: "mine", Arch: "amd64"})
			class := &karpenter.EC2NodeClass{}
			if err := yaml.UnmarshalStrict([]byte(tt.manifest), class); err != nil {
				t.Fatal(err)
			}
			class.ObjectMeta = metav1.ObjectMeta{Name: "default"}
			if tt.edit != nil {
				tt.edit(&class.Spec)
			}
			w.Kube.SeedObjects(class)
			got := runServices(t, w, 2*time.Minute)
			conditions := got.Status.Conditions
			if conditions.IsTrue(karpenter.ConditionTypeReady) != (tt.broken == "") || tt.broken != "" && !conditions.IsFalse(tt.broken) {
				t.Errorf("conditions %+v", conditions)
			}
			if len(got.Status.AMIs) != tt.images || len(got.Status.Subnets) != tt.subnets || len(got.Status.SecurityGroups) != 1 || got.Status.InstanceProfile == "" {
				t.Errorf("status %+v", got.Status)
			}
			if got.Annotations[karpenter.EC2NodeClassHashVersionAnnotationKey] != karpenter.EC2NodeClassHashVersion {
				t.Errorf("annotations %v", got.Annotations)
			}
		})
	}
}

var instanceFamilies = []string{"t4g", "m6i"}

// The planner gets the reservations that a node class may use from its status, and their free capacity from the
// catalogue.
func TestReservationsReachThePlanner(t *testing.T) {
	w, err := embedded.New(embedded.Options{Seed: 1, Families: instanceFamilies})
	if err != nil {
		t.Fatal(err)
	}
	zone := w.AWS.Subnets[0].Zone
	mine := map[string]string{"team": "web"}
	reservation := w.Cloud.AddReservation(cloud.Reservation{InstanceType: "m6i.large", Zone: zone, Available: 3, Tags: mine})
	w.Cloud.AddReservation(cloud.Reservation{InstanceType: "m6i.large", Zone: zone, Available: 9})
	group := w.Cloud.AddPlacementGroup(cloud.PlacementGroup{Name: "apart", Strategy: "spread"})
	class := &karpenter.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if err := yaml.UnmarshalStrict([]byte(walkthroughClass), class); err != nil {
		t.Fatal(err)
	}
	class.Name = "default"
	class.Spec.CapacityReservationSelectorTerms = []karpenter.CapacityReservationSelectorTerm{{Tags: mine}}
	class.Spec.PlacementGroupSelector = &karpenter.PlacementGroupSelector{Name: new("apart")}
	w.Kube.SeedObjects(class)
	class = runServices(t, w, 90*time.Second)
	ref, err := blob.GetLatest(t.Context(), w.Blobs, catalog.Kind)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := blob.Get[catalog.Catalogue](t.Context(), w.Blobs, ref)
	if err != nil {
		t.Fatal(err)
	}
	stock := instancetypes.New(planning.Snapshot{
		TakenAt: w.Now(), NodeClasses: []karpenter.EC2NodeClass{*class},
		Settings: planning.Settings{Gates: planning.Gates{ReservedCapacity: true}},
	}, doc)
	var reserved []instancetypes.InstanceOffering
	for _, typ := range stock.ByNodeClass["default"] {
		for _, o := range typ.Offerings {
			if o.CapacityType == karpenter.CapacityTypeReserved {
				reserved = append(reserved, o)
			}
		}
		if typ.Labels[karpenter.LabelPlacementGroupID] != group.ID {
			t.Fatalf("%s is in placement group %q", typ.Name, typ.Labels[karpenter.LabelPlacementGroupID])
		}
	}
	if len(reserved) != 1 || reserved[0].Reservation != reservation.ID || reserved[0].ReservationCapacity != 3 || !reserved[0].Available || reserved[0].Zone != zone {
		t.Errorf("reserved offers: %+v", reserved)
	}
	if got := stock.FreeIPs["default"][zone]; got != 4091 {
		t.Errorf("%d free addresses in %s", got, zone)
	}
	if got := stock.SpreadCapacity["default"][zone]; got != 7 {
		t.Errorf("room for %d nodes of the spread group in %s", got, zone)
	}
}
