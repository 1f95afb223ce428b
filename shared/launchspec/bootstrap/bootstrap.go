package bootstrap

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const (
	// Limit is the most bytes of user data that EC2 takes, before base64.
	Limit = 16384
	// Near is where a person should be warned: 90 % of Limit.
	Near = Limit * 9 / 10
)

// Node is what a machine must know in order to join as the node that was planned.
type Node struct {
	Cluster catalog.ClusterFacts
	// Kubelet are the class's settings; nil for none.
	Kubelet *karpenter.KubeletConfiguration
	// MaxPods is what the plan counted on. It is the smaller of what podsPerCore and
	// maxPods allow already.
	MaxPods int64
	// Labels are all that the claim has. Those that the kubelet may not give to its
	// own node are left out, and arrive when the node registers.
	Labels map[string]string
	Taints []corev1.Taint
	// InstanceStore says what becomes of the disks of the instance itself.
	InstanceStore karpenter.InstanceStorePolicy
	// ImageName tells how old the image is, where that matters; empty if unknown.
	ImageName string
	// Custom is the user's own data, in the family's format.
	Custom string
}

// writers write the formats of the families. Custom images read what the user wrote:
// either the image knows how to join, or the user does.
var writers = map[string]func(Node) (string, error){
	karpenter.AMIFamilyAL2:          Node.al2,
	karpenter.AMIFamilyAL2023:       Node.al2023,
	karpenter.AMIFamilyBottlerocket: Node.bottlerocket,
	karpenter.AMIFamilyWindows2019:  Node.windows,
	karpenter.AMIFamilyWindows2022:  Node.windows,
	karpenter.AMIFamilyWindows2025:  Node.windows,
	karpenter.AMIFamilyCustom:       func(n Node) (string, error) { return n.Custom, nil },
}

// Write writes user data as the images of the family read it, not in base64. All
// errors that a person can mend are fault.Invalid.
func Write(family string, n Node) (string, error) {
	write, known := writers[family]
	if !known {
		return "", fault.F("writing user data", fault.Invalid, "there is no image family %q", family).
			WithHint("correct amiFamily of the EC2NodeClass: AL2, AL2023, Bottlerocket, Windows2019, Windows2022, Windows2025 or Custom")
	}
	text, err := write(n)
	if err != nil {
		return "", err
	}
	if len(text) > Limit {
		return "", fault.F("writing user data", fault.Invalid, "it has %d bytes, and EC2 takes %d", len(text), Limit).
			WithHint("move the class's userData into the image, or fetch it while booting")
	}
	return text, nil
}

// JoinsInstanceStore reports whether images of the family can join the disks of the
// instance into one.
func JoinsInstanceStore(family string) bool {
	switch family {
	case karpenter.AMIFamilyAL2, karpenter.AMIFamilyAL2023, karpenter.AMIFamilyBottlerocket:
		return true
	}
	return false
}

// unreadable is the error of user data that its family cannot read.
func unreadable(err error, hint string) error {
	return fault.E("reading the class's userData", fault.Invalid, err).WithHint("%s", hint)
}
