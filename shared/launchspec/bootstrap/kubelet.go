package bootstrap

import (
	"fmt"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// flags returns the kubelet's command line, for families with a bootstrap script. A single DNS address
// is an argument of the script instead. Lists are quoted, because thresholds contain "<".
func (n Node) flags() []string {
	k := n.Kubelet
	var out []string
	list := func(name, value string) {
		if value != "" {
			out = append(out, fmt.Sprintf("--%s=%q", name, value))
		}
	}
	number := func(name string, value *int32) {
		if value != nil {
			out = append(out, fmt.Sprintf("--%s=%d", name, *value))
		}
	}
	list("node-labels", n.labelFlag())
	list("register-with-taints", n.taintFlag())
	out = append(out, "--max-pods="+strconv.FormatInt(n.MaxPods, 10))
	if len(k.ClusterDNS) > 1 {
		list("cluster-dns", strings.Join(k.ClusterDNS, ","))
	}
	number("pods-per-core", k.PodsPerCore)
	list("system-reserved", pairs(k.SystemReserved, "="))
	list("kube-reserved", pairs(k.KubeReserved, "="))
	list("eviction-hard", pairs(k.EvictionHard, "<"))
	list("eviction-soft", pairs(k.EvictionSoft, "<"))
	list("eviction-soft-grace-period", pairs(graces(k), "="))
	number("eviction-max-pod-grace-period", k.EvictionMaxPodGracePeriod)
	number("image-gc-high-threshold", k.ImageGCHighThresholdPercent)
	number("image-gc-low-threshold", k.ImageGCLowThresholdPercent)
	if k.CPUCFSQuota != nil {
		out = append(out, "--cpu-cfs-quota="+strconv.FormatBool(*k.CPUCFSQuota))
	}
	return out
}

// graces returns the grace periods of soft thresholds in the kubelet's format.
func graces(k karpenter.ParsedKubelet) map[string]string {
	out := map[string]string{}
	for signal, grace := range k.EvictionSoftGracePeriod {
		out[signal] = grace.Duration.String()
	}
	return out
}

// config returns the class's settings, which have the same names in the kubelet's configuration, with the plan's
// maxPods.
func (n Node) config() karpenter.KubeletConfiguration {
	out := n.KubeletConfiguration.DeepCopy()
	if out == nil {
		out = karpenter.KubeletConfiguration{}
	}
	out["maxPods"] = apiextensionsv1.JSON{Raw: strconv.AppendInt(nil, n.MaxPods, 10)}
	return out
}
