package planvalidator

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	labelPool         = "karpenter.sh/nodepool"
	labelCapacityType = "karpenter.sh/capacity-type"
	labelZoneID       = "topology.k8s.aws/zone-id"
)

// aliases maps deprecated label names to their replacements. A node has both.
var aliases = map[string]string{
	corev1.LabelFailureDomainBetaZone:   corev1.LabelTopologyZone,
	corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
	corev1.LabelInstanceType:            corev1.LabelInstanceTypeStable,
	"beta.kubernetes.io/arch":           corev1.LabelArchStable,
	"beta.kubernetes.io/os":             corev1.LabelOSStable,
	"topology.ebs.csi.aws.com/zone":     corev1.LabelTopologyZone,
}

// stableLabel returns the current name of a label.
func stableLabel(key string) string {
	if name, old := aliases[key]; old {
		return name
	}
	return key
}

// withAliases adds the deprecated names of labels.
func withAliases(set labels.Set) labels.Set {
	for old, name := range aliases {
		if value, present := set[name]; present {
			set[old] = value
		}
	}
	return set
}

// fixedLabels returns the labels that NodePool, type and offering determine. Labels of the machine have precedence
// over the template. A NodePool with several values for a label does not determine it.
func fixedLabels(pool *NodePool, t *InstanceType, o *Offering) labels.Set {
	set := labels.Set{}
	for name, value := range pool.Spec.Template.Metadata.Labels {
		set[stableLabel(name)] = value
	}
	maps.Copy(set, labels.Set{
		labelCapacityType:              o.CapacityType,
		corev1.LabelTopologyZone:       o.Zone,
		corev1.LabelInstanceTypeStable: t.Name,
		corev1.LabelArchStable:         t.Arch,
	})
	maps.Copy(set, t.Labels)
	if o.ZoneID != "" {
		set[labelZoneID] = o.ZoneID
	}
	if len(t.OS) == 1 {
		set[corev1.LabelOSStable] = t.OS[0]
	}
	if pool.Metadata.Name == "" {
		return set
	}
	maps.Copy(set, labels.Set{labelPool: pool.Metadata.Name, "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"})
	if class := pool.Spec.Template.Spec.NodeClassRef; class.Name != "" {
		set[class.Group+"/"+strings.ToLower(class.Kind)] = class.Name
	}
	return set
}

// wellKnown are labels of machines outside Karpenter's own domains.
var wellKnown = []string{
	corev1.LabelTopologyZone, corev1.LabelTopologyRegion, labelZoneID, corev1.LabelInstanceTypeStable,
	corev1.LabelArchStable, corev1.LabelOSStable, corev1.LabelWindowsBuild, corev1.LabelHostname,
}

// isMachineLabel reports whether the label describes the machine. A requirement selects machines by it and never
// adds it.
func isMachineLabel(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == "karpenter.sh" || domain == "karpenter.k8s.aws" || slices.Contains(wellKnown, stableLabel(key))
}
