package bootstrap

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// ownLabels are those that a kubelet may give to its own node. All families but
// Custom register with their taints, startup taints included, and say so: syncing
// them again could bring back one that somebody has removed meanwhile.
func (n Node) ownLabels() map[string]string {
	out := maps.Clone(n.Labels)
	maps.DeleteFunc(out, func(key, _ string) bool { return !kubeletMaySet(key) })
	if out == nil {
		out = map[string]string{}
	}
	out[karpenter.NodeDoNotSyncTaintsLabelKey] = "true"
	return out
}

// labelFlag writes labels as the kubelet's flag has them, sorted.
func (n Node) labelFlag() string { return pairs(n.ownLabels(), "=") }

// taintFlag writes taints as the kubelet's flag has them: key=value:effect.
func (n Node) taintFlag() string {
	var out []string
	for _, t := range n.Taints {
		out = append(out, t.Key+"="+t.Value+":"+string(t.Effect))
	}
	return strings.Join(out, ",")
}

// kubeletMaySet knows the labels in Kubernetes' own domains that the kubelet
// starts with; it refuses to start with others there.
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

// pairs writes a map as flags have it, sorted: key, separator, value, commas between.
func pairs(of map[string]string, separator string) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		out = append(out, key+separator+of[key])
	}
	return strings.Join(out, ",")
}
