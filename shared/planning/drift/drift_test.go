package drift_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/drift"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// view returns a two-hour-old NodeClaim that matches its pool and class, with changes.
func view(changes ...func(*drift.View)) drift.View {
	v := drift.View{
		Claim: &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{
			Name: "c", CreationTimestamp: metav1.NewTime(noon.Add(-2 * time.Hour)),
			Labels: map[string]string{
				corev1.LabelInstanceTypeStable: "m6i.large", corev1.LabelArchStable: "amd64", corev1.LabelTopologyZone: "a",
				karpenter.CapacityTypeLabelKey: "on-demand", "team": "web",
			},
			Annotations: map[string]string{
				karpenter.NodePoolHashAnnotationKey: "1", karpenter.NodePoolHashVersionAnnotationKey: "v3",
				karpenter.EC2NodeClassHashAnnotationKey: "2", karpenter.EC2NodeClassHashVersionAnnotationKey: "v6",
			},
		}},
		Pool: &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			karpenter.NodePoolHashAnnotationKey: "1", karpenter.NodePoolHashVersionAnnotationKey: "v3",
		}}},
		Class: &karpenter.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			karpenter.EC2NodeClassHashAnnotationKey: "2", karpenter.EC2NodeClassHashVersionAnnotationKey: "v6",
		}}},
		Instance: &event.Listed{
			InstanceID: "i-1", SubnetID: "subnet-1", SecurityGroups: []string{"sg-1", "sg-2"},
			Offering: event.Offering{InstanceType: "m6i.large", Zone: "a", CapacityType: "on-demand"},
		},
		Reservations: true, Now: noon,
	}
	v.Claim.Status.ImageID = "ami-amd"
	v.Claim.Status.Conditions = v.Claim.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeLaunched, Status: metav1.ConditionTrue}, noon)
	v.Class.Status.AMIs = []karpenter.AMI{image("ami-arm", "arm64"), image("ami-amd", "amd64"), image("ami-amd-2", "amd64")}
	v.Class.Status.Subnets = []karpenter.Subnet{{ID: "subnet-2"}, {ID: "subnet-1"}}
	v.Class.Status.SecurityGroups = []karpenter.SecurityGroup{{ID: "sg-2"}, {ID: "sg-1"}}
	v.Class.Status.CapacityReservations = []karpenter.CapacityReservation{{ID: "cr-1"}}
	for _, change := range changes {
		change(&v)
	}
	return v
}

func image(id, arch string) karpenter.AMI {
	return karpenter.AMI{ID: id, Requirements: []corev1.NodeSelectorRequirement{{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{arch}}}}
}

func wants(key string, operator corev1.NodeSelectorOperator, values ...string) func(*drift.View) {
	return func(v *drift.View) {
		v.Pool.Spec.Template.Spec.Requirements = append(v.Pool.Spec.Template.Spec.Requirements,
			karpenter.NodeSelectorRequirementWithMinValues{Key: key, Operator: operator, Values: values})
	}
}

func reserved(id string) func(*drift.View) {
	return func(v *drift.View) {
		v.Claim.Labels[karpenter.CapacityTypeLabelKey] = karpenter.CapacityTypeReserved
		v.Instance.CapacityType, v.Instance.Reservation = karpenter.CapacityTypeReserved, id
	}
}

func grouped(name, id string) func(*drift.View) {
	return func(v *drift.View) { v.Instance.PlacementGroup, v.Instance.PlacementGroupID = name, id }
}

func TestReason(t *testing.T) {
	const in, notIn, exists, gone = corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist
	one := func(changes ...func(*drift.View)) []func(*drift.View) { return changes }
	for _, test := range []struct {
		name string
		with []func(*drift.View)
		want string
	}{
		{"no change", nil, ""},

		{"pool template changed", one(func(v *drift.View) { v.Pool.Annotations[karpenter.NodePoolHashAnnotationKey] = "9" }), drift.NodePoolDrifted},
		{"pool hash has another version", one(func(v *drift.View) {
			v.Pool.Annotations[karpenter.NodePoolHashAnnotationKey], v.Pool.Annotations[karpenter.NodePoolHashVersionAnnotationKey] = "9", "v4"
		}), ""},
		{"pool has no hash", one(func(v *drift.View) { v.Pool.Annotations = nil }), ""},
		{"claim has no hash", one(func(v *drift.View) { delete(v.Claim.Annotations, karpenter.NodePoolHashAnnotationKey) }), ""},

		{"pool requires another zone", one(wants(corev1.LabelTopologyZone, in, "b", "c")), drift.RequirementsDrifted},
		{"pool allows its zone", one(wants(corev1.LabelTopologyZone, in, "b", "a")), ""},
		{"pool requires another zone by the beta label", one(wants(corev1.LabelFailureDomainBetaZone, in, "b")), drift.RequirementsDrifted},
		{"pool requires a missing label", one(wants("tier", exists)), drift.RequirementsDrifted},
		{"pool requires a missing well-known label", one(wants(karpenter.LabelInstanceFamily, in, "m6i")), drift.RequirementsDrifted},
		{"pool excludes a value of a missing label", one(wants("tier", notIn, "gold")), ""},
		{"contradictory requirements of a missing label", one(wants("tier", in, "gold"), wants("tier", in, "silver")), ""},
		{"contradictory requirements of an existing label", one(wants("team", in, "db"), wants("team", in, "web")), drift.RequirementsDrifted},
		{"pool requires an existing label to be absent", one(wants("team", gone)), drift.RequirementsDrifted},

		{"instance type withdrawn", one(func(v *drift.View) { v.Instance.Withdrawn = true }), drift.InstanceTypeNotFound},
		{"instance type withdrawn, claim one hour old", one(func(v *drift.View) {
			v.Instance.Withdrawn, v.Claim.CreationTimestamp = true, metav1.NewTime(noon.Add(-time.Hour))
		}), ""},
		{"claim has no instance type label", one(func(v *drift.View) { delete(v.Claim.Labels, corev1.LabelInstanceTypeStable) }), drift.InstanceTypeNotFound},

		{"class spec changed", one(func(v *drift.View) { v.Class.Annotations[karpenter.EC2NodeClassHashAnnotationKey] = "9" }), drift.NodeClassDrift},
		{"class hash has another version", one(func(v *drift.View) {
			v.Class.Annotations[karpenter.EC2NodeClassHashAnnotationKey], v.Class.Annotations[karpenter.EC2NodeClassHashVersionAnnotationKey] = "9", "v7"
		}), ""},
		{"class does not exist", one(func(v *drift.View) { v.Class, v.Instance.SubnetID = nil, "subnet-9" }), ""},
		{"class is being deleted", one(func(v *drift.View) {
			v.Class.DeletionTimestamp, v.Instance.SubnetID = &metav1.Time{Time: noon}, "subnet-9"
		}), ""},

		{"newer image", one(func(v *drift.View) {
			v.Class.Status.AMIs = append([]karpenter.AMI{image("ami-new", "amd64")}, v.Class.Status.AMIs...)
		}), drift.AMIDrift},
		{"newer image for other architectures", one(func(v *drift.View) {
			v.Class.Status.AMIs = append([]karpenter.AMI{image("ami-new", "arm64")}, v.Class.Status.AMIs...)
		}), ""},
		{"no image matches its architecture", one(func(v *drift.View) { v.Class.Status.AMIs = v.Class.Status.AMIs[:1] }), drift.AMIDrift},
		{"class has no images", one(func(v *drift.View) { v.Class.Status.AMIs = nil }), ""},
		{"image unknown", one(func(v *drift.View) { v.Claim.Status.ImageID = "" }), ""},

		{"one more security group", one(func(v *drift.View) {
			v.Class.Status.SecurityGroups = append(v.Class.Status.SecurityGroups, karpenter.SecurityGroup{ID: "sg-3"})
		}), drift.SecurityGroupDrift},
		{"one security group fewer", one(func(v *drift.View) { v.Class.Status.SecurityGroups = v.Class.Status.SecurityGroups[:1] }), drift.SecurityGroupDrift},
		{"duplicate security group", one(func(v *drift.View) {
			v.Class.Status.SecurityGroups = append(v.Class.Status.SecurityGroups, karpenter.SecurityGroup{ID: "sg-1"})
		}), ""},
		{"class has no security groups", one(func(v *drift.View) { v.Class.Status.SecurityGroups = nil }), ""},

		{"subnet no longer selected", one(func(v *drift.View) { v.Class.Status.Subnets = v.Class.Status.Subnets[:1] }), drift.SubnetDrift},
		{"class has no subnets", one(func(v *drift.View) { v.Class.Status.Subnets = nil }), ""},

		{"reservation selected", one(reserved("cr-1")), ""},
		{"reservation no longer selected", one(reserved("cr-9")), drift.CapacityReservationDrift},
		{"reservation expired", one(reserved("")), ""},
		{"feature gate ReservedCapacity is off", one(reserved("cr-9"), func(v *drift.View) { v.Reservations = false }), ""},
		{"on-demand instance in a reservation", one(func(v *drift.View) { v.Instance.Reservation = "cr-9" }), ""},

		{"class selects no placement group", one(grouped("near", "pg-1")), drift.PlacementGroupDrift},
		{"class selects a placement group by name", one(func(v *drift.View) {
			v.Class.Spec.PlacementGroupSelector = &karpenter.PlacementGroupSelector{Name: new("near")}
		}), drift.PlacementGroupDrift},
		{"instance is in the placement group of that name", one(grouped("near", "pg-1"), func(v *drift.View) {
			v.Class.Spec.PlacementGroupSelector = &karpenter.PlacementGroupSelector{Name: new("near")}
		}), ""},
		{"instance is in the placement group of that ID", one(grouped("near", "pg-1"), func(v *drift.View) {
			v.Class.Spec.PlacementGroupSelector = &karpenter.PlacementGroupSelector{ID: new("pg-1")}
		}), ""},
		{"class selects a placement group of another ID", one(grouped("near", "pg-1"), func(v *drift.View) {
			v.Class.Spec.PlacementGroupSelector = &karpenter.PlacementGroupSelector{ID: new("pg-2")}
		}), drift.PlacementGroupDrift},

		{"instance not in the inventory", one(grouped("near", "pg-1"), func(v *drift.View) { v.Instance = nil }), ""},
		{"inventory of an older version with the group's name only", one(grouped("near", "pg-1"), func(v *drift.View) {
			v.Instance.SubnetID, v.Instance.SecurityGroups = "", nil
		}), ""},
	} {
		if got := drift.Reason(view(test.with...)); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestOrder checks that the reasons come in Karpenter's order.
func TestOrder(t *testing.T) {
	causes := []struct {
		reason string
		change func(*drift.View)
	}{
		{drift.NodePoolDrifted, func(v *drift.View) { v.Pool.Annotations[karpenter.NodePoolHashAnnotationKey] = "9" }},
		{drift.RequirementsDrifted, wants("tier", corev1.NodeSelectorOpExists)},
		{drift.InstanceTypeNotFound, func(v *drift.View) { v.Instance.Withdrawn = true }},
		{drift.NodeClassDrift, func(v *drift.View) { v.Class.Annotations[karpenter.EC2NodeClassHashAnnotationKey] = "9" }},
		{drift.AMIDrift, func(v *drift.View) { v.Claim.Status.ImageID = "ami-old" }},
		{drift.SecurityGroupDrift, func(v *drift.View) { v.Instance.SecurityGroups = []string{"sg-9"} }},
		{drift.SubnetDrift, func(v *drift.View) { v.Instance.SubnetID = "subnet-9" }},
		{drift.CapacityReservationDrift, reserved("cr-9")},
		{drift.PlacementGroupDrift, grouped("near", "pg-1")},
	}
	for i, first := range causes {
		var changes []func(*drift.View)
		for _, cause := range causes[i:] {
			changes = append(changes, cause.change)
		}
		if got := drift.Reason(view(changes...)); got != first.reason {
			t.Errorf("reason %q takes precedence over %q", got, first.reason)
		}
	}
}

func drifted(reason string) func(*drift.View) {
	return func(v *drift.View) {
		v.Claim.Status.Conditions = v.Claim.Status.Conditions.With(
			metav1.Condition{Type: karpenter.ConditionTypeDrifted, Status: metav1.ConditionTrue, Reason: reason, Message: reason}, noon)
	}
}

// TestUnknownKeepsCondition checks that a NodeClaim is drifted exactly while there is a reason, and that
// checks that cannot be evaluated keep its condition.
func TestUnknownKeepsCondition(t *testing.T) {
	untold := func(v *drift.View) { v.Instance = nil }
	elsewhere := func(v *drift.View) { v.Instance.SubnetID = "subnet-9" }
	for _, test := range []struct {
		name   string
		with   []func(*drift.View)
		reason string
	}{
		{"another reason before", []func(*drift.View){elsewhere, drifted(drift.AMIDrift)}, drift.SubnetDrift},
		{"no reason any more", []func(*drift.View){drifted(drift.SubnetDrift)}, ""},
		{"subnet unknown", []func(*drift.View){untold, drifted(drift.SubnetDrift)}, drift.SubnetDrift},
		{"instance type unknown", []func(*drift.View){untold, drifted(drift.InstanceTypeNotFound)}, drift.InstanceTypeNotFound},
		{"image matches again, instance unknown", []func(*drift.View){untold, drifted(drift.AMIDrift)}, ""},
		{"class has no images", []func(*drift.View){drifted(drift.AMIDrift), func(v *drift.View) { v.Class.Status.AMIs = nil }}, drift.AMIDrift},
		{"claim is not launched", []func(*drift.View){elsewhere, drifted(drift.SubnetDrift), func(v *drift.View) {
			v.Claim.Status.Conditions = v.Claim.Status.Conditions.Without(karpenter.ConditionTypeLaunched)
		}}, ""},
	} {
		if got := drift.Reason(view(test.with...)); got != test.reason {
			t.Errorf("%s: %q, want %q", test.name, got, test.reason)
		}
	}
}
