package userdata

import (
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// The formats that Parse knows, named for the AMI families that read them.
const (
	AL2023       = "AL2023"
	AL2          = "AL2"
	Bottlerocket = "Bottlerocket"
	Windows      = "Windows"
)

// Joining is how a machine joins a cluster.
type Joining struct {
	// Format is one of AL2023, AL2, Bottlerocket and Windows.
	Format string
	// ClusterName, Endpoint, Authority and CIDR say which cluster. Authority is
	// the certificate, in base64; CIDR is the services', and only AL2023's.
	ClusterName string
	Endpoint    string
	Authority   string
	CIDR        string
	// Labels and Taints are what the node is registered with.
	Labels map[string]string
	Taints []corev1.Taint
	// RAID0 says that the machine joins its own disks into one.
	RAID0 bool
	Kubelet
}

// Kubelet is what the kubelet is told of itself. What is zero it finds out or has
// defaults for.
type Kubelet struct {
	MaxPods     int
	PodsPerCore int
	ClusterDNS  []string
	// Reserved resources and eviction thresholds, as the kubelet spells them.
	KubeReserved            map[string]string
	SystemReserved          map[string]string
	EvictionHard            map[string]string
	EvictionSoft            map[string]string
	EvictionSoftGracePeriod map[string]string
	// EvictionMaxPodGracePeriod is in seconds, the thresholds in percent of the disk.
	EvictionMaxPodGracePeriod   int
	ImageGCHighThresholdPercent int
	ImageGCLowThresholdPercent  int
	CPUCFSQuota                 *bool
}

// Parse reads user data (not in base64) of any known format.
func Parse(raw string) (Joining, error) {
	j, err := parse(raw)
	if err == nil {
		err = j.check()
	}
	if err != nil {
		return Joining{}, fault.E("reading user data", fault.Invalid, err)
	}
	return j, nil
}

func parse(raw string) (Joining, error) {
	switch text := strings.TrimSpace(raw); {
	case text == "":
		return Joining{}, errors.New("it is empty, so nothing tells the machine to join")
	case isMIME(text):
		parts, err := splitMIME(raw)
		if err != nil {
			return Joining{}, err
		}
		return parseParts(parts)
	case strings.Contains(text, nodeConfigGroup):
		return parseNodeConfigs([]string{text})
	case strings.HasPrefix(text, "#!"):
		return parseScripts([]string{text})
	case strings.HasPrefix(strings.ToLower(text[:min(len(text), len("<powershell>"))]), "<powershell>"):
		return parsePowerShell(text)
	default:
		return parseSettings(text)
	}
}

// parseParts picks the parts of a multipart document that join the node.
func parseParts(parts []mimePart) (Joining, error) {
	var configs, scripts []string
	for _, part := range parts {
		switch {
		case part.media == nodeConfigMedia:
			configs = append(configs, part.body)
		case strings.Contains(part.body, bootstrapScript):
			scripts = append(scripts, part.body)
		}
	}
	switch {
	case len(configs) > 0:
		return parseNodeConfigs(configs)
	case len(scripts) > 0:
		return parseScripts(scripts)
	}
	return Joining{}, errors.New("no part is a NodeConfig (" + nodeConfigMedia + ") or calls " + bootstrapScript)
}

// check refuses what keeps a machine from joining.
func (j *Joining) check() error {
	var errs []error
	lacks := func(value, what string) {
		if value == "" {
			errs = append(errs, errors.New(what+" is missing"))
		}
	}
	lacks(j.ClusterName, "the cluster's name")
	if j.Format != AL2 && j.Format != Windows {
		// The scripts of these ask EKS for what they are not told.
		lacks(j.Endpoint, "the API server's endpoint")
		lacks(j.Authority, "the certificate authority")
	}
	if j.Format == AL2023 {
		lacks(j.CIDR, "the service CIDR")
	}
	if j.MaxPods < 0 {
		errs = append(errs, errors.New("maxPods is negative"))
	}
	errs = append(errs, checkLabels(j.Labels))
	return errors.Join(errs...)
}

// Taint finds a taint by key.
func (j *Joining) Taint(key string) (corev1.Taint, bool) {
	i := slices.IndexFunc(j.Taints, func(t corev1.Taint) bool { return t.Key == key })
	if i < 0 {
		return corev1.Taint{}, false
	}
	return j.Taints[i], true
}
