package planning

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// The ConfigMap in Joist's namespace in which lifecycle remembers unavailable
// offerings, and its one entry.
const (
	UnavailableName = "joist-unavailable"
	UnavailableKey  = "offerings.json"
)

// ReadUnavailable reads the ConfigMap. A ConfigMap that cannot be decoded counts as empty:
// one more refused launch costs less than a failed plan.
func ReadUnavailable(object *corev1.ConfigMap) []Unavailable {
	var list []Unavailable
	if object == nil || json.Unmarshal([]byte(object.Data[UnavailableKey]), &list) != nil {
		return nil
	}
	return list
}

// Current returns the offerings that are unavailable at now.
func Current(list []Unavailable, now time.Time) []Unavailable {
	var out []Unavailable
	for _, u := range list {
		if u.Until.After(now) {
			out = append(out, u)
		}
	}
	return out
}

// SubnetUnavailable reports whether a subnet has run out of addresses, so that a
// launch should ask another of its zone.
func SubnetUnavailable(id string, s Snapshot) bool {
	return slices.ContainsFunc(s.Unavailable, func(u Unavailable) bool {
		return u.Subnet != "" && u.Subnet == id && s.Taken.Before(u.Until)
	})
}

// ReservationUnavailable reports whether a capacity reservation is left alone.
func ReservationUnavailable(id string, s Snapshot) bool {
	return slices.ContainsFunc(s.Unavailable, func(u Unavailable) bool {
		return u.Reservation != "" && u.Reservation == id && s.Taken.Before(u.Until)
	})
}

// OfferingUnavailable reports whether an offering is left alone for nodes of the class.
func OfferingUnavailable(o Option, class *karpenter.EC2NodeClass, s Snapshot) bool {
	subnets := false
	for _, u := range s.Unavailable {
		switch {
		case !s.Taken.Before(u.Until):
		case u.Reservation != "":
			// See reservationUnavailable.
		case u.Subnet != "":
			subnets = true
		case u.covers(o) && u.concerns(class):
			return true
		}
	}
	return subnets && outOfSubnets(o.Zone, class, s)
}

// covers compares field by field; an empty one means all.
func (u Unavailable) covers(o Option) bool {
	either := func(field, value string) bool { return field == "" || field == value }
	return either(u.InstanceType, o.InstanceType) && either(u.Zone, o.Zone) && either(u.CapacityType, o.CapacityType)
}

// concerns reports whether nodes of the class would go where it is short. An id
// cannot be compared with a class that selects by name: then it may be the same
// group, and leaving it alone is the cheaper mistake.
func (u Unavailable) concerns(class *karpenter.EC2NodeClass) bool {
	if u.PlacementGroup == "" {
		return true
	}
	selector := class.Spec.PlacementGroupSelector
	if selector == nil {
		return false
	}
	if selector.ID != nil {
		return *selector.ID == u.PlacementGroup || !strings.HasPrefix(u.PlacementGroup, "pg-")
	}
	return selector.Name != nil && (*selector.Name == u.PlacementGroup || strings.HasPrefix(u.PlacementGroup, "pg-"))
}

// outOfSubnets reports whether the class has subnets in the zone and none that
// has addresses left.
func outOfSubnets(zone string, class *karpenter.EC2NodeClass, s Snapshot) bool {
	any := false
	for _, n := range class.Status.Subnets {
		if n.Zone != zone {
			continue
		}
		if !SubnetUnavailable(n.ID, s) {
			return false
		}
		any = true
	}
	return any
}
