package upstream

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	awscache "github.com/aws/karpenter-provider-aws/pkg/cache"
	"github.com/aws/karpenter-provider-aws/pkg/fake"
	awsoptions "github.com/aws/karpenter-provider-aws/pkg/operator/options"
	"github.com/aws/karpenter-provider-aws/pkg/providers/arczonalshift"
	"github.com/aws/karpenter-provider-aws/pkg/providers/capacityreservation"
	"github.com/aws/karpenter-provider-aws/pkg/providers/instancetype"
	"github.com/aws/karpenter-provider-aws/pkg/providers/instancetype/offering"
	"github.com/aws/karpenter-provider-aws/pkg/providers/pricing"
	"github.com/google/go-cmp/cmp"
	"github.com/patrickmn/go-cache"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	karpoptions "sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// sale has the prices of one instance type, with NodeOverlays and capacity reservations.
type sale struct {
	usage        []string
	onDemand     float64
	spot         map[string]float64 // by zone
	overlays     []karpenter.NodeOverlay
	reservations []karpenter.CapacityReservation
}

const (
	saleType = "m5.large"
	zoneA    = "ap-northeast-2a"
	zoneB    = "ap-northeast-2b"
)

func priceOverlay(name, price string, weight int32, requirements ...karpenter.OverlayRequirement) karpenter.NodeOverlay {
	return karpenter.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: karpenter.NodeOverlaySpec{
		Requirements: requirements, Price: &price, Weight: &weight,
	}}
}

func need(key string, values ...string) karpenter.OverlayRequirement {
	return karpenter.OverlayRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// TestSameOfferingsWithoutPrices compares the available offerings of a type and their
// prices if AWS publishes no price, with Karpenter's offering provider and NodeOverlay
// controller.
func TestSameOfferingsWithoutPrices(t *testing.T) {
	both, named := []string{"on-demand", "spot"}, need(corev1.LabelInstanceTypeStable, saleType, "other.large")
	adjusted := karpenter.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: "adjusted"}, Spec: karpenter.NodeOverlaySpec{
		PriceAdjustment: new("+10%"), Weight: new(int32(9)), Requirements: []karpenter.OverlayRequirement{need(karpenter.CapacityTypeLabelKey, "spot")},
	}}
	block := []karpenter.CapacityReservation{{
		ID: "cr-0123456789abcdef0", InstanceType: saleType, AvailabilityZone: zoneA, OwnerID: "111122223333", InstanceMatchCriteria: "targeted",
		ReservationType: karpenter.CapacityReservationTypeCapacityBlock, State: karpenter.CapacityReservationStateActive,
	}}
	reservation := func(id string) karpenter.CapacityReservation {
		out := block[0]
		out.ID, out.ReservationType = id, karpenter.CapacityReservationTypeDefault
		return out
	}
	for name, s := range map[string]sale{
		"a reservation with free capacity":        {both, 1, nil, nil, []karpenter.CapacityReservation{reservation("cr-1")}},
		"a full reservation":                      {both, 1, nil, nil, []karpenter.CapacityReservation{reservation(fullID)}},
		"a reclaimed reservation":                 {both, 1, nil, nil, []karpenter.CapacityReservation{reservation(reclaimedID)}},
		"a reservation that EC2 found full":       {both, 1, nil, nil, []karpenter.CapacityReservation{reservation(exceededID)}},
		"a reclaimed reservation and another one": {both, 1, nil, nil, []karpenter.CapacityReservation{reservation(reclaimedID), reservation("cr-1")}},
		"all prices":                     {both, 1, map[string]float64{zoneA: 0.25, zoneB: 0.5}, nil, nil},
		"no price":                       {both, 0, nil, nil, nil},
		"no spot price in a zone":        {both, 1, map[string]float64{zoneA: 0.25}, nil, nil},
		"no price, reserved":             {both, 0, nil, nil, block},
		"capacity blocks only":           {[]string{"capacity-block"}, 0, nil, nil, block},
		"a price set by an overlay":      {both, 0, nil, []karpenter.NodeOverlay{priceOverlay("o", "2.5", 1, named)}, nil},
		"a spot price set by an overlay": {both, 1, map[string]float64{zoneA: 0.25}, []karpenter.NodeOverlay{priceOverlay("o", "2.5", 1, named)}, nil},
		"reserved and an overlay":        {both, 0, nil, []karpenter.NodeOverlay{priceOverlay("o", "2.5", 1, named)}, block},
		"an overlay of another type":     {both, 0, nil, []karpenter.NodeOverlay{priceOverlay("o", "2.5", 1, need(corev1.LabelInstanceTypeStable, "other.large"))}, nil},
		"an overlay of a capacity type":  {both, 0, nil, []karpenter.NodeOverlay{priceOverlay("o", "2.5", 1, named, need(karpenter.CapacityTypeLabelKey, "spot"))}, nil},
		"an overlay of a family":         {both, 0, nil, []karpenter.NodeOverlay{priceOverlay("o", "2.5", 1, need(karpenter.LabelInstanceFamily, "m5"))}, nil},
		"an overlay that excludes other types": {both, 0, nil, []karpenter.NodeOverlay{priceOverlay("o", "2.5", 1,
			karpenter.OverlayRequirement{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"other.large"}})}, nil},
		"a price and an adjustment": {both, 0, nil, []karpenter.NodeOverlay{priceOverlay("o", "2.5", 1, named), adjusted}, nil},
		"a free overlay":            {both, 0, nil, []karpenter.NodeOverlay{priceOverlay("o", "0", 1, named)}, nil},
		"overlays in conflict": {both, 0, nil, []karpenter.NodeOverlay{
			priceOverlay("a", "2.5", 1, named), priceOverlay("b", "3.5", 1, need(karpenter.LabelInstanceFamily, "m5")),
		}, nil},
		"an overlay with a higher weight for a capacity type": {both, 0, nil, []karpenter.NodeOverlay{
			priceOverlay("a", "2.5", 1, named), priceOverlay("b", "3.5", 2, named, need(karpenter.CapacityTypeLabelKey, "spot")),
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(s.theirs(t), s.ours(), cmp.Comparer(samePrice)); diff != "" {
				t.Errorf("upstream's and ours:\n%s", diff)
			}
		})
	}
}

// Reservations with these ids have no free capacity, are reclaimed by their owner, or rejected a launch because they were
// full. All others have five free instances.
const fullID, reclaimedID, exceededID = "cr-full", "cr-reclaimed", "cr-exceeded"

// freeInstances returns the free capacity that EC2 states.
func freeInstances(id string) int {
	if id == fullID {
		return 0
	}
	return 5
}

// offeringName names an offering, and whether only its free capacity prevents a launch.
func offeringName(capacityType, zone, reservation string, launchable bool) string {
	name := strings.TrimSpace(capacityType + " " + zone + " " + reservation)
	if !launchable {
		name += " full"
	}
	return name
}

// samePrice ignores the small amounts that order reservations without a public price:
// Joist uses a dollar as their on-demand price, and Karpenter zero.
func samePrice(a, b float64) bool { return math.Abs(a-b) < 2e-7 }

func (s sale) class() karpenter.EC2NodeClass {
	class := planningtest.NewNodeClass()
	class.Status.CapacityReservations = s.reservations
	return class
}

func (s sale) ours() map[string]float64 {
	embedded, _ := catalog.EmbeddedCatalogue("ap-northeast-2")
	one, _ := embedded.Find(saleType)
	one.SupportedUsage = nil
	for _, usage := range s.usage {
		if usage != "capacity-block" {
			one.SupportedUsage = append(one.SupportedUsage, usage)
		}
	}
	parts := catalog.Parts{
		Region: "ap-northeast-2", Types: []catalog.InstanceType{one},
		Offerings: []cloud.TypeOffering{{Type: saleType, Zone: zoneA}, {Type: saleType, Zone: zoneB}},
		OnDemand:  []cloud.OnDemandPrice{{Type: saleType, PerHour: s.onDemand}},
	}
	for zone, price := range s.spot {
		parts.Spot = append(parts.Spot, cloud.SpotPrice{Type: saleType, Zone: zone, PerHour: price})
	}
	cat := catalog.Assemble(parts)
	for _, r := range s.reservations {
		cat.Reservations = append(cat.Reservations, catalog.ReservationCount{ID: r.ID, Count: int64(freeInstances(r.ID))})
	}
	snapshot := planningtest.NewBatch().Snapshot
	snapshot.NodeClasses, snapshot.NodeOverlays = []karpenter.EC2NodeClass{s.class()}, s.overlays
	snapshot.Settings.Gates = planning.Gates{NodeOverlay: true, ReservedCapacity: true}
	for id, code := range map[string]string{reclaimedID: "InvalidCapacityReservationState.Unavailable", exceededID: "ReservationCapacityExceeded"} {
		snapshot.Unavailable = append(snapshot.Unavailable, planning.Unavailable{
			Offering:    event.Offering{InstanceType: saleType, Zone: zoneA, CapacityType: karpenter.CapacityTypeReserved},
			Reservation: id, Until: snapshot.TakenAt.Add(planning.UnavailableTTL), Reason: code,
		})
	}
	stock, out := instancetypes.New(snapshot, cat), map[string]float64{}
	for _, typ := range stock.TypesForPool(snapshot.NodePools[0].Name, snapshot.NodeClasses[0].Name) {
		for _, o := range typ.Offerings {
			if o.Available && !o.Unpriced {
				out[offeringName(o.CapacityType, o.Zone, o.Reservation, o.IsBuyable())] = o.PricePerHour
			}
		}
	}
	return out
}

func (s sale) theirs(t *testing.T) map[string]float64 {
	t.Helper()
	ctx := awsoptions.ToContext(t.Context(), &awsoptions.Options{VMMemoryOverheadPercent: 0.075})
	ctx = karpoptions.ToContext(ctx, &karpoptions.Options{FeatureGates: karpoptions.FeatureGates{NodeOverlay: true, ReservedCapacity: true}})
	provider := &upstreamTypes{t: t, ctx: ctx, sale: s, kube: &overlayClient{}}
	ours := s.class()
	decode(t, encode(t, &ours), &provider.class)
	pool := planningtest.NewNodePool()
	decode(t, encode(t, &pool), &provider.kube.pool)
	for i := range s.overlays {
		var theirs v1alpha1.NodeOverlay
		decode(t, encode(t, &s.overlays[i]), &theirs)
		provider.kube.overlays = append(provider.kube.overlays, theirs)
	}
	store := nodeoverlay.NewInstanceTypeStore()
	controller := nodeoverlay.NewController(clock.RealClock{}, provider.kube, provider, store, state.NewCluster(clock.RealClock{}, provider.kube, provider))
	for range 2 { // In the second round, the overlays' conditions are known.
		if _, err := controller.Reconcile(ctx, reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := provider.GetInstanceTypes(ctx, &provider.kube.pool)
	if err == nil {
		all, err = store.ApplyAll(provider.kube.pool.Name, all)
	}
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, o := range all[0].Offerings.Available() {
		id := ""
		if o.CapacityType() == karpv1.CapacityTypeReserved {
			id = o.ReservationID()
		}
		out[offeringName(o.CapacityType(), o.Zone(), id, o.Launchable())] = o.Price
	}
	return out
}

// upstreamTypes is Karpenter's cloud provider for one instance type. It also returns
// prices and reservations.
type upstreamTypes struct {
	cloudprovider.CloudProvider
	pricing.Provider

	t     *testing.T
	ctx   context.Context //nolint:containedctx // it lives as long as the test
	sale  sale
	class awsv1.EC2NodeClass
	kube  *overlayClient
}

func (u *upstreamTypes) OnDemandPrice(ec2types.InstanceType) (float64, bool) {
	return u.sale.onDemand, u.sale.onDemand > 0
}

func (u *upstreamTypes) SpotPrice(_ ec2types.InstanceType, zone string) (float64, bool) {
	price, ok := u.sale.spot[zone]
	return price, ok
}

// counts has the free capacity of reservations. The launch path of the provider empties one that EC2 found full.
type counts struct{ capacityreservation.Provider }

func (counts) GetAvailableInstanceCount(id string) int {
	if id == exceededID {
		return 0
	}
	return freeInstances(id)
}

func (u *upstreamTypes) GetInstanceTypes(context.Context, *karpv1.NodePool) ([]*cloudprovider.InstanceType, error) {
	recorded, err := fake.NewEC2API().DescribeInstanceTypes(u.ctx, &ec2.DescribeInstanceTypesInput{})
	if err != nil {
		return nil, fmt.Errorf("reading the recorded types: %w", err)
	}
	unavailable := awscache.NewUnavailableOfferings()
	unavailable.MarkUnavailable(u.ctx, saleType, zoneA, karpv1.CapacityTypeReserved, map[string]string{}, awscache.WithReservationID(reclaimedID))
	provider := offering.NewDefaultProvider(u, counts{}, nil, unavailable, cache.New(time.Hour, time.Hour),
		arczonalshift.NewNoopProvider(), u.kube)
	zones := []string{zoneA, zoneB}
	for _, info := range recorded.InstanceTypes {
		if info.InstanceType != saleType {
			continue
		}
		info.SupportedUsageClasses = nil
		for _, usage := range u.sale.usage {
			info.SupportedUsageClasses = append(info.SupportedUsageClasses, ec2types.UsageClassType(usage))
		}
		it, err := instancetype.NewDefaultResolver("ap-northeast-2", nil).Resolve(u.ctx, info, zones, &u.class, &awsv1.ParsedKubeletConfig{})
		if err != nil {
			return nil, fmt.Errorf("resolving %s: %w", saleType, err)
		}
		return provider.InjectOfferings(u.ctx, []*cloudprovider.InstanceType{it},
			map[ec2types.InstanceType]ec2types.InstanceTypeInfo{saleType: info}, &u.class, sets.New(zones...)), nil
	}
	return nil, fmt.Errorf("no recorded type %s", saleType)
}

// overlayClient implements the part of a Kubernetes client that overlays need.
type overlayClient struct {
	client.Client

	overlays []v1alpha1.NodeOverlay
	pool     karpv1.NodePool
}

func (c *overlayClient) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *v1alpha1.NodeOverlayList:
		for i := range c.overlays {
			list.Items = append(list.Items, *c.overlays[i].DeepCopy())
		}
	case *karpv1.NodePoolList:
		list.Items = []karpv1.NodePool{*c.pool.DeepCopy()}
	}
	return nil
}

func (c *overlayClient) Status() client.SubResourceWriter { return overlayStatus{of: c} }

type overlayStatus struct {
	client.SubResourceWriter

	of *overlayClient
}

func (c overlayStatus) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	for i := range c.of.overlays {
		if c.of.overlays[i].Name == object.GetName() {
			c.of.overlays[i].Status = object.(*v1alpha1.NodeOverlay).Status
		}
	}
	return nil
}
