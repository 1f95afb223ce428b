package userdata

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/pelletier/go-toml/v2"
)

// settings is the part of Bottlerocket's TOML that matters for joining.
type settings struct {
	Settings struct {
		Kubernetes struct {
			ClusterName    string              `toml:"cluster-name"`
			Endpoint       string              `toml:"api-server"`
			Authority      string              `toml:"cluster-certificate"`
			DNS            any                 `toml:"cluster-dns-ip"`
			MaxPods        int                 `toml:"max-pods"`
			Labels         map[string]string   `toml:"node-labels"`
			Taints         map[string][]string `toml:"node-taints"`
			KubeReserved   map[string]string   `toml:"kube-reserved"`
			SystemReserved map[string]string   `toml:"system-reserved"`
			EvictionHard   map[string]string   `toml:"eviction-hard"`
			EvictionSoft   map[string]string   `toml:"eviction-soft"`
			SoftGraces     map[string]string   `toml:"eviction-soft-grace-period"`
			MaxPodGrace    int                 `toml:"eviction-max-pod-grace-period"`
			ImageGCHigh    string              `toml:"image-gc-high-threshold-percent"`
			ImageGCLow     string              `toml:"image-gc-low-threshold-percent"`
			CPUCFSQuota    *bool               `toml:"cpu-cfs-quota-enforced"`
		} `toml:"kubernetes"`
		Commands map[string]struct {
			Commands [][]string `toml:"commands"`
			Mode     string     `toml:"mode"`
		} `toml:"bootstrap-commands"`
	} `toml:"settings"`
}

func parseSettings(text string) (Joining, error) {
	var s settings
	if err := toml.Unmarshal([]byte(text), &s); err != nil {
		return Joining{}, fmt.Errorf("the user data is not a MIME document, NodeConfig or script, and not valid TOML: %w", err)
	}
	k := s.Settings.Kubernetes
	if k.ClusterName == "" && k.Endpoint == "" {
		return Joining{}, errors.New("[settings.kubernetes] is missing, so the node does not join")
	}
	j := Joining{
		Format: Bottlerocket, ClusterName: k.ClusterName, Endpoint: k.Endpoint, Authority: k.Authority,
		Labels: map[string]string{}, RAID0: s.mounts(), Kubelet: Kubelet{
			MaxPods: k.MaxPods, ClusterDNS: oneOrMany(k.DNS), KubeReserved: k.KubeReserved, SystemReserved: k.SystemReserved,
			EvictionHard: k.EvictionHard, EvictionSoft: k.EvictionSoft, EvictionSoftGracePeriod: k.SoftGraces,
			EvictionMaxPodGracePeriod: k.MaxPodGrace, CPUCFSQuota: k.CPUCFSQuota,
		},
	}
	if err := errors.Join(percent(&j.ImageGCHighThresholdPercent, k.ImageGCHigh), percent(&j.ImageGCLowThresholdPercent, k.ImageGCLow)); err != nil {
		return Joining{}, err
	}
	maps.Copy(j.Labels, k.Labels)
	for _, key := range slices.Sorted(maps.Keys(k.Taints)) {
		for _, value := range k.Taints[key] {
			value, effect, ok := cutLast(value, ":")
			if !ok {
				return Joining{}, fmt.Errorf("the taint %s has no effect", key)
			}
			taint, err := newTaint(key, value, effect)
			if err != nil {
				return Joining{}, err
			}
			j.Taints = append(j.Taints, taint)
		}
	}
	return j, nil
}

// mounts reports whether a command sets up the instance's disks at each boot.
func (s *settings) mounts() bool {
	for _, c := range s.Settings.Commands {
		for i, command := range c.Commands {
			if c.Mode == "always" && i > 0 && startsWith(c.Commands[i-1], "apiclient", "ephemeral-storage", "init") &&
				startsWith(command, "apiclient", "ephemeral-storage", "bind") {
				return true
			}
		}
	}
	return false
}

func startsWith(words []string, first ...string) bool {
	return len(words) >= len(first) && slices.Equal(words[:len(first)], first)
}

// percent parses a percentage, which is text in Bottlerocket.
func percent(to *int, text string) (err error) {
	if text != "" {
		*to, err = strconv.Atoi(text)
	}
	return err
}

// oneOrMany reads a setting that is a string or a list of strings.
func oneOrMany(value any) []string {
	switch value := value.(type) {
	case string:
		return []string{value}
	case []any:
		out := make([]string, 0, len(value))
		for _, one := range value {
			out = append(out, fmt.Sprint(one))
		}
		return out
	}
	return nil
}
