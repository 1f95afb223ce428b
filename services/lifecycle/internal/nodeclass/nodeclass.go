// Package nodeclass computes the status of EC2NodeClasses: the resolved resources and Karpenter's
// conditions, with the reasons and messages from the catalog and the launcher. It is pure.
//
// The invariants:
//   - A condition has the generation for which it was observed. Results for another generation change
//     nothing.
//   - An error of AWS (denied, throttled, unreachable) changes no resolved resources and makes no True
//     condition False. The condition's message contains the error. For a new generation the condition
//     is Unknown.
//   - A selector that finds nothing gives an empty list, so that nothing is launched there.
//   - ValidationSucceeded depends on the catalog and on the launcher's dry runs. It is True if neither
//     reports a problem, and waits for the conditions that dry runs need.
package nodeclass

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// Policy contains the settings that affect conditions.
type Policy struct {
	// Reservations is the feature gate ReservedCapacity.
	Reservations bool
	// SharedGPUs is the feature gate DRANVIDIAGPU.
	SharedGPUs bool
	// DryRuns reports that validation waits for dry runs. Without it the launcher makes none.
	DryRuns bool
}

// statusEditor changes the status of one class.
type statusEditor struct {
	Policy
	class *karpenter.EC2NodeClass
	now   time.Time
}

// ApplyResolved returns a copy of the class with the resources that its selectors resolve to.
func ApplyResolved(class *karpenter.EC2NodeClass, b event.NodeClassResolved, policy Policy, now time.Time) (*karpenter.EC2NodeClass, error) {
	e := statusEditor{policy, class.DeepCopy(), now}
	status := &e.class.Status
	images, err := toAMIs(b.Images)
	if err != nil {
		return nil, err
	}
	if e.applyProblem(karpenter.ConditionTypeSubnetsReady, b.Problems) {
		status.Subnets = toSubnets(b.Subnets)
	}
	if e.applyProblem(karpenter.ConditionTypeSecurityGroupsReady, b.Problems) {
		status.SecurityGroups = toSecurityGroups(b.SecurityGroups)
	}
	if e.applyProblem(karpenter.ConditionTypeAMIsReady, b.Problems) {
		status.AMIs = images
	}
	e.updateReservations(b)
	e.applyProblem(karpenter.ConditionTypePlacementGroupReady, b.Problems)
	if profile := ownProfile(e.class); profile != "" {
		status.InstanceProfile = profile
		e.setCondition(karpenter.ConditionTypeInstanceProfileReady, metav1.ConditionTrue, "", "")
	}
	e.applyValidation(cmp.Or(e.checkGPUSharing(), findProblem(b.Problems, conditionValidated)))
	return e.finish(), nil
}

// ApplyEnsured returns a copy of the class with the launcher's results: instance profile and dry
// runs.
func ApplyEnsured(class *karpenter.EC2NodeClass, b event.NodeClassEnsured, policy Policy, now time.Time) *karpenter.EC2NodeClass {
	e := statusEditor{policy, class.DeepCopy(), now}
	switch {
	case b.Problem != nil:
		// This includes errors of deleting the managed profile of a class that is being deleted.
		e.setCondition(karpenter.ConditionTypeInstanceProfileReady, metav1.ConditionFalse, b.Problem.Reason, b.Problem.Message)
	case ownProfile(e.class) != "":
	default:
		e.class.Status.InstanceProfile = b.Profile
		e.setCondition(karpenter.ConditionTypeInstanceProfileReady, metav1.ConditionTrue, "", "")
	}
	e.applyDryRuns(b)
	return e.finish()
}

// ownProfile returns the instance profile that the class specifies, or "".
func ownProfile(class *karpenter.EC2NodeClass) string {
	if class.Spec.InstanceProfile == nil || class.Spec.Role != "" {
		return ""
	}
	return *class.Spec.InstanceProfile
}

func (e *statusEditor) finish() *karpenter.EC2NodeClass {
	e.awaitDependencies()
	ready := karpenter.EC2NodeClassReady(e.Reservations)
	e.class.Status.Conditions = e.class.Status.Conditions.WithReady(ready, e.class.Generation, e.now)
	return e.class
}

// applyProblem sets a condition from its problem, and reports whether its resolved resources have
// to be replaced.
func (e *statusEditor) applyProblem(kind string, problems []event.Problem) (replace bool) {
	p := findProblem(problems, kind)
	switch {
	case p == nil:
		e.setCondition(kind, metav1.ConditionTrue, "", "")
	case p.Unread:
		e.keepUnread(kind, *p)
		return false
	case p.Warning:
		e.setCondition(kind, metav1.ConditionTrue, p.Reason, p.Message)
	default:
		e.setCondition(kind, metav1.ConditionFalse, p.Reason, p.Message)
	}
	return true
}

// keepUnread keeps the condition of this generation and adds to its message that it could not be
// read again.
func (e *statusEditor) keepUnread(kind string, p event.Problem) {
	have, known := e.currentCondition(kind)
	switch {
	case !known:
		e.setCondition(kind, metav1.ConditionUnknown, p.Reason, p.Message)
	case have.Status == metav1.ConditionTrue:
		e.setCondition(kind, metav1.ConditionTrue, p.Reason, "the previous result is kept, because it could not be read again: "+p.Message)
	}
}

// currentCondition returns the condition if it was decided for this generation.
func (e *statusEditor) currentCondition(kind string) (metav1.Condition, bool) {
	have, there := e.class.Status.Conditions.Get(kind)
	return have, there && have.ObservedGeneration == e.class.Generation && have.Status != metav1.ConditionUnknown
}

// setCondition sets a condition. The reason defaults to its type.
func (e *statusEditor) setCondition(kind string, status metav1.ConditionStatus, reason, message string) {
	e.class.Status.Conditions = e.class.Status.Conditions.With(metav1.Condition{
		Type: kind, Status: status, Reason: cmp.Or(reason, kind), Message: message, ObservedGeneration: e.class.Generation,
	}, e.now)
}

// updateReservations sets capacity reservations if their feature gate is on.
func (e *statusEditor) updateReservations(b event.NodeClassResolved) {
	const kind = karpenter.ConditionTypeCapacityReservationsReady
	if !e.Reservations {
		e.class.Status.CapacityReservations = nil
		e.class.Status.Conditions = e.class.Status.Conditions.Without(kind)
		return
	}
	if e.applyProblem(kind, b.Problems) {
		e.class.Status.CapacityReservations = toReservations(b.Reservations)
	}
}

func findProblem(problems []event.Problem, kind string) *event.Problem {
	i := slices.IndexFunc(problems, func(p event.Problem) bool { return p.Condition == kind })
	if i < 0 {
		return nil
	}
	return &problems[i]
}

func toSubnets(in []event.Subnet) []karpenter.Subnet {
	var out []karpenter.Subnet
	for _, x := range in {
		out = append(out, karpenter.Subnet{ID: x.ID, Zone: x.Zone, ZoneID: x.ZoneID})
	}
	return out
}

func toSecurityGroups(in []event.SecurityGroup) []karpenter.SecurityGroup {
	var out []karpenter.SecurityGroup
	for _, x := range in {
		out = append(out, karpenter.SecurityGroup{ID: x.ID, Name: x.Name})
	}
	return out
}

func toReservations(in []event.Reservation) []karpenter.CapacityReservation {
	var out []karpenter.CapacityReservation
	for _, x := range in {
		r := karpenter.CapacityReservation{
			ID: x.ID, InstanceType: x.InstanceType, AvailabilityZone: x.Zone, OwnerID: x.OwnerID,
			InstanceMatchCriteria: x.MatchCriteria, ReservationType: karpenter.CapacityReservationType(x.Kind),
			Interruptible: x.Interruptible, State: karpenter.CapacityReservationStateActive,
		}
		if x.Expiring {
			r.State = karpenter.CapacityReservationStateExpiring
		}
		if !x.Ends.IsZero() {
			r.EndTime = &metav1.Time{Time: x.Ends}
		}
		out = append(out, r)
	}
	return out
}

func toAMIs(in []event.Image) ([]karpenter.AMI, error) {
	var out []karpenter.AMI
	for _, x := range in {
		// The schema requires the list even if it is empty.
		ami := karpenter.AMI{ID: x.ID, Name: x.Name, Deprecated: x.Deprecated, Requirements: []corev1.NodeSelectorRequirement{}}
		if len(x.Requirements) > 0 {
			if err := json.Unmarshal(x.Requirements, &ami.Requirements); err != nil {
				return nil, fault.E("reading the requirements of image "+x.ID, fault.Poison, err)
			}
		}
		out = append(out, ami)
	}
	return out, nil
}

// sortedSubnets returns the subnets sorted by id. Their order in the status depends on free
// addresses, which do not concern the class.
func sortedSubnets(in []karpenter.Subnet) []karpenter.Subnet {
	out := slices.Clone(in)
	slices.SortFunc(out, func(a, b karpenter.Subnet) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// WithoutProfile returns the class without launchspec.ProfileAnnotation, because the managed profile is
// deleted.
func WithoutProfile(class *karpenter.EC2NodeClass) *karpenter.EC2NodeClass {
	class = class.DeepCopy()
	delete(class.Annotations, launchspec.ProfileAnnotation)
	return class
}
