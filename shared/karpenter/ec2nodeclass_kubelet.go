package karpenter

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// KubeletConfiguration has the kubelet's settings under the kubelet's own names. The schema accepts every field with
// every value, and each value keeps its text; Parse reads the fields that Joist uses.
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:Type=object
type KubeletConfiguration map[string]apiextensionsv1.JSON

// ParsedKubelet has the kubelet's settings that Joist reads, because they change a node's resources or because bootstrap
// scripts pass them on as flags.
type ParsedKubelet struct {
	// ClusterDNS has the addresses of the cluster's DNS server.
	ClusterDNS []string `json:"clusterDNS,omitempty"`
	// MaxPods is the maximum number of pods on a node, or an expression with that result.
	MaxPods *intstr.IntOrString `json:"maxPods,omitempty"`
	// PodsPerCore is the maximum number of pods per core; maxPods also applies.
	PodsPerCore *int32 `json:"podsPerCore,omitempty"`
	// SystemReserved has the resources reserved for the operating system.
	SystemReserved map[string]string `json:"systemReserved,omitempty"`
	// KubeReserved has the resources reserved for Kubernetes components.
	KubeReserved map[string]string `json:"kubeReserved,omitempty"`
	// EvictionHard has the thresholds, by signal, at which pods are evicted at once.
	EvictionHard map[string]string `json:"evictionHard,omitempty"`
	// EvictionSoft has the thresholds, by signal, at which pods are evicted after a grace period.
	EvictionSoft map[string]string `json:"evictionSoft,omitempty"`
	// EvictionSoftGracePeriod has the grace periods of the soft thresholds, by the same signals.
	EvictionSoftGracePeriod map[string]metav1.Duration `json:"evictionSoftGracePeriod,omitempty"`
	// EvictionMaxPodGracePeriod is the maximum grace period in seconds of a pod that a soft threshold evicts.
	EvictionMaxPodGracePeriod *int32 `json:"evictionMaxPodGracePeriod,omitempty"`
	// ImageGCHighThresholdPercent is the disk usage above which unused images are deleted.
	ImageGCHighThresholdPercent *int32 `json:"imageGCHighThresholdPercent,omitempty"`
	// ImageGCLowThresholdPercent is the disk usage down to which unused images are deleted.
	ImageGCLowThresholdPercent *int32 `json:"imageGCLowThresholdPercent,omitempty"`
	// CPUCFSQuota is whether CPU limits are enforced by CFS quota.
	CPUCFSQuota *bool `json:"cpuCFSQuota,omitempty"`
}

// Parse returns the fields that Joist reads, and ignores the others. An error names a field whose value has another
// type.
func (k KubeletConfiguration) Parse() (ParsedKubelet, error) {
	var parsed ParsedKubelet
	if len(k) == 0 {
		return parsed, nil
	}
	text, err := k.text()
	if err == nil {
		err = json.Unmarshal(text, &parsed)
	}
	if err != nil {
		return ParsedKubelet{}, fmt.Errorf("reading kubelet settings: %w", err)
	}
	return parsed, nil
}

// text returns the configuration as JSON with sorted keys. The text of an empty one is null.
func (k KubeletConfiguration) text() ([]byte, error) {
	if len(k) == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(k)
}
