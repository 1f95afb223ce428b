package karpenter

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EC2NodeClassStatus is the observed state of the class, with the resources that its selectors match.
type EC2NodeClassStatus struct {
	// Subnets that the selectors match.
	// +optional
	Subnets []Subnet `json:"subnets,omitempty"`
	// Security groups that the selectors match.
	// +optional
	SecurityGroups []SecurityGroup `json:"securityGroups,omitempty"`
	// Capacity reservations that the selectors match.
	// +optional
	CapacityReservations []CapacityReservation `json:"capacityReservations,omitempty"`
	// Images that the selectors match.
	// +optional
	AMIs []AMI `json:"amis,omitempty"`
	// The instance profile that launches use.
	// +optional
	InstanceProfile string `json:"instanceProfile,omitempty"`
	// Conditions of the class.
	// +optional
	Conditions Conditions `json:"conditions,omitempty"`
}

// Subnet is a subnet in which instances may be launched.
type Subnet struct {
	// Id of the subnet.
	// +required
	ID string `json:"id"`
	// Name of its availability zone.
	// +required
	Zone string `json:"zone"`
	// ID of its availability zone, which is the same in every account.
	// +optional
	ZoneID string `json:"zoneID,omitempty"`
}

// SecurityGroup is a security group of instances.
type SecurityGroup struct {
	// Id of the security group.
	// +required
	ID string `json:"id"`
	// Name of the security group.
	// +optional
	Name string `json:"name,omitempty"`
}

// AMI is an image and the instance types that it supports.
type AMI struct {
	// Id of the image.
	// +required
	ID string `json:"id"`
	// Whether its owner has deprecated it.
	// +optional
	Deprecated bool `json:"deprecated,omitempty"`
	// Name of the image.
	// +optional
	Name string `json:"name,omitempty"`
	// Requirements on the instance types that can use the image.
	// +required
	Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
}

// CapacityReservation is a reservation that instances may use.
type CapacityReservation struct {
	// The availability zone of the reservation.
	// +required
	AvailabilityZone string `json:"availabilityZone"`
	// When the reservation ends; empty if it has no end.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty" hash:"ignore"`
	// Id of the reservation.
	// +kubebuilder:validation:Pattern:="^cr-[0-9a-z]+$"
	// +required
	ID string `json:"id"`
	// Which launches may use the reservation.
	// +kubebuilder:validation:Enum:={open,targeted}
	// +required
	InstanceMatchCriteria string `json:"instanceMatchCriteria"`
	// The reserved instance type.
	// +required
	InstanceType string `json:"instanceType"`
	// The account that owns the reservation.
	// +kubebuilder:validation:Pattern:="^[0-9]{12}$"
	// +required
	OwnerID string `json:"ownerID"`
	// The type of the reservation: default or capacity block.
	// +kubebuilder:validation:Enum:={default,capacity-block}
	// +kubebuilder:default=default
	// +optional
	ReservationType CapacityReservationType `json:"reservationType"`
	// Whether the owner may reclaim the capacity.
	// +optional
	Interruptible bool `json:"interruptible"`
	// Whether the reservation is active or about to end; only capacity blocks are reported as expiring.
	// +kubebuilder:validation:Enum:={active,expiring}
	// +kubebuilder:default=active
	// +optional
	State CapacityReservationState `json:"state"`
}

// CapacityReservationType tells ordinary reservations from capacity blocks.
type CapacityReservationType string

// The types of a capacity reservation.
const (
	CapacityReservationTypeDefault       CapacityReservationType = "default"
	CapacityReservationTypeCapacityBlock CapacityReservationType = "capacity-block"
)

// CapacityReservationState tells whether a reservation is about to end.
type CapacityReservationState string

// The states of a capacity reservation into which instances can be launched.
const (
	CapacityReservationStateActive   CapacityReservationState = "active"
	CapacityReservationStateExpiring CapacityReservationState = "expiring"
)

// Condition types of an EC2NodeClass; ValidationSucceeded is shared with NodePool.
const (
	ConditionTypeSubnetsReady              = "SubnetsReady"              // subnetSelectorTerms select subnets
	ConditionTypeSecurityGroupsReady       = "SecurityGroupsReady"       // securityGroupSelectorTerms select security groups
	ConditionTypeAMIsReady                 = "AMIsReady"                 // amiSelectorTerms select images
	ConditionTypeInstanceProfileReady      = "InstanceProfileReady"      // the instance profile exists and has the role
	ConditionTypePlacementGroupReady       = "PlacementGroupReady"       // the placement group exists
	ConditionTypeCapacityReservationsReady = "CapacityReservationsReady" // capacityReservationSelectorTerms were evaluated
)

// EC2NodeClassReady returns the conditions on which an EC2NodeClass's Ready depends; capacity reservations count if
// their feature gate is on.
func EC2NodeClassReady(capacityReservations bool) []string {
	out := []string{
		ConditionTypeAMIsReady, ConditionTypeSubnetsReady, ConditionTypeSecurityGroupsReady,
		ConditionTypeInstanceProfileReady, ConditionTypeValidationSucceeded, ConditionTypePlacementGroupReady,
	}
	if capacityReservations {
		out = append(out, ConditionTypeCapacityReservationsReady)
	}
	return out
}
