// Package nodeclass decides what an EC2NodeClass's status says: its lists, and
// Karpenter's conditions with the reasons and remedies that the catalog and
// the launcher give.
//
// Everything is a function of the object, of one answer, and of the time. The
// invariants:
//
//   - A condition speaks of the generation that it was observed at; what was
//     answered about another spec changes nothing.
//   - What AWS did not tell (denied, throttled, unreachable) changes no list and
//     makes nothing false that was true: the condition says what could not be
//     read. Of a new spec it says Unknown, for nothing is known.
//   - What is not there is not kept: a selector that finds nothing leaves an empty
//     list, so that nothing is launched where nobody selected it.
//   - ValidationSucceeded has two judges, the catalog and the dry runs of the
//     launcher, and is true when neither objects; it waits for what they need.
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
)

// Policy is what settings decide about conditions.
type Policy struct {
	// Reservations is the gate ReservedCapacity.
	Reservations bool
	// DryRuns are waited for; off, the launcher is not asked for any.
	DryRuns bool
}

// editor changes one class's status.
type editor struct {
	Policy
	class *karpenter.EC2NodeClass
	now   time.Time
}

// Resolved is the class with what its selectors found. The class itself is left
// alone.
func Resolved(class *karpenter.EC2NodeClass, b event.NodeClassResolved, policy Policy, now time.Time) (*karpenter.EC2NodeClass, error) {
	e := editor{policy, class.DeepCopy(), now}
	status := &e.class.Status
	images, err := amis(b.Images)
	if err != nil {
		return nil, err
	}
	if e.part(karpenter.ConditionTypeSubnetsReady, b.Problems) {
		status.Subnets = subnets(b.Subnets)
	}
	if e.part(karpenter.ConditionTypeSecurityGroupsReady, b.Problems) {
		status.SecurityGroups = groups(b.SecurityGroups)
	}
	if e.part(karpenter.ConditionTypeAMIsReady, b.Problems) {
		status.AMIs = images
	}
	e.reservations(b)
	e.part(karpenter.ConditionTypePlacementGroupReady, b.Problems)
	if profile := own(e.class); profile != "" {
		status.InstanceProfile = profile
		e.set(karpenter.ConditionTypeInstanceProfileReady, metav1.ConditionTrue, "", "")
	}
	e.judge(problemOf(b.Problems, karpenter.ConditionTypeValidationSucceeded))
	return e.done(), nil
}

// Ensured is the class with what the launcher did and tried for it.
func Ensured(class *karpenter.EC2NodeClass, b event.NodeClassEnsured, policy Policy, now time.Time) *karpenter.EC2NodeClass {
	e := editor{policy, class.DeepCopy(), now}
	switch {
	case b.Problem != nil:
		// Also that what was made for a class which goes away could not be removed.
		e.set(karpenter.ConditionTypeInstanceProfileReady, metav1.ConditionFalse, b.Problem.Reason, b.Problem.Message)
	case own(e.class) != "":
	default:
		e.class.Status.InstanceProfile = b.Profile
		e.set(karpenter.ConditionTypeInstanceProfileReady, metav1.ConditionTrue, "", "")
	}
	e.dryRuns(b)
	return e.done()
}

// own is the instance profile that the class brings along, or "".
func own(class *karpenter.EC2NodeClass) string {
	if class.Spec.InstanceProfile == nil || class.Spec.Role != "" {
		return ""
	}
	return *class.Spec.InstanceProfile
}

func (e *editor) done() *karpenter.EC2NodeClass {
	e.wait()
	ready := karpenter.EC2NodeClassReady(e.Reservations)
	e.class.Status.Conditions = e.class.Status.Conditions.WithReady(ready, e.class.Generation, e.now)
	return e.class
}

// part sets a condition by its problem, and reports whether the list that goes
// with it is to be replaced.
func (e *editor) part(kind string, problems []event.Problem) (replace bool) {
	p := problemOf(problems, kind)
	switch {
	case p == nil:
		e.set(kind, metav1.ConditionTrue, "", "")
	case p.Unread:
		e.unread(kind, *p)
		return false
	case p.Warning:
		e.set(kind, metav1.ConditionTrue, p.Reason, p.Message)
	default:
		e.set(kind, metav1.ConditionFalse, p.Reason, p.Message)
	}
	return true
}

// unread keeps what is known of this spec, and says that it was not read again.
func (e *editor) unread(kind string, p event.Problem) {
	have, known := e.known(kind)
	switch {
	case !known:
		e.set(kind, metav1.ConditionUnknown, p.Reason, p.Message)
	case have.Status == metav1.ConditionTrue:
		e.set(kind, metav1.ConditionTrue, p.Reason, "what was found before is kept, because it could not be read again: "+p.Message)
	}
}

// known is the condition, if it was decided of this spec.
func (e *editor) known(kind string) (metav1.Condition, bool) {
	have, there := e.class.Status.Conditions.Get(kind)
	return have, there && have.ObservedGeneration == e.class.Generation && have.Status != metav1.ConditionUnknown
}

// set sets a condition. Without a reason it has its own type for one.
func (e *editor) set(kind string, status metav1.ConditionStatus, reason, message string) {
	e.class.Status.Conditions = e.class.Status.Conditions.With(metav1.Condition{
		Type: kind, Status: status, Reason: cmp.Or(reason, kind), Message: message, ObservedGeneration: e.class.Generation,
	}, e.now)
}

// reservations are there only with the gate.
func (e *editor) reservations(b event.NodeClassResolved) {
	const kind = karpenter.ConditionTypeCapacityReservationsReady
	if !e.Reservations {
		e.class.Status.CapacityReservations = nil
		e.class.Status.Conditions = e.class.Status.Conditions.Without(kind)
		return
	}
	if e.part(kind, b.Problems) {
		e.class.Status.CapacityReservations = capacity(b.Reservations)
	}
}

func problemOf(problems []event.Problem, kind string) *event.Problem {
	i := slices.IndexFunc(problems, func(p event.Problem) bool { return p.Condition == kind })
	if i < 0 {
		return nil
	}
	return &problems[i]
}

func subnets(in []event.Subnet) []karpenter.Subnet {
	var out []karpenter.Subnet
	for _, x := range in {
		out = append(out, karpenter.Subnet{ID: x.ID, Zone: x.Zone, ZoneID: x.ZoneID})
	}
	return out
}

func groups(in []event.SecurityGroup) []karpenter.SecurityGroup {
	var out []karpenter.SecurityGroup
	for _, x := range in {
		out = append(out, karpenter.SecurityGroup{ID: x.ID, Name: x.Name})
	}
	return out
}

func capacity(in []event.Reservation) []karpenter.CapacityReservation {
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

func amis(in []event.Image) ([]karpenter.AMI, error) {
	var out []karpenter.AMI
	for _, x := range in {
		// The schema demands the list, also where it is empty.
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

// sortedSubnets are by id: their order in the status follows free addresses, which
// are no part of what the class is.
func sortedSubnets(in []karpenter.Subnet) []karpenter.Subnet {
	out := slices.Clone(in)
	slices.SortFunc(out, func(a, b karpenter.Subnet) int { return strings.Compare(a.ID, b.ID) })
	return out
}
