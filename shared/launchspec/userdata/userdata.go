package userdata

import (
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// The formats of Parse, named after the AMI families that use them.
const (
	AL2023       = "AL2023"
	AL2          = "AL2"
	Bottlerocket = "Bottlerocket"
	Windows      = "Windows"
)

// Joining is how an instance joins a cluster.
type Joining struct {
	// Format is AL2023, AL2, Bottlerocket or Windows.
	Format string
	// ClusterName, Endpoint, Authority and CIDR identify the cluster. Authority is the CA certificate
	// in base64; CIDR is the service range, only for AL2023.
	ClusterName string
	Endpoint    string
	Authority   string
	CIDR        string
	// Labels and Taints are those with which the node registers.
	Labels map[string]string
	Taints []corev1.Taint
	// RAID0 is true if the instance sets up a RAID of its disks.
	RAID0 bool
	Kubelet
}

// Kubelet is the kubelet's settings; zero values are the kubelet's defaults.
type Kubelet struct {
	MaxPods     int
	PodsPerCore int
	ClusterDNS  []string
	// Reserved resources and eviction thresholds in the kubelet's format.
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

// Parse parses user data, not in base64, in any known format.
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
		return Joining{}, errors.New("the user data is empty, so the node does not join")
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

// parseParts uses the parts of a multipart document that join the node.
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

// check returns an error if the instance could not join.
func (j *Joining) check() error {
	var errs []error
	lacks := func(value, what string) {
		if value == "" {
			errs = append(errs, errors.New(what+" is missing"))
		}
	}
	lacks(j.ClusterName, "the cluster's name")
	if j.Format != AL2 && j.Format != Windows {
		// The scripts of AL2 and Windows get missing values from EKS.
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

// Taint returns the taint with a key.
func (j *Joining) Taint(key string) (corev1.Taint, bool) {
	i := slices.IndexFunc(j.Taints, func(t corev1.Taint) bool { return t.Key == key })
	if i < 0 {
		return corev1.Taint{}, false
	}
	return j.Taints[i], true
}
