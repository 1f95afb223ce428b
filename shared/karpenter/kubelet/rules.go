package kubelet

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

var (
	// evictionSignals are the signals with thresholds that the kubelet knows. It ignores others.
	evictionSignals = []string{
		"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "pid.available",
	}
	// reservableResources are the resources that the kubelet can reserve. It ignores others.
	reservableResources = []string{"cpu", "memory", "ephemeral-storage", "pid"}
)

// FieldError is a mistake in one value.
type FieldError struct {
	// Field is empty if the mistake is in several fields together; Key is set for a value of a map.
	Field, Key string
	Message    string
}

func (e FieldError) Error() string {
	path := "spec.kubelet"
	if e.Field != "" {
		path += "." + e.Field
	}
	if e.Key != "" {
		path += "[" + e.Key + "]"
	}
	return path + ": " + e.Message
}

// ruleErrors collects the errors of one configuration.
type ruleErrors struct {
	settings karpenter.KubeletConfiguration
	all      []FieldError
}

func (r *ruleErrors) report(field, key, format string, args ...any) {
	r.all = append(r.all, FieldError{field, key, fmt.Sprintf(format, args...)})
}

// CheckRules returns the mistakes in values of the right type. Values of other types count as absent.
func CheckRules(k karpenter.KubeletConfiguration) []FieldError {
	r := &ruleErrors{settings: k}
	if _, set := k["registerWithTaints"]; set {
		r.report("registerWithTaints", "", "can't be set, %s",
			"Karpenter sets it from the NodeClaim's taints so the node registers unschedulable until it's ready")
	}
	for _, field := range []string{"evictionHard", "evictionSoft", "evictionSoftGracePeriod", "evictionMinimumReclaim"} {
		r.checkSignals(field)
	}
	r.checkPairs("evictionSoft", "evictionSoftGracePeriod")
	r.checkPairs("evictionSoftGracePeriod", "evictionSoft")
	r.checkReserved("kubeReserved")
	r.checkReserved("systemReserved")
	r.checkNumbers()
	return r.all
}

// checkSignals checks the keys and values of an eviction map.
func (r *ruleErrors) checkSignals(field string) {
	values, _ := decodeField[map[string]string](r.settings, field)
	for _, signal := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(evictionSignals, signal) {
			r.report(field, "", "%q isn't a valid eviction signal, must be one of %s", signal, strings.Join(evictionSignals, ", "))
		}
		check := thresholdProblem
		if field == "evictionSoftGracePeriod" {
			check = durationProblem
		}
		if problem := check(values[signal]); problem != "" {
			r.report(field, signal, "%q %s", values[signal], problem)
		}
	}
}

// thresholdProblem returns the mistake in a threshold, or "". A threshold is a percentage or a quantity.
func thresholdProblem(text string) string {
	const neither = "must be a percentage or a resource quantity"
	if percent, isPercent := strings.CutSuffix(text, "%"); isPercent {
		if share, err := strconv.ParseFloat(percent, 64); err != nil || share < 0 || share > 100 {
			return neither
		}
		return ""
	}
	switch quantity, err := resource.ParseQuantity(text); {
	case err != nil:
		return neither
	case quantity.Sign() < 0:
		return "can't be a negative resource quantity"
	}
	return ""
}

func durationProblem(text string) string {
	switch duration, err := time.ParseDuration(text); {
	case err != nil:
		return "must be a duration"
	case duration < 0:
		return "can't be a negative duration"
	}
	return ""
}

// checkPairs requires that another map has each signal of a map: the kubelet ignores one without the other.
func (r *ruleErrors) checkPairs(field, other string) {
	have, _ := decodeField[map[string]string](r.settings, field)
	wanted, _ := decodeField[map[string]string](r.settings, other)
	for _, signal := range slices.Sorted(maps.Keys(have)) {
		if _, there := wanted[signal]; !there {
			r.report(field, signal, "has no matching %s", other)
		}
	}
}

// checkReserved checks a map of reserved resources. A value that is not a quantity is an expression.
func (r *ruleErrors) checkReserved(field string) {
	values, _ := decodeField[map[string]string](r.settings, field)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(reservableResources, name) {
			r.report(field, "", "%q isn't a reservable resource, must be one of %s", name, strings.Join(reservableResources, ", "))
		}
		if strings.HasPrefix(values[name], "-") {
			r.report(field, name, "%q can't be a negative resource quantity", values[name])
		}
	}
}

// checkNumbers checks the ranges of numbers, and that images are deleted from a higher disk usage down to a lower one.
func (r *ruleErrors) checkNumbers() {
	const highField, lowField = "imageGCHighThresholdPercent", "imageGCLowThresholdPercent"
	for _, field := range []string{highField, lowField} {
		if percent, set := decodeField[int64](r.settings, field); set && (percent < 0 || percent > 100) {
			r.report(field, "", "%d must be between 0 and 100", percent)
		}
	}
	for _, field := range []string{"podsPerCore", "evictionMaxPodGracePeriod", maxPodsField} {
		if count, set := decodeField[int64](r.settings, field); set && count < 0 {
			r.report(field, "", "%d can't be negative", count)
		}
	}
	high, highSet := decodeField[int64](r.settings, highField)
	low, lowSet := decodeField[int64](r.settings, lowField)
	if highSet && lowSet && high <= low {
		r.report("", "", "%s (%d) must be greater than %s (%d)", highField, high, lowField, low)
	}
}
