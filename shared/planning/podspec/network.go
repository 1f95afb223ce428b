package podspec

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// customNetworkVariable is the environment variable of the Amazon VPC CNI that takes the addresses of
// pods from the subnets of ENIConfigs instead of the subnet of their node
// (https://docs.aws.amazon.com/eks/latest/userguide/cni-custom-network.html).
const customNetworkVariable = "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"

// UsesNodeSubnets reports whether the DaemonSet is the Amazon VPC CNI and gives pods addresses of the
// subnet of their node.
func UsesNodeSubnets(set *appsv1.DaemonSet) bool {
	if !isVPCNetwork(set) {
		return false
	}
	for _, variable := range customNetwork(set) {
		if variable.Value == "true" {
			return false
		}
	}
	return true
}

func isVPCNetwork(set *appsv1.DaemonSet) bool {
	return set.Namespace == "kube-system" && set.Name == "aws-node"
}

// customNetwork returns the variables of the VPC CNI that turn custom networking on or off.
func customNetwork(set *appsv1.DaemonSet) []corev1.EnvVar {
	if !isVPCNetwork(set) {
		return nil
	}
	var out []corev1.EnvVar
	for i := range set.Spec.Template.Spec.Containers {
		for _, variable := range set.Spec.Template.Spec.Containers[i].Env {
			if variable.Name == customNetworkVariable {
				out = append(out, variable)
			}
		}
	}
	return out
}
