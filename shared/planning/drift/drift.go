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

// checkResult is the result of one check.
type checkResult int

const (
	no checkResult = iota
	yes
	unknown
)

func resultOf(drifted bool) checkResult {
	if drifted {
		return yes
	}
	return no
}

var checks = []struct {
	reason string
	look   func(View) checkResult
}{
	{NodePoolDrifted, View.checkTemplate},
	{RequirementsDrifted, View.checkRequirements},
	{InstanceTypeNotFound, View.checkInstanceType},
	{NodeClassDrift, requireClass(View.checkClass)},
	{AMIDrift, requireClass(View.checkImage)},
	{SecurityGroupDrift, requireClass(requireInstance(View.checkSecurityGroups))},
	{SubnetDrift, requireClass(requireInstance(View.checkSubnet))},
	{CapacityReservationDrift, requireClass(requireInstance(View.checkReservation))},
	{PlacementGroupDrift, requireClass(requireInstance(View.checkPlacementGroup))},
}

// requireClass wraps a check that needs the node class.
func requireClass(look func(View) checkResult) func(View) checkResult {
	return func(v View) checkResult {
		if v.Class == nil || v.Class.DeletionTimestamp != nil {
			return no
		}
		return look(v)
	}
}

// requireInstance wraps a check that needs the instance. It is unknown if the inventory does not list the
// instance, or is from a catalog version that listed fewer fields.
func requireInstance(look func(View) checkResult) func(View) checkResult {
	return func(v View) checkResult {
		if v.Instance == nil || v.Instance.SubnetID == "" {
			return unknown
		}
		return look(v)
	}
}

func (v View) checkTemplate() checkResult {
	return compareHashes(v.Pool, v.Claim, karpenter.NodePoolHashAnnotationKey, karpenter.NodePoolHashVersionAnnotationKey)
}

func (v View) checkClass() checkResult {
	return compareHashes(v.Class, v.Claim, karpenter.EC2NodeClassHashAnnotationKey, karpenter.EC2NodeClassHashVersionAnnotationKey)
}

// compareHashes compares two hashes; no drift if one is missing or the versions differ.
func compareHashes(of, claim metav1.Object, hash, version string) checkResult {
	ours, theirs := claim.GetAnnotations(), of.GetAnnotations()
	for _, key := range []string{hash, version} {
		if ours[key] == "" || theirs[key] == "" {
			return no
		}
	}
	return resultOf(ours[version] == theirs[version] && ours[hash] != theirs[hash])
}

// checkRequirements compares the labels of the NodeClaim with the requirements of the pool. A missing label
// is absent, even a well-known one. As in Karpenter, contradictory requirements of the pool on a
// missing label are not drift, because no node could satisfy them.
func (v View) checkRequirements() checkResult {
	is := planning.NewLabelRequirements(v.Claim.Labels)
	for key, wanted := range planning.NewNodeClaimRequirements(v.Pool.Spec.Template.Spec.Requirements) {
		value, ok := is[key]
		if ok && value.Intersect(wanted).IsEmpty() || !ok && !wanted.AllowsAbsent() && !wanted.IsEmpty() {
			return yes
		}
	}
	return no
}

// checkInstanceType checks whether the type is still offered, with the claim's capacity type and in a zone
// that still exists.
func (v View) checkInstanceType() checkResult {
	switch {
	case v.Now.Sub(v.Claim.CreationTimestamp.Time) <= typeAfter:
		return no
	case v.Claim.Labels[corev1.LabelInstanceTypeStable] == "":
		return yes
	case v.Instance == nil:
		return unknown
	}
	return resultOf(v.Instance.Withdrawn)
}

// checkImage compares the image with that of the class for such an instance. The result is unknown if the
// class has no images.
func (v View) checkImage() checkResult {
	if len(v.Class.Status.AMIs) == 0 || v.Claim.Status.ImageID == "" {
		return unknown
	}
	image, suits := instancetypes.FindImage(v.Claim.Labels, v.Class.Status.AMIs)
	return resultOf(!suits || image.ID != v.Claim.Status.ImageID)
}

// checkSecurityGroups must be exactly those of the class.
func (v View) checkSecurityGroups() checkResult {
	var wanted []string
	for _, group := range v.Class.Status.SecurityGroups {
		wanted = append(wanted, group.ID)
	}
	if len(wanted) == 0 || len(v.Instance.SecurityGroups) == 0 {
		return unknown
	}
	slices.Sort(wanted)
	return resultOf(!slices.Equal(slices.Compact(wanted), slices.Compact(slices.Sorted(slices.Values(v.Instance.SecurityGroups)))))
}

func (v View) checkSubnet() checkResult {
	subnets := v.Class.Status.Subnets
	if len(subnets) == 0 {
		return unknown
	}
	return resultOf(!slices.ContainsFunc(subnets, func(s karpenter.Subnet) bool { return s.ID == v.Instance.SubnetID }))
}

// checkReservation checks a NodeClaim that was launched into a reservation. An on-demand instance may also
// be in an open reservation that matches it, but that was not requested.
func (v View) checkReservation() checkResult {
	if !v.Reservations || v.Claim.Labels[karpenter.CapacityTypeLabelKey] != karpenter.CapacityTypeReserved || v.Instance.Reservation == "" {
		return no
	}
	selected := func(r karpenter.CapacityReservation) bool { return r.ID == v.Instance.Reservation }
	return resultOf(!slices.ContainsFunc(v.Class.Status.CapacityReservations, selected))
}

// checkPlacementGroup compares the placement group of the instance with that of the class.
func (v View) checkPlacementGroup() checkResult {
	selector, is := v.Class.Spec.PlacementGroupSelector, v.Instance
	if selector == nil {
		return resultOf(is.PlacementGroup != "" || is.PlacementGroupID != "")
	}
	other := selector.ID != nil && *selector.ID != is.PlacementGroupID || selector.Name != nil && *selector.Name != is.PlacementGroup
	return resultOf(other)
}
