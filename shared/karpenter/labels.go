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
	NodeInitializedLabelKey     = Group + "/initialized"        // "true" once the node may run pods
	NodeRegisteredLabelKey      = Group + "/registered"         // "true" once the node has the claim's labels and taints
	CapacityTypeLabelKey        = Group + "/capacity-type"      // spot, on-demand or reserved
	NodeDoNotSyncTaintsLabelKey = Group + "/do-not-sync-taints" // "true" on a node whose kubelet set its own taints
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

// NodeClassLabelKey returns the label for the name of a node class of some kind, for example
// karpenter.k8s.aws/ec2nodeclass.
func NodeClassLabelKey(kind schema.GroupKind) string {
	return kind.Group + "/" + strings.ToLower(kind.Kind)
}

// normalizedLabels maps older label names to stable ones. The EBS driver has its own name for the zone.
var normalizedLabels = map[string]string{
	corev1.LabelFailureDomainBetaZone:   corev1.LabelTopologyZone,
	corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
	corev1.LabelInstanceType:            corev1.LabelInstanceTypeStable,
	"beta.kubernetes.io/arch":           corev1.LabelArchStable,
	"beta.kubernetes.io/os":             corev1.LabelOSStable,
	"topology.ebs.csi.aws.com/zone":     corev1.LabelTopologyZone,
}

// NormalizeLabel returns the stable name of a label, or the label itself if it has none.
func NormalizeLabel(key string) string {
	if stable, ok := normalizedLabels[key]; ok {
		return stable
	}
	return key
}

// olderNames are the older names of each stable one, sorted.
var olderNames = func() map[string][]string {
	out := map[string][]string{}
	for _, older := range slices.Sorted(maps.Keys(normalizedLabels)) {
		out[normalizedLabels[older]] = append(out[normalizedLabels[older]], older)
	}
	return out
}()

// FindLabel returns the value of a label by its stable name, or else by an older one.
func FindLabel(labels map[string]string, stable string) (string, bool) {
	if value, ok := labels[stable]; ok {
		return value, true
	}
	for _, older := range olderNames[stable] {
		if value, ok := labels[older]; ok {
			return value, true
		}
	}
	return "", false
}

// NormalizedLabels returns a copy of the map from older label names to stable ones.
func NormalizedLabels() map[string]string { return maps.Clone(normalizedLabels) }

// wellKnownLabels are the labels with values from the catalogue, which a pool need not define.
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

// IsWellKnownLabel reports whether a pod may require the label although its pool does not define it.
func IsWellKnownLabel(key string) bool { return wellKnownLabels[key] }

// WellKnownLabels returns all well-known labels in alphabetical order.
func WellKnownLabels() []string { return slices.Sorted(maps.Keys(wellKnownLabels)) }

// WellKnownLabelValues returns all values of a label if they are fixed; nil for other labels.
func WellKnownLabelValues(key string) []string {
	switch key {
	case CapacityTypeLabelKey:
		return []string{CapacityTypeOnDemand, CapacityTypeReserved, CapacityTypeSpot}
	case LabelInstanceTenancy:
		return []string{TenancyDedicated, TenancyDefault}
	}
	return nil
}
