package instancetypes

import (
	"cmp"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// InstanceTypes has, for each EC2NodeClass by its name, the instance types as nodes of that class
// would be. It is the only input of planning that describes EC2.
type InstanceTypes struct {
	Region      string
	ByNodeClass map[string][]Type
	// ByNodePool has the types of those NodePools, by name, for which NodeOverlays make
	// them something else. Read them through TypesOf.
	ByNodePool map[string][]Type
	// OverlayStatuses says of each NodeOverlay whether it counts.
	OverlayStatuses []planning.OverlayStatus
	// FreeIPs is how many addresses are left for new nodes, by class and zone: each
	// node takes one, and each of its pods another. A zone that is missing is not
	// known to lack any.
	FreeIPs map[string]map[string]int64
	// SpreadCapacity is how many more nodes a zone takes, by class and zone, of classes whose
	// placement group spreads its instances. Others have no such bound.
	SpreadCapacity map[string]map[string]int
}

// Type is one instance type as the nodes of one EC2NodeClass would have it.
type Type struct {
	Name string
	// Labels are determined by the type and the image of the class. Zone, capacity type
	// and NodePool are not among them.
	Labels map[string]string
	// Capacity counts against limits. Allocatable is what pods may take, daemons
	// included.
	Capacity, Allocatable corev1.ResourceList
	Offerings             []InstanceOffering
	// Exotic types are dear for what ordinary pods use of them.
	Exotic bool
}

// InstanceOffering is one way to buy a type.
type InstanceOffering struct {
	planning.PricedOffering
	// Available is false for what EC2 refuses at the moment.
	Available bool
	// Unpriced is true while the offer has no price: no plan buys it.
	Unpriced bool
	// Reservation is the id of the capacity reservation that a launch takes from,
	// empty for other offers.
	Reservation string
	// ReservationCapacity is how many launches the reservation has left, for all pools and
	// classes together. It means nothing for other offers.
	ReservationCapacity int
	// Labels are the labels that the reservation adds to a node.
	Labels map[string]string
}

// New reads a catalogue for the classes of a snapshot. Types that a class
// has no image for are left out, and so are classes that cannot be read: their
// pools say so themselves.
func New(s planning.Snapshot, cat catalog.Catalogue) InstanceTypes {
	out := InstanceTypes{Region: cat.Region, ByNodeClass: map[string][]Type{}, FreeIPs: countFreeIPs(s, cat), SpreadCapacity: countSpreadCapacity(s, cat)}
	left, seen := countReservationCapacity(s, cat), listReportedMemory(s.Nodes)
	for i := range s.NodeClasses {
		class := &s.NodeClasses[i]
		config, err := NewNodeConfig(class, s.Settings)
		if err != nil {
			continue
		}
		for _, t := range cat.Types {
			if one, ok := newType(t, class, config, s, seen); ok {
				one.Offerings = disableShiftedZones(append(one.Offerings, listReservedOfferings(t, class, s, left)...), cat.ShiftedZones)
				one.joinPlacementGroup(class, cat, out.SpreadCapacity[class.Name])
				out.ByNodeClass[class.Name] = append(out.ByNodeClass[class.Name], one)
			}
		}
	}
	if s.Settings.Gates.NodeOverlay {
		overlaid, problems := out.ApplyOverlays(s.NodeOverlays, s.NodePools)
		out, out.OverlayStatuses = overlaid, listOverlayStatuses(s.NodeOverlays, problems)
	}
	return out
}

func newType(t catalog.InstanceType, class *karpenter.EC2NodeClass, config catalog.NodeConfig, s planning.Snapshot, seen map[typeAndImage]resource.Quantity) (Type, bool) {
	labels := catalog.TypeLabels(t)
	delete(labels, karpenter.LabelInstanceTenancy) // An instance of any type may be dedicated.
	maps.Copy(labels, catalog.FamilyLabels(config.AMIFamily))
	if !slices.Contains(t.OS, labels[corev1.LabelOSStable]) || !catalog.IsCompatible(t, class, config.AMIFamily) {
		return Type{}, false
	}
	image, bootable := FindImage(labels, class.Status.AMIs)
	if !bootable {
		return Type{}, false
	}
	if memory, ok := seen[typeAndImage{t.Name, image.ID}]; ok {
		config.DiscoveredMemory = &memory
	}
	capacity, _, allocatable := catalog.NodeResources(t, config)
	return Type{
		Name: t.Name, Labels: labels, Capacity: capacity, Allocatable: addAttachLimits(allocatable, t, config),
		Offerings: listOfferings(t, class, s), Exotic: isExotic(t),
	}, true
}

// listOfferings are the ways to buy the type where the class has subnets.
func listOfferings(t catalog.InstanceType, class *karpenter.EC2NodeClass, s planning.Snapshot) []InstanceOffering {
	var out []InstanceOffering
	for _, o := range t.Offerings {
		// Which reservations a class may use is for its status to say.
		i := slices.IndexFunc(class.Status.Subnets, func(n karpenter.Subnet) bool { return n.Zone == o.Zone })
		if o.CapacityType == catalog.Reserved || i < 0 {
			continue
		}
		// A catalogue whose zones could not be read has no ids; the subnets have.
		id := cmp.Or(o.ZoneID, class.Status.Subnets[i].ZoneID)
		offer := InstanceOffering{PricedOffering: planning.PricedOffering{ZoneID: id, PricePerHour: o.PricePerHour}, Available: o.Available || !o.HasPrice(), Unpriced: !o.HasPrice()}
		offer.InstanceType, offer.Zone, offer.CapacityType = t.Name, o.Zone, o.CapacityType
		offer.Available = offer.Available && !planning.IsOfferingUnavailable(offer.PricedOffering, class, s)
		out = append(out, offer)
	}
	return out
}

// isExotic types are dear for what ordinary pods use of them.
func isExotic(t catalog.InstanceType) bool {
	return t.BareMetal || len(t.GPUs) > 0 || len(t.Accelerators) > 0
}

// NewNodeConfig is how the nodes of a class are set up in this installation.
func NewNodeConfig(class *karpenter.EC2NodeClass, settings planning.Settings) (catalog.NodeConfig, error) {
	config, err := catalog.NewNodeConfig(class)
	if err != nil {
		return config, err
	}
	config.ReservedENIs = int64(settings.ReservedENIs)
	if settings.VMMemoryOverheadPercent > 0 {
		config.VMMemoryOverheadPercent = &settings.VMMemoryOverheadPercent
	}
	return config, nil
}

// FindImage finds the first image, in the order of the class's status, that a type
// with these labels boots.
func FindImage(typeLabels map[string]string, images []karpenter.AMI) (karpenter.AMI, bool) {
	i := slices.IndexFunc(images, func(image karpenter.AMI) bool {
		return planning.NewNodeSelectorRequirements(image.Requirements).AllowsType(typeLabels)
	})
	if i < 0 {
		return karpenter.AMI{}, false
	}
	return images[i], true
}

// IsBuyable reports whether an offer can be bought, at a price that is one.
func (o *InstanceOffering) IsBuyable() bool {
	return o.Available && !o.Unpriced && o.PricePerHour >= 0 && !math.IsInf(o.PricePerHour, 1)
}

// ExpectedAllocatable is what pods may take of the node, with what EC2 lets it attach while
// it is so young that its drivers have not told. One that is initialized
// and has no limit has no such driver.
func (s InstanceTypes) ExpectedAllocatable(node *planning.Node) corev1.ResourceList {
	limit := planning.AttachLimitResource(catalog.EBSDriver)
	if _, told := node.Allocatable[limit]; told || node.Initialized {
		return node.Allocatable
	}
	types := s.ByNodeClass[node.Labels[karpenter.LabelEC2NodeClass]]
	i := slices.IndexFunc(types, func(t Type) bool { return t.Name == node.Labels[corev1.LabelInstanceTypeStable] })
	if i < 0 {
		return node.Allocatable
	}
	out := node.Allocatable.DeepCopy()
	if out == nil {
		out = corev1.ResourceList{}
	}
	out[limit] = types[i].Allocatable[limit]
	return out
}

// addAttachLimits adds what EC2 lets a new node of the type attach.
func addAttachLimits(allocatable corev1.ResourceList, t catalog.InstanceType, config catalog.NodeConfig) corev1.ResourceList {
	allocatable[planning.AttachLimitResource(catalog.EBSDriver)] = *resource.NewQuantity(catalog.VolumeLimit(t, config), resource.DecimalSI)
	return allocatable
}
