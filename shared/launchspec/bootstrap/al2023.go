package bootstrap

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// The version and media type by which nodeadm, the agent of AL2023 instances, finds its configuration.
const (
	nodeConfigVersion = "node.eks.aws/v1alpha1"
	nodeConfigMedia   = "application/node.eks.aws"
)

// nodeConfig is the configuration document of nodeadm.
type nodeConfig struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Spec       nodeConfigSpec `json:"spec"`
}

type nodeConfigSpec struct {
	Cluster  nodeCluster   `json:"cluster"`
	Kubelet  nodeKubelet   `json:"kubelet"`
	Instance *nodeInstance `json:"instance,omitempty"`
}

type nodeCluster struct {
	Name      string `json:"name"`
	Endpoint  string `json:"apiServerEndpoint"`
	Authority string `json:"certificateAuthority"`
	CIDR      string `json:"cidr"`
}

type nodeKubelet struct {
	Config karpenter.KubeletConfiguration `json:"config"`
	Flags  []string                       `json:"flags"`
}

type nodeInstance struct {
	LocalStorage struct {
		Strategy string `json:"strategy"`
	} `json:"localStorage"`
}

// al2023 puts the user's parts first and Joist's last, because later NodeConfigs override earlier
// ones.
func (n Node) al2023() (string, error) {
	config, err := n.nodeConfig()
	if err != nil {
		return "", err
	}
	parts, err := al2023Parts(n.Custom)
	if err != nil {
		return "", unreadable(err, "use a shell script, a NodeConfig, or a MIME multipart document of both, for AL2023")
	}
	return writeParts(append(parts, newPart(nodeConfigMedia, config)))
}

// al2023Parts splits the user's data into parts, and also accepts a NodeConfig without MIME. It
// rejects a NodeConfig that nodeadm cannot read, which would keep the instance from joining.
func al2023Parts(text string) ([]part, error) {
	parts, err := userParts(text)
	if err != nil {
		return nil, err
	}
	if alone := len(parts) == 1 && parts[0].media() == "text/x-shellscript"; alone &&
		strings.Contains(text, nodeConfigVersion) && !strings.HasPrefix(strings.TrimSpace(text), "#!") {
		parts = []part{newPart(nodeConfigMedia, text)}
	}
	for i, p := range parts {
		if p.media() != nodeConfigMedia {
			continue
		}
		if err := p.nodeConfig(); err != nil {
			return nil, fmt.Errorf("reading the NodeConfig in part %d: %w", i+1, err)
		}
	}
	return parts, nil
}

// nodeConfig checks that the part is a NodeConfig. It does not check the settings: newer images have
// more settings than Joist knows.
func (p part) nodeConfig() error {
	text, err := p.text()
	if err != nil {
		return err
	}
	var found struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal([]byte(text), &found); err != nil {
		return err
	}
	if !strings.HasPrefix(found.APIVersion, "node.eks.aws/") || found.Kind != "NodeConfig" {
		return fmt.Errorf("unexpected kind %q of %q (want NodeConfig of %q)", found.Kind, found.APIVersion, nodeConfigVersion)
	}
	return nil
}

func (n Node) nodeConfig() (string, error) {
	if err := n.joins(); err != nil {
		return "", err
	}
	c := n.Cluster
	if c.ServiceCIDR == "" {
		return "", fault.F("writing user data", fault.Invalid, "the catalogue has no service CIDR of the cluster, which AL2023 requires").
			WithHint("grant eks:DescribeCluster to the catalog service")
	}
	config := nodeConfig{APIVersion: nodeConfigVersion, Kind: "NodeConfig"}
	config.Spec.Cluster = nodeCluster{Name: c.Name, Endpoint: c.Endpoint, Authority: c.CABundle, CIDR: c.ServiceCIDR}
	config.Spec.Kubelet.Config = n.config()
	config.Spec.Kubelet.Flags = []string{"--node-labels=" + n.labelFlag(), "--register-with-taints=" + n.taintFlag()}
	if n.raid0() {
		config.Spec.Instance = &nodeInstance{}
		config.Spec.Instance.LocalStorage.Strategy = "RAID0"
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		return "", fault.E("writing user data", fault.Bug, err)
	}
	return string(text), nil
}
