package karpenter

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Labels of the core group on NodeClaims and Nodes.
const (
	NodePoolLabelKey            = Group + "/nodepool"           // name of the pool
	NodeInitializedLabelKey     = Group + "/initialized"        // "true" once the node may take pods
	NodeRegisteredLabelKey      = Group + "/registered"         // "true" once the claim's labels and taints are on the node
	CapacityTypeLabelKey        = Group + "/capacity-type"      // spot, on-demand or reserved
	NodeDoNotSyncTaintsLabelKey = Group + "/do-not-sync-taints" // "true" on a node whose kubelet set its taints itself
)

// Values of the capacity type label.
const (
	CapacityTypeSpot     = "spot"
	CapacityTypeOnDemand = "on-demand"
	CapacityTypeReserved = "reserved"
)

// Values of the architecture label.
const (
	ArchitectureAMD64 = "amd64"
	ArchitectureARM64 = "arm64"
)

// NodeClassLabelKey is the label that carries the name of a node class of some kind, for example
// karpenter.k8s.aws/ec2nodeclass.
func NodeClassLabelKey(kind schema.GroupKind) string {
	return kind.Group + "/" + strings.ToLower(kind.Kind)
}

// normalizedLabels are older names of stable labels. The EBS driver writes the zone under a name of its own.
var normalizedLabels = map[string]string{
	corev1.LabelFailureDomainBetaZone:   corev1.LabelTopologyZone,
	corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
	corev1.LabelInstanceType:            corev1.LabelInstanceTypeStable,
	"beta.kubernetes.io/arch":           corev1.LabelArchStable,
	"beta.kubernetes.io/os":             corev1.LabelOSStable,
	"topology.ebs.csi.aws.com/zone":     corev1.LabelTopologyZone,
}

// NormalizeLabel gives the stable name of a label that has one, and any other label as it is.
func NormalizeLabel(key string) string {
	if stable, ok := normalizedLabels[key]; ok {
		return stable
	}
	return key
}

// NormalizedLabels is a copy of the map from older label names to stable ones.
func NormalizedLabels() map[string]string { return maps.Clone(normalizedLabels) }

// wellKnownLabels are those that the catalogue can answer for without a pool naming them.
var wellKnownLabels = func() map[string]bool {
	known := map[string]bool{
		NodePoolLabelKey:               true,
		CapacityTypeLabelKey:           true,
		corev1.LabelTopologyZone:       true,
		corev1.LabelTopologyRegion:     true,
		corev1.LabelInstanceTypeStable: true,
		corev1.LabelArchStable:         true,
		corev1.LabelOSStable:           true,
		corev1.LabelWindowsBuild:       true,
		LabelTopologyZoneID:            true,
	}
	for _, key := range awsLabels {
		known[key] = true
	}
	return known
}()

// IsWellKnownLabel reports whether a pod may ask for the label although its pool does not define it.
func IsWellKnownLabel(key string) bool { return wellKnownLabels[key] }

// WellKnownLabels lists all well-known labels in alphabetical order.
func WellKnownLabels() []string { return slices.Sorted(maps.Keys(wellKnownLabels)) }

// WellKnownLabelValues are all the values that a label can have, for the few labels where that is settled; nil for others.
func WellKnownLabelValues(key string) []string {
	switch key {
	case CapacityTypeLabelKey:
		return []string{CapacityTypeOnDemand, CapacityTypeReserved, CapacityTypeSpot}
	case LabelInstanceTenancy:
		return []string{TenancyDedicated, TenancyDefault}
	}
	return nil
}
