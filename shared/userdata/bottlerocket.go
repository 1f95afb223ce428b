package userdata

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pelletier/go-toml/v2"
)

// settings is the part of Bottlerocket's TOML that joins the node.
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
		} `toml:"kubernetes"`
	} `toml:"settings"`
}

func parseSettings(text string) (Joining, error) {
	var s settings
	if err := toml.Unmarshal([]byte(text), &s); err != nil {
		return Joining{}, fmt.Errorf("it is no MIME document, NodeConfig or script, and as TOML it fails: %w", err)
	}
	k := s.Settings.Kubernetes
	if k.ClusterName == "" && k.Endpoint == "" {
		return Joining{}, errors.New("it has no [settings.kubernetes], so nothing tells the machine to join")
	}
	j := Joining{
		Format: Bottlerocket, ClusterName: k.ClusterName, Endpoint: k.Endpoint, Authority: k.Authority,
		Labels: map[string]string{}, MaxPods: k.MaxPods, ClusterDNS: oneOrMany(k.DNS),
		KubeReserved: k.KubeReserved, SystemReserved: k.SystemReserved,
		EvictionHard: k.EvictionHard, EvictionSoft: k.EvictionSoft,
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
