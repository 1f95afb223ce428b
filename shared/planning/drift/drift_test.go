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
				karpenter.EC2NodeClassHashAnnotationKey: "2", karpenter.EC2NodeClassHashVersionAnnotationKey: "v5",
			},
		}},
		Pool: &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			karpenter.NodePoolHashAnnotationKey: "1", karpenter.NodePoolHashVersionAnnotationKey: "v3",
		}}},
		Class: &karpenter.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			karpenter.EC2NodeClassHashAnnotationKey: "2", karpenter.EC2NodeClassHashVersionAnnotationKey: "v5",
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
		{"nothing has changed", nil, ""},

		{"the pool's template", one(func(v *drift.View) { v.Pool.Annotations[karpenter.NodePoolHashAnnotationKey] = "9" }), drift.NodePoolDrifted},
		{"the pool's hash is of another version", one(func(v *drift.View) {
			v.Pool.Annotations[karpenter.NodePoolHashAnnotationKey], v.Pool.Annotations[karpenter.NodePoolHashVersionAnnotationKey] = "9", "v4"
		}), ""},
		{"the pool has no hash yet", one(func(v *drift.View) { v.Pool.Annotations = nil }), ""},
		{"the claim has none", one(func(v *drift.View) { delete(v.Claim.Annotations, karpenter.NodePoolHashAnnotationKey) }), ""},

		{"another zone is wanted", one(wants(corev1.LabelTopologyZone, in, "b", "c")), drift.RequirementsDrifted},
		{"its zone is one of those", one(wants(corev1.LabelTopologyZone, in, "b", "a")), ""},
		{"its zone under an old name", one(wants(corev1.LabelFailureDomainBetaZone, in, "b")), drift.RequirementsDrifted},
		{"a label that it lacks is wanted", one(wants("tier", exists)), drift.RequirementsDrifted},
		{"a well-known one that it lacks is wanted", one(wants(karpenter.LabelInstanceFamily, in, "m6i")), drift.RequirementsDrifted},
		{"one that it lacks must not be something", one(wants("tier", notIn, "gold")), ""},
		{"the pool contradicts itself about one that it lacks", one(wants("tier", in, "gold"), wants("tier", in, "silver")), ""},
		{"the pool contradicts itself about one that it has", one(wants("team", in, "db"), wants("team", in, "web")), drift.RequirementsDrifted},
		{"one that it has must not be there", one(wants("team", gone)), drift.RequirementsDrifted},

		{"its type is not sold any more", one(func(v *drift.View) { v.Instance.Withdrawn = true }), drift.InstanceTypeNotFound},
		{"nor an hour after its creation", one(func(v *drift.View) {
			v.Instance.Withdrawn, v.Claim.CreationTimestamp = true, metav1.NewTime(noon.Add(-time.Hour))
		}), ""},
		{"it does not say of what type it is", one(func(v *drift.View) { delete(v.Claim.Labels, corev1.LabelInstanceTypeStable) }), drift.InstanceTypeNotFound},

		{"the class's spec", one(func(v *drift.View) { v.Class.Annotations[karpenter.EC2NodeClassHashAnnotationKey] = "9" }), drift.NodeClassDrift},
		{"the class's hash is of another version", one(func(v *drift.View) {
			v.Class.Annotations[karpenter.EC2NodeClassHashAnnotationKey], v.Class.Annotations[karpenter.EC2NodeClassHashVersionAnnotationKey] = "9", "v6"
		}), ""},
		{"the class is gone", one(func(v *drift.View) { v.Class, v.Instance.SubnetID = nil, "subnet-9" }), ""},
		{"the class goes", one(func(v *drift.View) {
			v.Class.DeletionTimestamp, v.Instance.SubnetID = &metav1.Time{Time: noon}, "subnet-9"
		}), ""},

		{"there is a newer image", one(func(v *drift.View) {
			v.Class.Status.AMIs = append([]karpenter.AMI{image("ami-new", "amd64")}, v.Class.Status.AMIs...)
		}), drift.AMIDrift},
		{"a newer image for others", one(func(v *drift.View) {
			v.Class.Status.AMIs = append([]karpenter.AMI{image("ami-new", "arm64")}, v.Class.Status.AMIs...)
		}), ""},
		{"no image suits it", one(func(v *drift.View) { v.Class.Status.AMIs = v.Class.Status.AMIs[:1] }), drift.AMIDrift},
		{"no image is found", one(func(v *drift.View) { v.Class.Status.AMIs = nil }), ""},
		{"its image is not known", one(func(v *drift.View) { v.Claim.Status.ImageID = "" }), ""},

		{"a security group more", one(func(v *drift.View) {
			v.Class.Status.SecurityGroups = append(v.Class.Status.SecurityGroups, karpenter.SecurityGroup{ID: "sg-3"})
		}), drift.SecurityGroupDrift},
		{"a security group less", one(func(v *drift.View) { v.Class.Status.SecurityGroups = v.Class.Status.SecurityGroups[:1] }), drift.SecurityGroupDrift},
		{"a security group twice", one(func(v *drift.View) {
			v.Class.Status.SecurityGroups = append(v.Class.Status.SecurityGroups, karpenter.SecurityGroup{ID: "sg-1"})
		}), ""},
		{"no security group is found", one(func(v *drift.View) { v.Class.Status.SecurityGroups = nil }), ""},

		{"its subnet is selected no more", one(func(v *drift.View) { v.Class.Status.Subnets = v.Class.Status.Subnets[:1] }), drift.SubnetDrift},
		{"no subnet is found", one(func(v *drift.View) { v.Class.Status.Subnets = nil }), ""},

		{"its reservation is selected", one(reserved("cr-1")), ""},
		{"its reservation is selected no more", one(reserved("cr-9")), drift.CapacityReservationDrift},
		{"its reservation has ended", one(reserved("")), ""},
		{"reservations are off", one(reserved("cr-9"), func(v *drift.View) { v.Reservations = false }), ""},
		{"on demand, and a reservation took it", one(func(v *drift.View) { v.Instance.Reservation = "cr-9" }), ""},

		{"the class wants no placement group", one(grouped("near", "pg-1")), drift.PlacementGroupDrift},
		{"the class wants one by name", one(func(v *drift.View) {
			v.Class.Spec.PlacementGroupSelector = &karpenter.PlacementGroupSelector{Name: new("near")}
		}), drift.PlacementGroupDrift},
		{"it is in the one of that name", one(grouped("near", "pg-1"), func(v *drift.View) {
			v.Class.Spec.PlacementGroupSelector = &karpenter.PlacementGroupSelector{Name: new("near")}
		}), ""},
		{"it is in the one of that id", one(grouped("near", "pg-1"), func(v *drift.View) {
			v.Class.Spec.PlacementGroupSelector = &karpenter.PlacementGroupSelector{ID: new("pg-1")}
		}), ""},
		{"the class wants one of another id", one(grouped("near", "pg-1"), func(v *drift.View) {
			v.Class.Spec.PlacementGroupSelector = &karpenter.PlacementGroupSelector{ID: new("pg-2")}
		}), drift.PlacementGroupDrift},

		{"nobody has told of the instance", one(grouped("near", "pg-1"), func(v *drift.View) { v.Instance = nil }), ""},
		{"a catalog told that says no more than its name", one(grouped("near", "pg-1"), func(v *drift.View) {
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
			t.Errorf("%q comes before %q", got, first.reason)
		}
	}
}

func drifted(reason string) func(*drift.View) {
	return func(v *drift.View) {
		v.Claim.Status.Conditions = v.Claim.Status.Conditions.With(
			metav1.Condition{Type: karpenter.ConditionTypeDrifted, Status: metav1.ConditionTrue, Reason: reason, Message: reason}, noon)
	}
}

// TestWhatCannotBeSeen checks that a NodeClaim is drifted exactly while there is a reason, and that
// checks that cannot be evaluated keep its condition.
func TestWhatCannotBeSeen(t *testing.T) {
	untold := func(v *drift.View) { v.Instance = nil }
	elsewhere := func(v *drift.View) { v.Instance.SubnetID = "subnet-9" }
	for _, test := range []struct {
		name   string
		with   []func(*drift.View)
		reason string
	}{
		{"it drifted before for something else", []func(*drift.View){elsewhere, drifted(drift.AMIDrift)}, drift.SubnetDrift},
		{"it drifts no more", []func(*drift.View){drifted(drift.SubnetDrift)}, ""},
		{"nobody tells where it is", []func(*drift.View){untold, drifted(drift.SubnetDrift)}, drift.SubnetDrift},
		{"nobody tells whether its type is sold", []func(*drift.View){untold, drifted(drift.InstanceTypeNotFound)}, drift.InstanceTypeNotFound},
		{"nobody needs to be told that its image is right again", []func(*drift.View){untold, drifted(drift.AMIDrift)}, ""},
		{"there is no image for now", []func(*drift.View){drifted(drift.AMIDrift), func(v *drift.View) { v.Class.Status.AMIs = nil }}, drift.AMIDrift},
		{"it is not launched", []func(*drift.View){elsewhere, drifted(drift.SubnetDrift), func(v *drift.View) {
			v.Claim.Status.Conditions = v.Claim.Status.Conditions.Without(karpenter.ConditionTypeLaunched)
		}}, ""},
	} {
		if got := drift.Reason(view(test.with...)); got != test.reason {
			t.Errorf("%s: %q, want %q", test.name, got, test.reason)
		}
	}
}
