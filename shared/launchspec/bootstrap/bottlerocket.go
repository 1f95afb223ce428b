package bootstrap

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/pelletier/go-toml/v2"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// table is a TOML table.
type table = map[string]any

const bottlerocketHint = "Bottlerocket requires TOML, with all settings below [settings]"

// bottlerocket merges Joist's settings into the user's settings.
func (n Node) bottlerocket() (string, error) {
	if err := n.joins(); err != nil {
		return "", err
	}
	document := table{}
	if err := toml.Unmarshal([]byte(n.Custom), &document); err != nil {
		return "", unreadable(located(err), bottlerocketHint)
	}
	settings, err := below(document, "settings")
	if err != nil {
		return "", unreadable(err, bottlerocketHint)
	}
	kubernetes, err := below(settings, "kubernetes")
	if err != nil {
		return "", unreadable(err, bottlerocketHint)
	}
	if err := n.setKubernetes(kubernetes); err != nil {
		return "", unreadable(err, bottlerocketHint)
	}
	if n.raid0() {
		commands, err := below(settings, "bootstrap-commands")
		if err != nil {
			return "", unreadable(err, bottlerocketHint)
		}
		commands["000-mount-instance-storage"] = n.mountCommand()
	}
	text, err := toml.Marshal(document)
	if err != nil {
		return "", fault.E("writing user data", fault.Bug, err)
	}
	return string(text), nil
}

// located adds line and column to an error.
func located(err error) error {
	if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		row, column := at.Position()
		return fmt.Errorf("line %d, column %d: %w", row, column, err)
	}
	return err
}

// below returns a table inside another, and adds it if it is missing.
func below(in table, name string) (table, error) {
	switch found := in[name].(type) {
	case nil:
		made := table{}
		in[name] = made
		return made, nil
	case table:
		return found, nil
	default:
		return nil, fmt.Errorf("%s is a %T, and must be a table", name, found)
	}
}

// setKubernetes overwrites the settings that the plan assumed. Taints are replaced completely: a taint
// that the plan does not know would keep its pods off. The user's labels are kept.
func (n Node) setKubernetes(to table) error {
	k := n.Kubelet
	to["cluster-name"], to["api-server"], to["cluster-certificate"] = n.Cluster.Name, n.Cluster.Endpoint, n.Cluster.CABundle
	to["max-pods"] = n.MaxPods
	labels, err := below(to, "node-labels")
	if err != nil {
		return err
	}
	for key, value := range n.ownLabels() {
		labels[key] = value
	}
	taints := map[string][]string{}
	for _, t := range n.Taints {
		taints[t.Key] = append(taints[t.Key], t.Value+":"+string(t.Effect))
	}
	to["node-taints"] = taints
	switch dns := n.dns(); len(dns) {
	case 0:
	case 1:
		to["cluster-dns-ip"] = dns[0]
	default:
		to["cluster-dns-ip"] = dns
	}
	for name, values := range map[string]map[string]string{
		"system-reserved": k.SystemReserved, "kube-reserved": k.KubeReserved, "eviction-hard": k.EvictionHard,
		"eviction-soft": k.EvictionSoft, "eviction-soft-grace-period": graces(k),
	} {
		if len(values) > 0 {
			to[name] = values
		}
	}
	n.setNumbers(to)
	return nil
}

// setNumbers sets the settings with single values. Bottlerocket has no podsPerCore, and takes
// percentages as text.
func (n Node) setNumbers(to table) {
	k := n.Kubelet
	if k.EvictionMaxPodGracePeriod != nil {
		to["eviction-max-pod-grace-period"] = *k.EvictionMaxPodGracePeriod
	}
	for name, percent := range map[string]*int32{
		"image-gc-high-threshold-percent": k.ImageGCHighThresholdPercent, "image-gc-low-threshold-percent": k.ImageGCLowThresholdPercent,
	} {
		if percent != nil {
			to[name] = strconv.Itoa(int(*percent))
		}
	}
	if k.CPUCFSQuota != nil {
		to["cpu-cfs-quota-enforced"] = *k.CPUCFSQuota
	}
}

// mountCommand sets up the disks at each boot, before the kubelet starts. Newer images know which
// directories to bind to the disks; older ones need a list.
func (n Node) mountCommand() table {
	bind := []string{"apiclient", "ephemeral-storage", "bind"}
	if !n.knowsDirectories() {
		bind = append(bind, "--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods")
	}
	return table{
		"commands": [][]string{{"apiclient", "ephemeral-storage", "init"}, bind},
		"mode":     "always", "essential": true,
	}
}

// imageVersion matches the version in image names such as
// bottlerocket-aws-k8s-1.33-x86_64-v1.46.0-431fe75a.
var imageVersion = regexp.MustCompile(`-v(\d+)\.(\d+)\.\d+`)

// knowsDirectories reports whether the image is version 1.46 or later.
func (n Node) knowsDirectories() bool {
	found := imageVersion.FindStringSubmatch(n.ImageName)
	if found == nil {
		return false
	}
	major, err1 := strconv.Atoi(found[1])
	minor, err2 := strconv.Atoi(found[2])
	return errors.Join(err1, err2) == nil && (major > 1 || major == 1 && minor >= 46)
}
