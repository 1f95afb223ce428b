package bootstrap

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const (
	// Limit is EC2's maximum of user data in bytes, before base64.
	Limit = 16384
	// Near is the size from which on the plan has a warning: 90 % of Limit.
	Near = Limit * 9 / 10
)

// Node is the information that an instance needs to join as the planned node.
type Node struct {
	Cluster catalog.ClusterFacts
	// Kubelet has the class's kubelet settings, for families that pass on only some of them.
	Kubelet karpenter.ParsedKubelet
	// KubeletConfiguration has all of the class's kubelet settings, for families that pass on every one.
	KubeletConfiguration karpenter.KubeletConfiguration
	// MaxPods is the number of pods that the plan assumed. It already includes podsPerCore and
	// maxPods.
	MaxPods int64
	// Labels are all labels of the NodeClaim. Labels that the kubelet must not set on its own node are
	// left out of the user data, and lifecycle sets them when the node registers.
	Labels map[string]string
	Taints []corev1.Taint
	// InstanceStore is the policy for the instance's own disks.
	InstanceStore karpenter.InstanceStorePolicy
	// ImageName shows the age of the image, for families where it matters; empty if unknown.
	ImageName string
	// Custom is the user's own user data, in the family's format.
	Custom string
}

// writers has the function for each family. Custom images get the user's data unchanged: the image or
// the user's data must join the cluster.
var writers = map[string]func(Node) (string, error){
	karpenter.AMIFamilyAL2:          Node.al2,
	karpenter.AMIFamilyAL2023:       Node.al2023,
	karpenter.AMIFamilyBottlerocket: Node.bottlerocket,
	karpenter.AMIFamilyWindows2019:  Node.windows,
	karpenter.AMIFamilyWindows2022:  Node.windows,
	karpenter.AMIFamilyWindows2025:  Node.windows,
	karpenter.AMIFamilyCustom:       func(n Node) (string, error) { return n.Custom, nil },
}

// Write returns user data in the format of the family, not in base64. Errors that a user can correct
// are fault.Invalid.
func Write(family string, n Node) (string, error) {
	write, known := writers[family]
	if !known {
		return "", fault.F("writing user data", fault.Invalid, "unknown amiFamily %q", family).
			WithHint("correct amiFamily of the EC2NodeClass: AL2, AL2023, Bottlerocket, Windows2019, Windows2022, Windows2025 or Custom")
	}
	text, err := write(n)
	if err != nil {
		return "", err
	}
	if len(text) > Limit {
		return "", fault.F("writing user data", fault.Invalid, "the user data has %d bytes, but EC2 allows %d", len(text), Limit).
			WithHint("move the class's userData into the image, or fetch it while booting")
	}
	return text, nil
}

// JoinsInstanceStore reports whether images of the family can set up a RAID of the instance's disks.
func JoinsInstanceStore(family string) bool {
	switch family {
	case karpenter.AMIFamilyAL2, karpenter.AMIFamilyAL2023, karpenter.AMIFamilyBottlerocket:
		return true
	}
	return false
}

// unreadable returns the error for user data that the family cannot read.
func unreadable(err error, hint string) error {
	return fault.E("reading the class's userData", fault.Invalid, err).WithHint("%s", hint)
}
