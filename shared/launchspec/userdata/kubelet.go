package userdata

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// applyFlags applies the kubelet's command line. Flags override the configuration; labels of several
// flags are merged, and the last flag for taints counts.
func (j *Joining) applyFlags(flags []string) error {
	if j.Labels == nil {
		j.Labels = map[string]string{}
	}
	for i := 0; i < len(flags); i++ {
		name, value, joined := strings.Cut(strings.TrimSpace(flags[i]), "=")
		if !joined {
			// "--flag value" as one element or two.
			if name, value, joined = strings.Cut(name, " "); !joined && i+1 < len(flags) && !strings.HasPrefix(flags[i+1], "-") {
				i++
				value = flags[i]
			}
		}
		if err := j.applyFlag(name, strings.Trim(value, `"' `)); err != nil {
			return fmt.Errorf("kubelet flag %s: %w", name, err)
		}
	}
	return nil
}

func (j *Joining) applyFlag(name, value string) (err error) {
	switch name {
	case "--node-labels":
		return addLabels(j.Labels, value)
	case "--register-with-taints":
		j.Taints, err = parseTaints(value)
	case "--cluster-dns":
		j.ClusterDNS = strings.Split(value, ",")
	case "--cpu-cfs-quota":
		var on bool
		on, err = strconv.ParseBool(value)
		j.CPUCFSQuota = &on
	default:
		return j.apply(name, value)
	}
	return err
}

// apply applies flags with numbers or lists of pairs. Other flags do not affect the node and are
// ignored.
func (k *Kubelet) apply(name, value string) (err error) {
	numbers := map[string]*int{
		"--max-pods": &k.MaxPods, "--pods-per-core": &k.PodsPerCore, "--eviction-max-pod-grace-period": &k.EvictionMaxPodGracePeriod,
		"--image-gc-high-threshold": &k.ImageGCHighThresholdPercent, "--image-gc-low-threshold": &k.ImageGCLowThresholdPercent,
	}
	if to, known := numbers[name]; known {
		*to, err = strconv.Atoi(value)
		return err
	}
	lists := map[string]*map[string]string{
		"--kube-reserved": &k.KubeReserved, "--system-reserved": &k.SystemReserved, "--eviction-soft-grace-period": &k.EvictionSoftGracePeriod,
		"--eviction-hard": &k.EvictionHard, "--eviction-soft": &k.EvictionSoft,
	}
	if to, known := lists[name]; known {
		separator := "="
		if name == "--eviction-hard" || name == "--eviction-soft" {
			separator = "<"
		}
		return addPairs(to, value, separator)
	}
	return nil
}

func addLabels(labels map[string]string, text string) error {
	return addPairs(&labels, text, "=")
}

func addPairs(to *map[string]string, text, sep string) error {
	pairs := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if pair == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, sep)
		if !ok {
			return fmt.Errorf("%q does not have the form key%svalue", pair, sep)
		}
		pairs[key] = value
	}
	merge(to, pairs)
	return nil
}

func parseTaints(text string) ([]corev1.Taint, error) {
	var taints []corev1.Taint
	for one := range strings.SplitSeq(text, ",") {
		if one == "" {
			continue
		}
		pair, effect, ok := cutLast(one, ":")
		if !ok {
			return nil, fmt.Errorf("the taint %q has no effect", one)
		}
		key, value, _ := strings.Cut(pair, "=")
		taint, err := newTaint(key, value, effect)
		if err != nil {
			return nil, err
		}
		taints = append(taints, taint)
	}
	return taints, nil
}

func newTaint(key, value, effect string) (corev1.Taint, error) {
	taint := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
	switch taint.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		return taint, nil
	}
	return taint, fmt.Errorf("taint %s: unknown effect %q", key, effect)
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// The labels in Kubernetes' own domains that a kubelet may set on itself. It does not start with
// others.
var (
	ownLabels = []string{
		corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable, corev1.LabelInstanceTypeStable,
		corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone,
		corev1.LabelFailureDomainBetaRegion, corev1.LabelInstanceType, "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
	}
	ownSpaces = []string{"kubelet.kubernetes.io", "node.kubernetes.io"}
)

// checkLabels returns an error for labels that the kubelet rejects.
func checkLabels(labels map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		space, _, _ := strings.Cut(key, "/")
		if !strings.Contains(key, "/") || !under(space, "kubernetes.io") && !under(space, "k8s.io") {
			continue
		}
		allowed := slices.ContainsFunc(ownSpaces, func(own string) bool { return under(space, own) })
		if !allowed && !slices.Contains(ownLabels, key) {
			return fmt.Errorf("the kubelet rejects the label %s and does not start", key)
		}
	}
	return nil
}

func under(space, parent string) bool { return space == parent || strings.HasSuffix(space, "."+parent) }
