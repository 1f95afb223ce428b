package planning

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// The ConfigMap in Joist's namespace in which lifecycle stores unavailable offerings, and its only
// key.
const (
	UnavailableConfigMapName = "joist-unavailable"
	UnavailableKey           = "offerings.json"
)

// UnavailableTTL is how long an offering is not launched after a failure.
const UnavailableTTL = 3 * time.Minute

// A NodePool whose launch EC2 refused for a reason other than capacity launches nothing for
// minLaunchPause, and twice as long after each further refusal in a row, up to maxLaunchPause.
const (
	minLaunchPause = time.Second
	maxLaunchPause = time.Minute
)

// ReservationFullCode is EC2's error code for a launch into a capacity reservation without free
// capacity.
const ReservationFullCode = "ReservationCapacityExceeded"

// ReadUnavailable reads the ConfigMap. A ConfigMap that cannot be decoded counts as empty:
// one more refused launch costs less than a failed plan.
func ReadUnavailable(object *corev1.ConfigMap) []Unavailable {
	var list []Unavailable
	if object == nil || json.Unmarshal([]byte(object.Data[UnavailableKey]), &list) != nil {
		return nil
	}
	return list
}

// FilterUnavailable returns the offerings that are unavailable at now.
func FilterUnavailable(list []Unavailable, now time.Time) []Unavailable {
	var out []Unavailable
	for _, u := range list {
		if u.Until.After(now) {
			out = append(out, u)
		}
	}
	return out
}

// IsSubnetUnavailable reports whether a subnet has no free addresses, so that a launch should use
// another subnet of its zone.
func IsSubnetUnavailable(id string, s Snapshot) bool {
	return slices.ContainsFunc(s.Unavailable, func(u Unavailable) bool {
		return u.Subnet != "" && u.Subnet == id && s.TakenAt.Before(u.Until)
	})
}

// IsReservationUnavailable reports whether a capacity reservation must not be used now. A full
// reservation is available.
func IsReservationUnavailable(id string, s Snapshot) bool {
	return slices.ContainsFunc(s.Unavailable, func(u Unavailable) bool {
		return u.Reservation != "" && u.Reservation == id && s.TakenAt.Before(u.Until) && !u.IsReservationFull()
	})
}

// IsReservationFull reports whether EC2 rejected a launch because the reservation was full, and has not
// been asked for the reservation's free capacity since, at counted.
func IsReservationFull(id string, counted time.Time, s Snapshot) bool {
	return slices.ContainsFunc(s.Unavailable, func(u Unavailable) bool {
		return u.Reservation == id && s.TakenAt.Before(u.Until) && u.IsReservationFull() && counted.Before(u.Until.Add(-UnavailableTTL))
	})
}

// IsReservationFull reports whether the entry only means that a reservation has no free capacity.
func (u Unavailable) IsReservationFull() bool {
	return u.Reservation != "" && u.Reason == ReservationFullCode
}

// IsOfferingUnavailable reports whether nodes of the class must not use an offering now.
func IsOfferingUnavailable(o PricedOffering, class *karpenter.EC2NodeClass, s Snapshot) bool {
	subnets := false
	for _, u := range s.Unavailable {
		switch {
		case !s.TakenAt.Before(u.Until):
		case u.Reservation != "" || u.NodePool != "":
			// See IsReservationUnavailable and ExplainLaunchPause.
		case u.Subnet != "":
			subnets = true
		case u.matchesOffering(o) && u.appliesToClass(class):
			return true
		}
	}
	return subnets && hasNoSubnetLeft(o.Zone, class, s)
}

// LaunchPause returns how long a NodePool launches nothing after that many refused launches in a row:
// it doubles from a second to a minute.
func LaunchPause(refused int) time.Duration {
	pause := minLaunchPause
	for i := 1; i < refused && pause < maxLaunchPause; i++ {
		pause *= 2
	}
	return min(pause, maxLaunchPause)
}

// LaunchSpecKey identifies the specs from which a NodePool's nodes are launched.
func LaunchSpecKey(np *karpenter.NodePool, class *karpenter.EC2NodeClass) string {
	return fmt.Sprintf("%s/%d %s/%d", np.UID, np.Generation, class.UID, class.Generation)
}

// ExplainLaunchPause returns why the launches of a NodePool are paused and until when; "" if they are
// not.
func ExplainLaunchPause(np *karpenter.NodePool, s *Snapshot) string {
	ref := np.Spec.Template.Spec.NodeClassRef
	for _, u := range s.Unavailable {
		if u.NodePool != np.Name || ref == nil || !s.TakenAt.Before(u.Until) {
			continue
		}
		at := slices.IndexFunc(s.NodeClasses, func(c karpenter.EC2NodeClass) bool { return c.Name == ref.Name })
		if at >= 0 && u.SpecKey == LaunchSpecKey(np, &s.NodeClasses[at]) {
			return fmt.Sprintf("EC2 refused %s of the NodePool with %s. Joist tries again at %s, or when the NodePool or its EC2NodeClass changes",
				countLaunches(u.Refused), u.Reason, u.Until.UTC().Format(time.RFC3339))
		}
	}
	return ""
}

func countLaunches(refused int) string {
	if refused == 1 {
		return "a launch"
	}
	return fmt.Sprintf("%d launches in a row", refused)
}

// matchesOffering compares all fields; an empty field matches every value.
func (u Unavailable) matchesOffering(o PricedOffering) bool {
	either := func(field, value string) bool { return field == "" || field == value }
	return either(u.InstanceType, o.InstanceType) && either(u.Zone, o.Zone) && either(u.CapacityType, o.CapacityType)
}

// appliesToClass reports whether the entry applies to nodes of the class. The id of a placement group
// cannot be compared with a class that selects by name. The entry then applies, because it may be the
// same group, and an unused offering costs less than a failed launch.
func (u Unavailable) appliesToClass(class *karpenter.EC2NodeClass) bool {
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

// hasNoSubnetLeft reports whether the class has subnets in the zone, but all are without free
// addresses.
func hasNoSubnetLeft(zone string, class *karpenter.EC2NodeClass, s Snapshot) bool {
	any := false
	for _, n := range class.Status.Subnets {
		if n.Zone != zone {
			continue
		}
		if !IsSubnetUnavailable(n.ID, s) {
			return false
		}
		any = true
	}
	return any
}
