package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// taken is the time of a scenario. Plans do not depend on the date.
var taken = time.Unix(0, 0).UTC()

// stockOf sets the instance types for every node class that a NodePool uses, and those classes, and
// returns the types by name. The classes have all zones and an image for each architecture, so they
// exclude no type.
func (s *Scenario) stockOf(types []instanceType) map[string]*instancetypes.Type {
	all := make([]instancetypes.Type, 0, len(types))
	for i := range types {
		if !slices.Contains(types[i].OS, catalog.Linux) {
			s.note("instance type %s does not run linux, and its offerings are left out", types[i].Name)
			types[i].Offerings = nil
		}
		all = append(all, s.typeOf(&types[i]))
	}
	s.stock = instancetypes.InstanceTypes{Region: regionOf(types), ByNodeClass: map[string][]instancetypes.Type{}}
	for _, pool := range s.NodePools {
		ref := pool.Spec.Template.Spec.NodeClassRef
		if ref == nil {
			continue // The planner reports this for the pool.
		}
		if _, known := s.stock.ByNodeClass[ref.Name]; !known {
			s.stock.ByNodeClass[ref.Name] = all
			s.classes = append(s.classes, classOf(ref.Name, types))
		}
	}
	byName := map[string]*instancetypes.Type{}
	for i := range all {
		byName[all[i].Name] = &all[i]
	}
	return byName
}

// note adds a note, unless it is already there.
func (s *Scenario) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(s.Notes, text) {
		s.Notes = append(s.Notes, text)
	}
}

func (s *Scenario) typeOf(t *instanceType) instancetypes.Type {
	out := instancetypes.Type{Name: t.Name, Labels: labelsOf(t), Capacity: t.Capacity, Allocatable: t.Capacity.DeepCopy(), Exotic: exotic(t), DeviceTemplates: t.DeviceTemplates, DeviceBindings: t.DeviceBindings}
	for name, kept := range t.Overhead {
		left := out.Allocatable[name]
		left.Sub(kept)
		out.Allocatable[name] = left
	}
	if out.Exotic {
		s.exotic[t.Name] = true
	}
	for _, o := range t.Offerings {
		if o.CapacityType == karpenter.CapacityTypeReserved {
			s.note("reserved offerings are left out: they are launched by the id of a reservation, which the format does not have")
			continue
		}
		out.Offerings = append(out.Offerings, instancetypes.InstanceOffering{
			PricedOffering: planning.PricedOffering{
				Offering: event.Offering{InstanceType: t.Name, Zone: o.Zone, CapacityType: o.CapacityType},
				ZoneID:   o.ZoneID, PricePerHour: *o.Price,
			},
			Available: *o.Available,
		})
	}
	return out
}

// labelsOf returns the labels of the type, including those from its other fields.
func labelsOf(t *instanceType) map[string]string {
	out := make(map[string]string, len(t.Labels)+3)
	maps.Copy(out, t.Labels)
	out[corev1.LabelInstanceTypeStable] = t.Name
	out[corev1.LabelArchStable] = t.Arch
	out[corev1.LabelOSStable] = catalog.Linux
	return out
}

// exotic reports whether the type is bare metal or has resources that ordinary pods do not use.
func exotic(t *instanceType) bool {
	if strings.HasPrefix(catalog.ParseName(t.Name).Size, "metal") {
		return true
	}
	return slices.ContainsFunc(karpenter.ExoticResources(), func(name corev1.ResourceName) bool {
		quantity := t.Capacity[name]
		return quantity.Sign() > 0
	})
}

// regionOf returns the region from the first type with that label, or else from the name of a zone.
func regionOf(types []instanceType) string {
	zone := ""
	for _, t := range types {
		if region := t.Labels[corev1.LabelTopologyRegion]; region != "" {
			return region
		}
		if zone == "" && len(t.Offerings) > 0 {
			zone = t.Offerings[0].Zone
		}
	}
	return strings.TrimRight(zone, "abcdefghijklmnopqrstuvwxyz")
}

// classOf returns a ready node class with everything that the types need.
func classOf(name string, types []instanceType) karpenter.EC2NodeClass {
	out := karpenter.EC2NodeClass{Spec: karpenter.EC2NodeClassSpec{AMIFamily: new(karpenter.AMIFamilyAL2023)}}
	out.Name = name
	zones := map[string]string{}
	for _, t := range types {
		for _, o := range t.Offerings {
			zones[o.Zone] = o.ZoneID
		}
	}
	if len(zones) == 0 {
		// Without types nothing can be bought, but the class is still ready.
		zones["none"] = ""
	}
	for _, zone := range slices.Sorted(maps.Keys(zones)) {
		out.Status.Subnets = append(out.Status.Subnets, karpenter.Subnet{ID: "subnet-" + zone, Zone: zone, ZoneID: zones[zone]})
	}
	// An image without requirements boots every architecture.
	out.Status.AMIs = []karpenter.AMI{{ID: "ami-scenario"}}
	out.Status.SecurityGroups = []karpenter.SecurityGroup{{ID: "sg-scenario"}}
	out.Status.InstanceProfile = "scenario"
	out.Status.Conditions = out.Status.Conditions.With(ready(), taken)
	return out
}
