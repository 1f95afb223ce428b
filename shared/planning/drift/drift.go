// Package drift says whether a NodeClaim is still what its NodePool and node class
// ask for, as its condition Drifted does. It is pure: the same view gives the
// same reason, of a cluster as it is and of one as somebody thinks of making it. And it
// says how what replaces drifted nodes fares: see [Rollout].
//
// The invariants:
//
//   - The first reason that holds is the one that is told, in Karpenter's order.
//   - What cannot be looked at now (nobody has told of the instance, a list of the
//     class is empty) makes no drift, and takes none back: the claim's condition is
//     the memory of what was seen.
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

// The reasons of drift, which are Karpenter's.
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

// typeAfter is how old a claim must be before its type may be called missing.
const typeAfter = time.Hour

// View is all that decides.
type View struct {
	Claim *karpenter.NodeClaim
	Pool  *karpenter.NodePool
	// Class is the pool's, or nil: of a class that is gone nothing has drifted.
	Class *karpenter.EC2NodeClass
	// Instance is what the last inventory told of the claim's; nil for nothing.
	Instance *event.Listed
	// Reservations is the gate ReservedCapacity.
	Reservations bool
	Now          time.Time
}

// Reason is why the claim has drifted, or "". One that is not launched is nothing yet.
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

// found is what one check says.
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

// ofClass is for checks that compare with the class.
func ofClass(look func(View) found) func(View) found {
	return func(v View) found {
		if v.Class == nil || v.Class.DeletionTimestamp != nil {
			return no
		}
		return look(v)
	}
}

// ofInstance is for checks that compare the instance, which cannot be while nobody
// has told of it, or only a catalog from before it told this much.
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

// rehashed compares two hashes, where both are there and of one version.
func rehashed(of, claim metav1.Object, hash, version string) found {
	ours, theirs := claim.GetAnnotations(), of.GetAnnotations()
	for _, key := range []string{hash, version} {
		if ours[key] == "" || theirs[key] == "" {
			return no
		}
	}
	return when(ours[version] == theirs[version] && ours[hash] != theirs[hash])
}

// requirements compares what the claim turned out to be with what the pool wants: a
// label that it lacks is absent, whether it is a well-known one or not. As with
// Karpenter, that the pool contradicts itself is no reason to replace what lacks the
// label: nothing could.
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

// instanceType asks whether the type is still sold, by the claim's capacity type and
// in a zone that still exists.
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

// image compares the image with the one that the class has for such an instance. A
// class that has found none is being mended.
func (v View) image() found {
	if len(v.Class.Status.AMIs) == 0 || v.Claim.Status.ImageID == "" {
		return unknown
	}
	image, suits := instancetypes.FindImage(v.Claim.Labels, v.Class.Status.AMIs)
	return when(!suits || image.ID != v.Claim.Status.ImageID)
}

// securityGroups must be all those of the class, and no others.
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

// reservation compares that of a claim which was launched into one. An instance on
// demand may be in a reservation too, which takes whatever matches it, and nobody
// asked for that.
func (v View) reservation() found {
	if !v.Reservations || v.Claim.Labels[karpenter.CapacityTypeLabelKey] != karpenter.CapacityTypeReserved || v.Instance.Reservation == "" {
		return no
	}
	selected := func(r karpenter.CapacityReservation) bool { return r.ID == v.Instance.Reservation }
	return when(!slices.ContainsFunc(v.Class.Status.CapacityReservations, selected))
}

// placementGroup compares the group that the instance is in with the class's.
func (v View) placementGroup() found {
	selector, is := v.Class.Spec.PlacementGroupSelector, v.Instance
	if selector == nil {
		return when(is.PlacementGroup != "" || is.PlacementGroupID != "")
	}
	other := selector.ID != nil && *selector.ID != is.PlacementGroupID || selector.Name != nil && *selector.Name != is.PlacementGroup
	return when(other)
}
