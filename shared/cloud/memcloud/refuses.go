package memcloud

import (
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
)

// unlaunchable returns why a candidate can launch no instance at all: a resource is missing or does not match.
func (c *Cloud) unlaunchable(from candidate) *Refusal {
	t := c.templates[from.template]
	if t == nil || c.clock.Before(t.usable) {
		return &Refusal{"InvalidLaunchTemplateName.NotFoundException",
			fmt.Sprintf("The specified launch template, with template name %s, does not exist.", from.template)}
	}
	for _, check := range []func(candidate, cloud.Template) *Refusal{c.badNetwork, c.badImage, c.badPlacement, c.badOffering} {
		if refusal := check(from, t.Template); refusal != nil {
			return refusal
		}
	}
	return nil
}

func (c *Cloud) badNetwork(from candidate, t cloud.Template) *Refusal {
	s := c.subnets[from.SubnetID]
	if s == nil {
		return &Refusal{"InvalidSubnetID.NotFound", fmt.Sprintf("The subnet ID '%s' does not exist", from.SubnetID)}
	}
	if from.Zone != "" && from.Zone != s.Zone {
		return &Refusal{"InvalidParameterValue",
			fmt.Sprintf("The subnet %s is in %s and not in %s.", s.ID, s.Zone, from.Zone)}
	}
	for _, id := range t.SecurityGroups {
		if !slices.ContainsFunc(c.groups, func(g cloud.SecurityGroup) bool { return g.ID == id }) {
			return &Refusal{"InvalidGroup.NotFound", fmt.Sprintf("The security group '%s' does not exist", id)}
		}
	}
	if name := t.InstanceProfile; name != "" && c.profiles[name] == nil {
		return &Refusal{"InvalidParameterValue",
			fmt.Sprintf("Value (%s) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name", name)}
	}
	return nil
}

func (c *Cloud) badPlacement(from candidate, t cloud.Template) *Refusal {
	group, in := c.group(t.Placement)
	hardware, known := c.types[from.InstanceType]
	if !in || !known || hardware.AcceptsPlacement(group.Strategy) {
		return nil
	}
	return &Refusal{"InvalidParameterCombination",
		fmt.Sprintf("%s placement groups are not supported by the '%s' instance type.", group.Strategy, from.InstanceType)}
}

func (c *Cloud) badImage(from candidate, t cloud.Template) *Refusal {
	id := t.ImageID
	if from.ImageID != "" {
		id = from.ImageID
	}
	at := slices.IndexFunc(c.images, func(i cloud.Image) bool { return i.ID == id })
	if at < 0 {
		return &Refusal{"InvalidAMIID.NotFound", fmt.Sprintf("The image id '[%s]' does not exist", id)}
	}
	hardware, ok := c.types[from.InstanceType]
	if ok && hardware.Arch != c.images[at].Arch {
		return &Refusal{"InvalidParameterValue", fmt.Sprintf(
			"The architecture '%s' of the specified instance type does not match the architecture '%s' of the specified AMI.",
			hardware.Arch, c.images[at].Arch)}
	}
	return nil
}

func (c *Cloud) badOffering(from candidate, t cloud.Template) *Refusal {
	if refusal := c.badType(from, t); refusal != nil {
		return refusal
	}
	if c.offers[from.offering] == nil {
		return refuseType(from.InstanceType, from.offering.Zone)
	}
	if code := c.blockedBy(from.offering); code != "" {
		return &Refusal{code, fmt.Sprintf("There is no %s capacity for %s in %s.",
			from.offering.CapacityType, from.InstanceType, from.offering.Zone)}
	}
	return nil
}

// badType refuses a type that the region or the zone does not offer with any capacity type.
func (c *Cloud) badType(from candidate, _ cloud.Template) *Refusal {
	if _, ok := c.types[from.InstanceType]; !ok {
		return &Refusal{"InvalidParameterValue", fmt.Sprintf("Invalid value '%s' for InstanceType.", from.InstanceType)}
	}
	zone := c.zoneOf(from.Override)
	for _, capacityType := range []string{cloud.OnDemand, cloud.Spot, cloud.Reserved} {
		if c.offers[event.Offering{InstanceType: from.InstanceType, Zone: zone, CapacityType: capacityType}] != nil {
			return nil
		}
	}
	return refuseType(from.InstanceType, zone)
}

func refuseType(instanceType, zone string) *Refusal {
	return &Refusal{"Unsupported", fmt.Sprintf(
		"Your requested instance type (%s) is not supported in your requested Availability Zone (%s).", instanceType, zone)}
}

// exhausted returns why a candidate can launch no further instance.
func (c *Cloud) exhausted(from candidate) *Refusal {
	if offer := c.offers[from.offering]; offer.counted && offer.free == 0 {
		return c.short(from)
	}
	if refusal := c.overbooked(from); refusal != nil {
		return refusal
	}
	if c.subnets[from.SubnetID].full() {
		return &Refusal{"InsufficientFreeAddressesInSubnet", fmt.Sprintf(
			"There are not enough free addresses in subnet '%s' to satisfy the requested number of instances.", from.SubnetID)}
	}
	return nil
}

// short is the normal shortage of an offering.
func (c *Cloud) short(from candidate) *Refusal {
	return &Refusal{shortOf(from.offering.CapacityType), fmt.Sprintf(
		"We currently do not have sufficient %s capacity in the Availability Zone you requested (%s).",
		from.InstanceType, from.offering.Zone)}
}

func shortOf(capacityType string) string {
	if capacityType == cloud.Reserved {
		return "ReservationCapacityExceeded"
	}
	return "InsufficientInstanceCapacity"
}
