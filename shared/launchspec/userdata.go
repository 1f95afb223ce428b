package launchspec

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// maxUserData is the most that EC2 takes, in bytes before base64 (B056).
const maxUserData = 16384

// boot is what a machine must know in order to join as the node that was
// planned.
type boot struct {
	cluster catalog.ClusterFacts
	kubelet *karpenter.KubeletConfiguration
	// maxPods is what the plan counted on.
	maxPods       int64
	labels        map[string]string
	taints        []corev1.Taint
	instanceStore karpenter.InstanceStorePolicy
	// custom is the user's own data, in the family's format.
	custom string
}

// userData writes user data as the family's images read it.
func userData(family string, b boot) (string, error) {
	var text string
	var err error
	switch family {
	case karpenter.AMIFamilyAL2023:
		text, err = b.al2023()
	case karpenter.AMIFamilyCustom:
		text = b.custom // Verbatim: the image knows how to join, or the user does (B202).
	default:
		return "", fault.F("writing user data", fault.Invalid, "image family %s is not supported yet", family).
			WithHint("use amiFamily AL2023, or Custom with user data that joins the cluster")
	}
	if err != nil {
		return "", err
	}
	if len(text) > maxUserData {
		return "", fault.F("writing user data", fault.Invalid, "it has %d bytes, and EC2 takes %d", len(text), maxUserData).
			WithHint("move the class's userData into the image, or fetch it while booting")
	}
	return text, nil
}

// nodeLabels writes the labels that a kubelet may give to its own node, sorted.
// The others arrive when the node registers.
func nodeLabels(labels map[string]string) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if kubeletMaySet(key) {
			out = append(out, key+"="+labels[key])
		}
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

// taintFlag writes taints as the kubelet's flag has them: key=value:effect.
func taintFlag(taints []corev1.Taint) string {
	var out []string
	for _, t := range taints {
		out = append(out, t.Key+"="+t.Value+":"+string(t.Effect))
	}
	return strings.Join(out, ",")
}
