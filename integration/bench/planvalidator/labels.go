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

// aliases are older or foreign names of labels, each with the name that has
// replaced it. A node carries both.
var aliases = map[string]string{
	corev1.LabelFailureDomainBetaZone:   corev1.LabelTopologyZone,
	corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
	corev1.LabelInstanceType:            corev1.LabelInstanceTypeStable,
	"beta.kubernetes.io/arch":           corev1.LabelArchStable,
	"beta.kubernetes.io/os":             corev1.LabelOSStable,
	"topology.ebs.csi.aws.com/zone":     corev1.LabelTopologyZone,
}

// stable is the name under which a label is looked up.
func stable(key string) string {
	if name, old := aliases[key]; old {
		return name
	}
	return key
}

// withAliases adds the older names of the labels that have some.
func withAliases(set labels.Set) labels.Set {
	for old, name := range aliases {
		if value, present := set[name]; present {
			set[old] = value
		}
	}
	return set
}

// determined are the labels that a pool, a type and an offering leave no choice
// about. A pool with several values for a label of its own does not determine it.
// What the machine is counts before what the pool's template says of it.
func determined(pool *NodePool, t *InstanceType, o *Offering) labels.Set {
	set := labels.Set{}
	for name, value := range pool.Spec.Template.Metadata.Labels {
		set[stable(name)] = value
	}
	maps.Copy(set, t.Labels)
	maps.Copy(set, labels.Set{
		labelCapacityType:              o.CapacityType,
		corev1.LabelTopologyZone:       o.Zone,
		corev1.LabelInstanceTypeStable: t.Name,
		corev1.LabelArchStable:         t.Arch,
	})
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

// wellKnown are the labels of machines outside of Karpenter's own domains.
var wellKnown = []string{
	corev1.LabelTopologyZone, corev1.LabelTopologyRegion, labelZoneID, corev1.LabelInstanceTypeStable,
	corev1.LabelArchStable, corev1.LabelOSStable, corev1.LabelWindowsBuild, corev1.LabelHostname,
}

// ofMachine reports whether the label describes the machine, so that a pool's
// requirement can only choose machines by it and never add it.
func ofMachine(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == "karpenter.sh" || domain == "karpenter.k8s.aws" || slices.Contains(wellKnown, stable(key))
}
