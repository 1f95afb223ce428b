package instancetypes

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/catalog/expression"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// InstanceTypes has the instance types for each EC2NodeClass, by name. It is the only input of
// planning that describes EC2.
type InstanceTypes struct {
	Region      string
	ByNodeClass map[string][]Type
	// ByNodePool has the types of the NodePools, by name, for which NodeOverlays change them. Use
	// TypesForPool to read types.
	ByNodePool map[string][]Type
	// Refusals has why an EC2NodeClass has no types although its configuration can be read, by name: an expression
	// of its kubelet settings fails for a type.
	Refusals map[string]string
	// OverlayStatuses are the statuses of the NodeOverlays.
	OverlayStatuses []planning.OverlayStatus
	// FreeIPs is the number of free addresses for new nodes, by class and zone: each node takes one,
	// and each of its pods another if the snapshot has PodsUseNodeSubnets. A zone that is missing has
	// no known limit.
	FreeIPs map[string]map[string]int64
	// SpreadCapacity is how many more nodes a zone takes, by class and zone, for classes with a spread
	// placement group.
	SpreadCapacity map[string]map[string]int
	// Partitions is the number of partitions of the placement group, by class, for classes with a partition placement
	// group.
	Partitions map[string]int64
}

// Type is one instance type for the nodes of one EC2NodeClass.
type Type struct {
	Name string
	// Labels are set by the type and the image of the class. They do not include zone, capacity type
	// and NodePool.
	Labels map[string]string
	// Capacity counts against limits. Allocatable is the capacity for pods, including daemons.
	Capacity, Allocatable corev1.ResourceList
	Offerings             []InstanceOffering
	// DeviceTemplates are the devices that drivers will publish on a node, and DeviceBindings what is
	// known about attributes without a value.
	DeviceTemplates []catalog.DeviceTemplate
	DeviceBindings  []catalog.DeviceBinding
	// Exotic types are expensive for ordinary pods.
	Exotic bool
}

// InstanceOffering is one way to buy a type.
type InstanceOffering struct {
	planning.PricedOffering
	// Available is false while EC2 rejects the offering. A full reservation may be available.
	Available bool
	// Unpriced is true while the offering has no price: no plan uses it.
	Unpriced bool
	// Reservation is the id of the capacity reservation that a launch uses; empty for other offerings.
	Reservation string
	// ReservationCapacity is how many more instances the reservation can launch, for all pools and
	// classes together. It is only set for reservations.
	ReservationCapacity int
	// Labels are the labels that the reservation adds to a node.
	Labels map[string]string
}

// New reads a catalogue for the classes of a snapshot. It leaves out types without an image in the
// class, and invalid classes, which their pools report.
func New(s planning.Snapshot, cat catalog.Catalogue) InstanceTypes {
	out := InstanceTypes{
		Region: cat.Region, ByNodeClass: map[string][]Type{}, FreeIPs: countFreeIPs(s, cat), SpreadCapacity: countSpreadCapacity(s, cat),
		Partitions: countPartitions(s, cat),
	}
	left, seen := countReservationCapacity(s, cat), listReportedMemory(s.Nodes)
	for i := range s.NodeClasses {
		class := &s.NodeClasses[i]
		config, err := NewNodeConfig(class, s.Settings)
		if err != nil {
			continue
		}
		configs, err := resolveConfigs(cat.Types, config)
		if err != nil {
			if out.Refusals == nil {
				out.Refusals = map[string]string{}
			}
			out.Refusals[class.Name] = err.Error()
			continue
		}
		images := readImages(class.Status.AMIs)
		group, _ := findPlacementGroup(class, cat)
		for i, t := range cat.Types {
			if !t.AcceptsPlacement(group.Strategy) {
				continue
			}
			if one, ok := newType(t, class, images, configs[i], s, seen); ok {
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

// resolveConfigs returns the configuration of the nodes of each type, with the numbers of its expressions. One type for
// which an expression fails is an error, although the class may not use it: the mistake would appear later with that
// type (Karpenter: pkg/providers/instancetype/instancetype.go, List).
func resolveConfigs(types []catalog.InstanceType, config catalog.NodeConfig) ([]catalog.NodeConfig, error) {
	out := make([]catalog.NodeConfig, len(types))
	for i := range types {
		var err error
		if out[i], err = expression.Resolve(types[i], config); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func newType(t catalog.InstanceType, class *karpenter.EC2NodeClass, images []bootableImage, config catalog.NodeConfig, s planning.Snapshot, seen map[typeAndImage]resource.Quantity) (Type, bool) {
	labels := catalog.TypeLabels(t)
	delete(labels, karpenter.LabelInstanceTenancy) // An instance of any type may be dedicated.
	maps.Copy(labels, catalog.FamilyLabels(config.AMIFamily))
	if !slices.Contains(t.OS, labels[corev1.LabelOSStable]) || !catalog.IsCompatible(t, class, config.AMIFamily) {
		return Type{}, false
	}
	image, bootable := findImage(labels, images)
	if !bootable {
		return Type{}, false
	}
	if memory, ok := seen[typeAndImage{t.Name, image.ID}]; ok {
		config.DiscoveredMemory = &memory
	}
	capacity, _, allocatable := catalog.NodeResources(t, config)
	out := Type{
		Name: t.Name, Labels: labels, Capacity: capacity, Allocatable: addAttachLimits(allocatable, t, config),
		Offerings: listOfferings(t, class, s), Exotic: isExotic(t),
	}
	out.addDevices(class, s.Settings)
	return out, true
}

// listOfferings returns the offerings of the type in the zones of the class's subnets.
func listOfferings(t catalog.InstanceType, class *karpenter.EC2NodeClass, s planning.Snapshot) []InstanceOffering {
	var out []InstanceOffering
	for _, o := range t.Offerings {
		// The class's status lists its reservations.
		i := slices.IndexFunc(class.Status.Subnets, func(n karpenter.Subnet) bool { return n.Zone == o.Zone })
		if o.CapacityType == catalog.Reserved || i < 0 {
			continue
		}
		// If the catalogue has no zone ids, the subnets have them.
		id := cmp.Or(o.ZoneID, class.Status.Subnets[i].ZoneID)
		offer := InstanceOffering{PricedOffering: planning.PricedOffering{ZoneID: id, PricePerHour: o.PricePerHour}, Available: o.Available || !o.HasPrice(), Unpriced: !o.HasPrice()}
		offer.InstanceType, offer.Zone, offer.CapacityType = t.Name, o.Zone, o.CapacityType
		offer.Available = offer.Available && !planning.IsOfferingUnavailable(offer.PricedOffering, class, s)
		out = append(out, offer)
	}
	return out
}

// isExotic reports whether the type is bare metal or has GPUs or accelerators, which ordinary pods do
// not use.
func isExotic(t catalog.InstanceType) bool {
	return t.BareMetal || len(t.GPUs) > 0 || len(t.Accelerators) > 0
}

// NewNodeConfig returns the configuration of the class's nodes under the settings. Package expression resolves its
// expressions for a type.
func NewNodeConfig(class *karpenter.EC2NodeClass, settings planning.Settings) (catalog.NodeConfig, error) {
	config, err := catalog.NewNodeConfig(class)
	if err != nil {
		return config, err
	}
	if !settings.Gates.NodeClassCEL && expression.Uses(config.Kubelet) {
		return catalog.NodeConfig{}, fmt.Errorf("EC2NodeClass %s: %w", class.Name, expression.ErrDisabled)
	}
	config.ReservedENIs = int64(settings.ReservedENIs)
	config.VMMemoryOverheadPercent = settings.VMMemoryOverheadPercent
	return config, nil
}

// FindImage returns the first image, in the order of the class's status, that a type with these labels
// can boot.
func FindImage(typeLabels map[string]string, images []karpenter.AMI) (karpenter.AMI, bool) {
	return findImage(typeLabels, readImages(images))
}

// bootableImage is an image with its decoded requirements.
type bootableImage struct {
	karpenter.AMI
	requirements planning.Requirements
}

// readImages decodes the requirements of a class's images once for all types.
func readImages(images []karpenter.AMI) []bootableImage {
	out := make([]bootableImage, len(images))
	for i, image := range images {
		out[i] = bootableImage{image, planning.NewNodeSelectorRequirements(image.Requirements)}
	}
	return out
}

func findImage(typeLabels map[string]string, images []bootableImage) (karpenter.AMI, bool) {
	for i := range images {
		if images[i].requirements.AllowsType(typeLabels) {
			return images[i].AMI, true
		}
	}
	return karpenter.AMI{}, false
}

// IsBuyable reports whether a launch can use the offering now: it is available at a valid price, and if
// it is a reservation, it has free capacity (Karpenter: Launchable in pkg/cloudprovider/types.go).
func (o *InstanceOffering) IsBuyable() bool {
	return o.Available && !o.Unpriced && o.PricePerHour >= 0 && !math.IsInf(o.PricePerHour, 1) && (o.Reservation == "" || o.ReservationCapacity > 0)
}

// IsFullReservation reports whether only the reservation's capacity prevents a launch.
func (o *InstanceOffering) IsFullReservation() bool {
	return o.Available && o.Reservation != "" && o.ReservationCapacity <= 0
}

// ExpectedAllocatable returns the node's allocatable resources. For an uninitialized node whose
// drivers have not reported attach limits it adds EC2's limit. An initialized node without a limit has
// no such driver.
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

// addAttachLimits adds EC2's attach limit for a new node of the type.
func addAttachLimits(allocatable corev1.ResourceList, t catalog.InstanceType, config catalog.NodeConfig) corev1.ResourceList {
	allocatable[planning.AttachLimitResource(catalog.EBSDriver)] = *resource.NewQuantity(catalog.VolumeLimit(t, config), resource.DecimalSI)
	return allocatable
}
