package userdata

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The media type and API group by which nodeadm, the agent of AL2023, finds its configuration.
const (
	nodeConfigMedia = "application/node.eks.aws"
	nodeConfigGroup = "node.eks.aws/"
)

// nodeConfig is nodeadm's document. Fields that do not matter for joining are not parsed.
type nodeConfig struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Spec       struct {
		Cluster struct {
			Name      string `json:"name"`
			Endpoint  string `json:"apiServerEndpoint"`
			Authority string `json:"certificateAuthority"`
			CIDR      string `json:"cidr"`
			Outpost   *bool  `json:"enableOutpost,omitempty"`
			ID        string `json:"id,omitempty"`
		} `json:"cluster"`
		Kubelet struct {
			Config kubeletConfig `json:"config"`
			Flags  []string      `json:"flags"`
		} `json:"kubelet"`
		Containerd json.RawMessage `json:"containerd,omitempty"`
		Instance   struct {
			LocalStorage struct {
				Strategy string `json:"strategy"`
			} `json:"localStorage"`
		} `json:"instance"`
		FeatureGates json.RawMessage `json:"featureGates,omitempty"`
	} `json:"spec"`
}

// kubeletConfig is the part of a KubeletConfiguration that affects the node.
type kubeletConfig struct {
	MaxPods                     int               `json:"maxPods"`
	PodsPerCore                 int               `json:"podsPerCore"`
	ClusterDNS                  []string          `json:"clusterDNS"`
	Taints                      []corev1.Taint    `json:"registerWithTaints"`
	KubeReserved                map[string]string `json:"kubeReserved"`
	SystemReserved              map[string]string `json:"systemReserved"`
	EvictionHard                map[string]string `json:"evictionHard"`
	EvictionSoft                map[string]string `json:"evictionSoft"`
	EvictionSoftGracePeriod     map[string]string `json:"evictionSoftGracePeriod"`
	EvictionMaxPodGracePeriod   int               `json:"evictionMaxPodGracePeriod"`
	ImageGCHighThresholdPercent int               `json:"imageGCHighThresholdPercent"`
	ImageGCLowThresholdPercent  int               `json:"imageGCLowThresholdPercent"`
	CPUCFSQuota                 *bool             `json:"cpuCFSQuota"`
}

// parseNodeConfigs merges documents like nodeadm does: later ones override fields, and flags are
// appended.
func parseNodeConfigs(texts []string) (Joining, error) {
	j := Joining{Format: AL2023, Labels: map[string]string{}}
	var flags []string
	for i, text := range texts {
		config, err := decodeNodeConfig(text)
		if err != nil {
			return Joining{}, fmt.Errorf("NodeConfig %d: %w", i+1, err)
		}
		overlay(&j, config)
		flags = append(flags, config.Spec.Kubelet.Flags...)
	}
	return j, j.applyFlags(flags)
}

func decodeNodeConfig(text string) (*nodeConfig, error) {
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, err
	}
	var config nodeConfig
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, err
	}
	if config.APIVersion != nodeConfigGroup+"v1alpha1" || config.Kind != "NodeConfig" {
		return nil, fmt.Errorf("unexpected document %s %s, want %sv1alpha1 NodeConfig", config.APIVersion, config.Kind, nodeConfigGroup)
	}
	return &config, checkFields(data)
}

// checkFields returns an error for fields that nodeadm does not know, because they are likely typos.
func checkFields(data []byte) error {
	var known struct {
		Spec map[string]json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(data, &known); err != nil {
		return err
	}
	for field := range maps.Keys(known.Spec) {
		switch field {
		case "cluster", "kubelet", "containerd", "instance", "featureGates":
		default:
			return fmt.Errorf("unknown field spec.%s in a NodeConfig", field)
		}
	}
	return nil
}

func overlay(j *Joining, c *nodeConfig) {
	set(&j.ClusterName, c.Spec.Cluster.Name)
	set(&j.Endpoint, c.Spec.Cluster.Endpoint)
	set(&j.Authority, c.Spec.Cluster.Authority)
	set(&j.CIDR, c.Spec.Cluster.CIDR)
	j.RAID0 = j.RAID0 || c.Spec.Instance.LocalStorage.Strategy == "RAID0"
	kubelet := c.Spec.Kubelet.Config
	set(&j.MaxPods, kubelet.MaxPods)
	set(&j.PodsPerCore, kubelet.PodsPerCore)
	set(&j.EvictionMaxPodGracePeriod, kubelet.EvictionMaxPodGracePeriod)
	set(&j.ImageGCHighThresholdPercent, kubelet.ImageGCHighThresholdPercent)
	set(&j.ImageGCLowThresholdPercent, kubelet.ImageGCLowThresholdPercent)
	set(&j.CPUCFSQuota, kubelet.CPUCFSQuota)
	if kubelet.ClusterDNS != nil {
		j.ClusterDNS = kubelet.ClusterDNS
	}
	if kubelet.Taints != nil {
		j.Taints = kubelet.Taints
	}
	merge(&j.KubeReserved, kubelet.KubeReserved)
	merge(&j.SystemReserved, kubelet.SystemReserved)
	merge(&j.EvictionHard, kubelet.EvictionHard)
	merge(&j.EvictionSoft, kubelet.EvictionSoft)
	merge(&j.EvictionSoftGracePeriod, kubelet.EvictionSoftGracePeriod)
}

// set overwrites with values that are not zero.
func set[T comparable](to *T, value T) {
	var zero T
	if value != zero {
		*to = value
	}
}

func merge(to *map[string]string, from map[string]string) {
	if len(from) == 0 {
		return
	}
	if *to == nil {
		*to = map[string]string{}
	}
	maps.Copy(*to, from)
}
