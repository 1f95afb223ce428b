package launchspec

import (
	"maps"
	"slices"
	"strconv"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// efas returns the number of EFA interfaces of an instance of the type: all that it has if a pod of
// the node requests any. If the class lists interfaces, no others are added.
func (g *recipe) efas(t catalog.InstanceType) int64 {
	if !g.efa || len(g.class.Spec.NetworkInterfaces) > 0 {
		return 0
	}
	return t.Network.EFAs
}

// asksEFA reports whether a pod of the node requests an EFA, or uses a device of the driver that
// publishes EFAs: it can publish only interfaces that the instance has.
func asksEFA(node planning.PlannedNode) bool {
	asked := node.Requests[karpenter.ResourceEFA]
	return !asked.IsZero() || slices.Contains(node.DeviceDrivers, catalog.EFADriver)
}

// interfaces returns the class's interfaces, or one EFA for each network card. With none, EC2 adds the
// default interface. Of several interfaces on different cards only the first is device 0, the primary
// interface.
func interfaces(class *karpenter.EC2NodeClass, efas int64) []cloud.NetworkInterface {
	var out []cloud.NetworkInterface
	for _, i := range class.Spec.NetworkInterfaces {
		out = append(out, cloud.NetworkInterface{Card: i.NetworkCardIndex, Device: i.DeviceIndex, Kind: string(i.InterfaceType)})
	}
	for card := range int32(efas) {
		out = append(out, cloud.NetworkInterface{Card: card, Device: min(card, 1), Kind: cloud.InterfaceEFA})
	}
	return out
}

func securityGroups(class *karpenter.EC2NodeClass) []string {
	var out []string
	for _, group := range class.Status.SecurityGroups {
		out = append(out, group.ID)
	}
	return out
}

func connections(class *karpenter.EC2NodeClass) *cloud.ConnectionTracking {
	c := class.Spec.ConnectionTracking
	if c == nil {
		return nil
	}
	return &cloud.ConnectionTracking{TCPEstablished: c.TCPEstablishedTimeout, UDPStream: c.UDPStreamTimeout, UDP: c.UDPTimeout}
}

func cpu(class *karpenter.EC2NodeClass) *cloud.CPUOptions {
	if class.Spec.CPUOptions == nil {
		return nil
	}
	return &cloud.CPUOptions{NestedVirtualization: value(class.Spec.CPUOptions.NestedVirtualization)}
}

// placement returns the class's placement group, with the lowest partition that the node may use,
// because EC2 takes one. It also has the tenancy, unless that is the default.
// A group of the catalogue is named by its id: EC2 accepts no names of groups that another account shares.
func placement(class *karpenter.EC2NodeClass, cat catalog.Catalogue, reqs planning.Requirements) *cloud.Placement {
	var out cloud.Placement
	if selector := class.Spec.PlacementGroupSelector; selector != nil {
		out = cloud.Placement{Group: value(selector.Name), GroupID: value(selector.ID), Partition: partition(reqs)}
		if group, known := cat.FindPlacementGroup(selector); known {
			out.Group, out.GroupID = "", group.ID
		}
	}
	if tenancy := planning.InstanceTenancy(reqs); tenancy != karpenter.TenancyDefault {
		out.Tenancy = tenancy
	}
	if out == (cloud.Placement{}) {
		return nil
	}
	return &out
}

// grouped adds the placement group's partition to the labels of a type. If EC2 chooses the partition,
// the label is empty: the node's registration waits until lifecycle knows the partition.
func (g *recipe) grouped(labels map[string]string) map[string]string {
	selector, p := g.class.Spec.PlacementGroupSelector, partition(g.requirements)
	if selector == nil || p == 0 && !g.parted(selector) {
		return labels
	}
	out := maps.Clone(labels)
	out[karpenter.LabelPlacementGroupPartition] = ""
	if p != 0 {
		out[karpenter.LabelPlacementGroupPartition] = strconv.Itoa(int(p))
	}
	return out
}

// parted reports whether the selected placement group has partitions.
func (g *recipe) parted(selector *karpenter.PlacementGroupSelector) bool {
	group, _ := g.catalogue.FindPlacementGroup(selector)
	return group.Strategy == catalog.PartitionStrategy
}

func partition(reqs planning.Requirements) int32 {
	values, _ := reqs[karpenter.LabelPlacementGroupPartition].ListValues()
	var numbers []int32
	for _, text := range values {
		if n, err := strconv.ParseInt(text, 10, 32); err == nil && n > 0 {
			numbers = append(numbers, int32(n))
		}
	}
	if len(numbers) == 0 {
		return 0
	}
	return slices.Min(numbers)
}
