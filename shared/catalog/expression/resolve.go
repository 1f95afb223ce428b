package expression

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// ErrDisabled is the error for a class with expressions while the feature gate NodeClassCEL is off.
var ErrDisabled = errors.New("spec.kubelet contains a CEL expression, but the NodeClassCEL feature gate is disabled")

// reservedField is one of the two maps whose values may be expressions.
type reservedField struct {
	name   string
	values func(*karpenter.ParsedKubelet) *map[string]string
}

var reservedFields = []reservedField{
	{"kubeReserved", func(k *karpenter.ParsedKubelet) *map[string]string { return &k.KubeReserved }},
	{"systemReserved", func(k *karpenter.ParsedKubelet) *map[string]string { return &k.SystemReserved }},
}

// Uses reports whether the settings have an expression.
func Uses(k karpenter.ParsedKubelet) bool {
	if hasMaxPodsExpression(k) {
		return true
	}
	return slices.ContainsFunc(reservedFields, func(f reservedField) bool { return hasExpression(*f.values(&k)) })
}

func hasMaxPodsExpression(k karpenter.ParsedKubelet) bool {
	return k.MaxPods != nil && k.MaxPods.Type == intstr.String
}

func hasExpression(texts map[string]string) bool {
	for _, text := range texts {
		if !isQuantity(text) {
			return true
		}
	}
	return false
}

// InvalidExpression is an expression that does not compile to a number.
type InvalidExpression struct {
	// Field is maxPods, kubeReserved or systemReserved; Key is the resource of the last two.
	Field, Key string
	Err        error
}

func (e InvalidExpression) Error() string {
	field := "spec.kubelet." + e.Field
	if e.Key != "" {
		field += "[" + e.Key + "]"
	}
	return withValues(fmt.Errorf("validating expression, %w", e.Err), values{"field": field}).Error()
}

// Check returns every expression that does not compile to a number, without an instance type.
func Check(k karpenter.ParsedKubelet) []InvalidExpression {
	var all []InvalidExpression
	if hasMaxPodsExpression(k) {
		if _, err := compile(k.MaxPods.StrVal); err != nil {
			all = append(all, InvalidExpression{"maxPods", "", err})
		}
	}
	for _, field := range reservedFields {
		texts := *field.values(&k)
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			if isQuantity(texts[name]) {
				continue
			}
			if _, err := compile(texts[name]); err != nil {
				all = append(all, InvalidExpression{field.name, name, err})
			}
		}
	}
	return all
}

// Resolve returns the configuration with the numbers that its expressions give for a type. In maxPods, max_pods is
// the family's default; in the other fields it is the resolved number of pods.
func Resolve(t catalog.InstanceType, cfg catalog.NodeConfig) (catalog.NodeConfig, error) {
	if !Uses(cfg.Kubelet) {
		return cfg, nil
	}
	if hasMaxPodsExpression(cfg.Kubelet) {
		count, err := resolveMaxPods(t, cfg)
		if err != nil {
			return catalog.NodeConfig{}, err
		}
		cfg.Kubelet.MaxPods = new(intstr.FromInt32(count))
	}
	v := variables{t, catalog.MaxPods(t, cfg)}
	for _, field := range reservedFields {
		texts := field.values(&cfg.Kubelet)
		if !hasExpression(*texts) {
			continue
		}
		resolved := maps.Clone(*texts)
		for _, name := range slices.Sorted(maps.Keys(resolved)) {
			if isQuantity(resolved[name]) {
				continue
			}
			number, err := evaluate(resolved[name], v)
			about := values{"field": field.name, "key": name, "expression": resolved[name], "instance-type": t.Name}
			switch {
			case err != nil:
				return catalog.NodeConfig{}, withValues(fmt.Errorf("evaluating kubelet resource expression, %w", err), about)
			case number < 0:
				about["result"] = number
				return catalog.NodeConfig{}, withValues(errors.New("kubelet resource expression evaluated to a negative value"), about)
			}
			resolved[name] = formatReserved(name, number)
		}
		*texts = resolved
	}
	return cfg, nil
}

func resolveMaxPods(t catalog.InstanceType, cfg catalog.NodeConfig) (int32, error) {
	text := cfg.Kubelet.MaxPods.StrVal
	cfg.Kubelet.MaxPods = nil
	count, err := evaluate(text, variables{t, catalog.MaxPods(t, cfg)})
	about := values{"expression": text, "instance-type": t.Name}
	switch {
	case err != nil:
		return 0, withValues(fmt.Errorf("evaluating maxPods expression, %w", err), about)
	case count < 0 || count > math.MaxInt32:
		about["result"] = count
		return 0, withValues(fmt.Errorf("maxPods expression evaluated to a value outside the valid range [0, %d]", math.MaxInt32), about)
	}
	return int32(count), nil
}
