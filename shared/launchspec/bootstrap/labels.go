package bootstrap

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// ownLabels returns the labels that a kubelet may set on its own node. It adds the label that disables
// the syncing of taints: all families but Custom register with their taints, including startup taints,
// and a sync could restore a taint that was removed since.
func (n Node) ownLabels() map[string]string {
	out := maps.Clone(n.Labels)
	maps.DeleteFunc(out, func(key, _ string) bool { return !kubeletMaySet(key) })
	if out == nil {
		out = map[string]string{}
	}
	out[karpenter.NodeDoNotSyncTaintsLabelKey] = "true"
	return out
}

// labelFlag returns the labels for the kubelet's flag, sorted.
func (n Node) labelFlag() string { return pairs(n.ownLabels(), "=") }

// taintFlag returns the taints for the kubelet's flag: key=value:effect.
func (n Node) taintFlag() string {
	var out []string
	for _, t := range n.Taints {
		out = append(out, t.Key+"="+t.Value+":"+string(t.Effect))
	}
	return strings.Join(out, ",")
}

// kubeletMaySet reports whether the kubelet accepts a label on its command line. In Kubernetes' own
// domains it accepts only a few labels, and does not start with others.
func kubeletMaySet(key string) bool {
	domain := karpenter.LabelDomain(key)
	if !within(domain, "kubernetes.io") && !within(domain, "k8s.io") {
		return true
	}
	if within(domain, "kubelet.kubernetes.io") || within(domain, "node.kubernetes.io") {
		return true
	}
	return slices.Contains([]string{
		corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable, corev1.LabelInstanceTypeStable,
		corev1.LabelTopologyZone, corev1.LabelTopologyRegion,
	}, key)
}

func within(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}

// pairs returns a map as a sorted list of key, separator and value, with commas in between.
func pairs(of map[string]string, separator string) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		out = append(out, key+separator+of[key])
	}
	return strings.Join(out, ",")
}
