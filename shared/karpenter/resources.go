package karpenter

import corev1 "k8s.io/api/core/v1"

// Resources of EC2 instances in addition to cpu, memory, ephemeral-storage, pods and huge pages.
const (
	ResourceNVIDIAGPU          corev1.ResourceName = "nvidia.com/gpu"
	ResourceAMDGPU             corev1.ResourceName = "amd.com/gpu"
	ResourceAWSNeuron          corev1.ResourceName = "aws.amazon.com/neuron"
	ResourceAWSNeuronCore      corev1.ResourceName = "aws.amazon.com/neuroncore"
	ResourceHabanaGaudi        corev1.ResourceName = "habana.ai/gaudi"
	ResourceAWSPodENI          corev1.ResourceName = "vpc.amazonaws.com/pod-eni"
	ResourcePrivateIPv4Address corev1.ResourceName = "vpc.amazonaws.com/PrivateIPv4Address"
	ResourceEFA                corev1.ResourceName = "vpc.amazonaws.com/efa"
)

// ExoticResources returns the resources that make an instance type expensive; types with them are used only for pods
// that request them.
func ExoticResources() []corev1.ResourceName {
	return []corev1.ResourceName{
		ResourceNVIDIAGPU, ResourceAMDGPU, ResourceAWSNeuron, ResourceAWSNeuronCore, ResourceHabanaGaudi,
	}
}

// SumResources returns the sum of the lists.
func SumResources(lists ...corev1.ResourceList) corev1.ResourceList {
	total := corev1.ResourceList{}
	for _, list := range lists {
		for name, quantity := range list {
			sum := total[name]
			sum.Add(quantity)
			total[name] = sum
		}
	}
	return total
}
