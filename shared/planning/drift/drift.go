// Package drift computes whether a NodeClaim still matches its NodePool and node class, for its
// condition Drifted. It is pure: the same View gives the same reason, in a cluster or in a simulation.
// It also evaluates the progress of replacing drifted nodes: see [Rollout].
//
// Invariants:
//
//   - The first reason in Karpenter's order is returned.
//   - If a check cannot be evaluated now (the instance is unknown, or a list of the class is
//     empty), it neither adds nor removes drift: the claim's condition stays.
package drift

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// The reasons of drift are Karpenter's.
const (
	NodePoolDrifted          = "NodePoolDrifted"
	RequirementsDrifted      = "RequirementsDrifted"
	InstanceTypeNotFound     = "InstanceTypeNotFound"
	NodeClassDrift           = "NodeClassDrift"
	AMIDrift                 = "AMIDrift"
	SecurityGroupDrift       = "SecurityGroupDrift"
	SubnetDrift              = "SubnetDrift"
	CapacityReservationDrift = "CapacityReservationDrift"
	PlacementGroupDrift      = "PlacementGroupDrift"
)

// typeAfter is how old a NodeClaim must be before its type may count as not found.
const typeAfter = time.Hour

// View is the input of the drift checks.
type View struct {
	Claim *karpenter.NodeClaim
	Pool  *karpenter.NodePool
	// Class is the pool's class; nil if it does not exist, which is not drift.
	Class *karpenter.EC2NodeClass
	// Instance is the instance in the last inventory; nil if it is not listed.
	Instance *event.Listed
	// Reservations is the feature gate ReservedCapacity.
	Reservations bool
	Now          time.Time
}

// Reason returns why the NodeClaim has drifted, or "". A NodeClaim that is not launched has not.
func Reason(v View) string {
	if !v.Claim.Status.Conditions.IsTrue(karpenter.ConditionTypeLaunched) {
		return ""
	}
	said, _ := v.Claim.Status.Conditions.Get(karpenter.ConditionTypeDrifted)
	kept := ""
	for _, one := range checks {
		switch one.look(v) {
		case yes:
			return one.reason
		case unknown:
			if said.Status == metav1.ConditionTrue && said.Reason == one.reason {
				kept = one.reason
			}
		}
	}
	return kept
}

// found is the result of one check.
type found int

const (
	no found = iota
	yes
	unknown
)

func when(drifted bool) found {
	if drifted {
		return yes
	}
	return no
}

var checks = []struct {
	reason string
	look   func(View) found
}{
	{NodePoolDrifted, View.template},
	{RequirementsDrifted, View.requirements},
	{InstanceTypeNotFound, View.instanceType},
	{NodeClassDrift, ofClass(View.class)},
	{AMIDrift, ofClass(View.image)},
	{SecurityGroupDrift, ofClass(ofInstance(View.securityGroups))},
	{SubnetDrift, ofClass(ofInstance(View.subnet))},
	{CapacityReservationDrift, ofClass(ofInstance(View.reservation))},
	{PlacementGroupDrift, ofClass(ofInstance(View.placementGroup))},
}

// ofClass wraps a check that needs the node class.
func ofClass(look func(View) found) func(View) found {
	return func(v View) found {
		if v.Class == nil || v.Class.DeletionTimestamp != nil {
			return no
		}
		return look(v)
	}
}

// ofInstance wraps a check that needs the instance. It is unknown if the inventory does not list the
// instance, or is from a catalog version that listed fewer fields.
func ofInstance(look func(View) found) func(View) found {
	return func(v View) found {
		if v.Instance == nil || v.Instance.SubnetID == "" {
			return unknown
		}
		return look(v)
	}
}

func (v View) template() found {
	return rehashed(v.Pool, v.Claim, karpenter.NodePoolHashAnnotationKey, karpenter.NodePoolHashVersionAnnotationKey)
}

func (v View) class() found {
	return rehashed(v.Class, v.Claim, karpenter.EC2NodeClassHashAnnotationKey, karpenter.EC2NodeClassHashVersionAnnotationKey)
}

// rehashed compares two hashes; no drift if one is missing or the versions differ.
func rehashed(of, claim metav1.Object, hash, version string) found {
	ours, theirs := claim.GetAnnotations(), of.GetAnnotations()
	for _, key := range []string{hash, version} {
		if ours[key] == "" || theirs[key] == "" {
			return no
		}
	}
	return when(ours[version] == theirs[version] && ours[hash] != theirs[hash])
}

// requirements compares the labels of the NodeClaim with the requirements of the pool. A missing label
// is absent, even a well-known one. As in Karpenter, contradictory requirements of the pool on a
// missing label are not drift, because no node could satisfy them.
func (v View) requirements() found {
	is := planning.NewLabelRequirements(v.Claim.Labels)
	for key, wanted := range planning.NewNodeClaimRequirements(v.Pool.Spec.Template.Spec.Requirements) {
		value, ok := is[key]
		if ok && value.Intersect(wanted).IsEmpty() || !ok && !wanted.AllowsAbsent() && !wanted.IsEmpty() {
			return yes
		}
	}
	return no
}

// instanceType checks whether the type is still offered, with the claim's capacity type and in a zone
// that still exists.
func (v View) instanceType() found {
	switch {
	case v.Now.Sub(v.Claim.CreationTimestamp.Time) <= typeAfter:
		return no
	case v.Claim.Labels[corev1.LabelInstanceTypeStable] == "":
		return yes
	case v.Instance == nil:
		return unknown
	}
	return when(v.Instance.Withdrawn)
}

// image compares the image with that of the class for such an instance. The result is unknown if the
// class has no images.
func (v View) image() found {
	if len(v.Class.Status.AMIs) == 0 || v.Claim.Status.ImageID == "" {
		return unknown
	}
	image, suits := instancetypes.FindImage(v.Claim.Labels, v.Class.Status.AMIs)
	return when(!suits || image.ID != v.Claim.Status.ImageID)
}

// securityGroups must be exactly those of the class.
func (v View) securityGroups() found {
	var wanted []string
	for _, group := range v.Class.Status.SecurityGroups {
		wanted = append(wanted, group.ID)
	}
	if len(wanted) == 0 || len(v.Instance.SecurityGroups) == 0 {
		return unknown
	}
	slices.Sort(wanted)
	return when(!slices.Equal(slices.Compact(wanted), slices.Compact(slices.Sorted(slices.Values(v.Instance.SecurityGroups)))))
}

func (v View) subnet() found {
	subnets := v.Class.Status.Subnets
	if len(subnets) == 0 {
		return unknown
	}
	return when(!slices.ContainsFunc(subnets, func(s karpenter.Subnet) bool { return s.ID == v.Instance.SubnetID }))
}

// reservation checks a NodeClaim that was launched into a reservation. An on-demand instance may also
// be in an open reservation that matches it, but that was not requested.
func (v View) reservation() found {
	if !v.Reservations || v.Claim.Labels[karpenter.CapacityTypeLabelKey] != karpenter.CapacityTypeReserved || v.Instance.Reservation == "" {
		return no
	}
	selected := func(r karpenter.CapacityReservation) bool { return r.ID == v.Instance.Reservation }
	return when(!slices.ContainsFunc(v.Class.Status.CapacityReservations, selected))
}

// placementGroup compares the placement group of the instance with that of the class.
func (v View) placementGroup() found {
	selector, is := v.Class.Spec.PlacementGroupSelector, v.Instance
	if selector == nil {
		return when(is.PlacementGroup != "" || is.PlacementGroupID != "")
	}
	other := selector.ID != nil && *selector.ID != is.PlacementGroupID || selector.Name != nil && *selector.Name != is.PlacementGroup
	return when(other)
}
