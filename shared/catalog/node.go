package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// DefaultVMMemoryOverheadPercent is the part of memory that the hypervisor and the kernel use. Despite its name,
// which is that of Karpenter's setting, it is a fraction.
const DefaultVMMemoryOverheadPercent = 0.075

// NodeConfig is the configuration that affects the resources of pods on a node. The zero value is a node of family
// Custom with all defaults.
type NodeConfig struct {
	// AMIFamily is one of karpenter's AMIFamily constants; anything else counts as Custom.
	AMIFamily string
	// Kubelet has the class's settings. Values that are not numbers or quantities count as not set: Validate reports
	// thresholds, and package expression resolves expressions.
	Kubelet             karpenter.ParsedKubelet
	BlockDevices        []karpenter.BlockDeviceMapping
	InstanceStorePolicy karpenter.InstanceStorePolicy
	NetworkInterfaces   []karpenter.NetworkInterface
	// ReservedENIs are interfaces that pods cannot use, as with custom networking.
	ReservedENIs int64
	// VMMemoryOverheadPercent is a fraction; nil means DefaultVMMemoryOverheadPercent.
	VMMemoryOverheadPercent *float64
	// DiscoveredMemory is the observed memory of a node with this type and image; nil if there was none.
	DiscoveredMemory *resource.Quantity
}

// NewNodeConfig returns the configuration of a class. The caller must set the installation's settings (ReservedENIs,
// VMMemoryOverheadPercent) and DiscoveredMemory, which depends on the type.
func NewNodeConfig(class *karpenter.EC2NodeClass) (NodeConfig, error) {
	family, err := class.AMIFamily()
	if err != nil {
		return NodeConfig{}, err
	}
	kubelet, err := class.Spec.Kubelet.Parse()
	if err != nil {
		return NodeConfig{}, fmt.Errorf("EC2NodeClass %s: %w", class.Name, err)
	}
	cfg := NodeConfig{
		AMIFamily:         family,
		Kubelet:           kubelet,
		BlockDevices:      class.Spec.BlockDeviceMappings,
		NetworkInterfaces: class.Spec.NetworkInterfaces,
	}
	if policy := class.Spec.InstanceStorePolicy; policy != nil {
		cfg.InstanceStorePolicy = *policy
	}
	if err := cfg.Validate(); err != nil {
		return NodeConfig{}, fmt.Errorf("reading the kubelet settings of EC2NodeClass %s: %w", class.Name, err)
	}
	return cfg, nil
}

// Validate reports each threshold that NodeResources cannot parse. The API server accepts such values.
func (cfg NodeConfig) Validate() error {
	var all []error
	for _, field := range []struct {
		name   string
		values map[string]string
	}{{"evictionHard", cfg.Kubelet.EvictionHard}, {"evictionSoft", cfg.Kubelet.EvictionSoft}} {
		for _, key := range slices.Sorted(maps.Keys(field.values)) {
			if err := parseThreshold(field.values[key]); err != nil {
				all = append(all, fmt.Errorf("%s[%s]: %w", field.name, key, err))
			}
		}
	}
	return errors.Join(all...)
}

func parseQuantity(text string) error {
	if _, err := resource.ParseQuantity(text); err != nil {
		return fmt.Errorf("invalid quantity %q (use for example 100m, 512Mi or 1Gi)", text)
	}
	return nil
}

func parseThreshold(text string) error {
	percent, isPercent := strings.CutSuffix(text, "%")
	if !isPercent {
		return parseQuantity(text)
	}
	if share, err := strconv.ParseFloat(percent, 64); err != nil || share < 0 || share > 100 {
		return fmt.Errorf("invalid percentage %q (use for example 5%%)", text)
	}
	return nil
}
