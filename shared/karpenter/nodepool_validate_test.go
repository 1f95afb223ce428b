package karpenter

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func requires(key string, operator corev1.NodeSelectorOperator, values ...string) func(*NodePool) {
	return requiresSome(0, key, operator, values...)
}

func requiresSome(least int, key string, operator corev1.NodeSelectorOperator, values ...string) func(*NodePool) {
	r := NodeSelectorRequirementWithMinValues{Key: key, Operator: operator, Values: values}
	if least > 0 {
		r.MinValues = &least
	}
	return func(p *NodePool) {
		p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements, r)
	}
}

func labelled(key, value string) func(*NodePool) {
	return func(p *NodePool) { p.Spec.Template.Labels = map[string]string{key: value} }
}

func tainted(taints ...corev1.Taint) func(*NodePool) {
	return func(p *NodePool) { p.Spec.Template.Spec.Taints = taints }
}

func startsTainted(taints ...corev1.Taint) func(*NodePool) {
	return func(p *NodePool) { p.Spec.Template.Spec.StartupTaints = taints }
}

// Each error names its place and what to do. That the verdicts are upstream's is shown in integration/suites/upstream.
func TestValidate(t *testing.T) {
	const zone = corev1.LabelTopologyZone
	gpu := corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}
	for _, c := range []struct {
		name    string
		changes []func(*NodePool)
		want    string // a part of the only error; empty for none
	}{
		{"nothing", nil, ""},
		{"a label", []func(*NodePool){labelled("team", "web")}, ""},
		{"the pool's own label", []func(*NodePool){labelled(NodePoolLabelKey, "web")}, "spec.template.metadata.labels[karpenter.sh/nodepool]: label karpenter.sh/nodepool is set by the pool itself"},
		{"a restricted label", []func(*NodePool){labelled("karpenter.sh/team", "web")}, "would disturb scheduling"},
		{"a label that is no name", []func(*NodePool){labelled("a b", "web")}, "labels[a b]: the key is wrong"},
		{"a label's value that is none", []func(*NodePool){labelled("team", "a b")}, "labels[team]: the value is wrong"},
		{"taints", []func(*NodePool){tainted(gpu, corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoExecute}), startsTainted(corev1.Taint{Key: "cni"})}, ""},
		{"a taint without key", []func(*NodePool){tainted(corev1.Taint{Effect: corev1.TaintEffectNoSchedule})}, "spec.template.spec.taints[0]: the key is wrong"},
		{"a taint's value that is none", []func(*NodePool){tainted(corev1.Taint{Key: "gpu", Value: "a b"})}, "the value is wrong"},
		{"an effect that is none", []func(*NodePool){startsTainted(corev1.Taint{Key: "gpu", Effect: "NoRun"})}, `startupTaints[0]: there is no effect "NoRun"`},
		{"a taint twice", []func(*NodePool){tainted(gpu, gpu)}, "taints[1]: gpu with the effect \"NoSchedule\" is at spec.template.spec.taints[0] already"},
		{"a taint in both lists", []func(*NodePool){tainted(gpu), startsTainted(gpu)}, "startupTaints[0]: gpu"},
		{"requirements", []func(*NodePool){requires(zone, "In", "a"), requires("team", "Exists"), requires("team", "DoesNotExist"), requires("team", "NotIn"), requires("x", "Gt", "0")}, ""},
		{"a requirement on the pool", []func(*NodePool){requires(NodePoolLabelKey, "In", "a")}, "spec.template.spec.requirements[0]: label karpenter.sh/nodepool"},
		{"a restricted requirement", []func(*NodePool){requires(zone, "In", "a"), requires("kubernetes.io/hostname", "Exists")}, "requirements[1]: label kubernetes.io/hostname would disturb"},
		{"no operator that exists", []func(*NodePool){requires(zone, "Near", "a")}, `there is no operator "Near"`},
		{"a key that is none", []func(*NodePool){requires("a b", "Exists")}, "the key is wrong"},
		{"a value that is none", []func(*NodePool){requires("team", "NotIn", "ok", "a b")}, `the value "a b" is wrong`},
		{"In nothing", []func(*NodePool){requires("team", "In")}, "In of team needs 1 values and has 0"},
		{"too few for minValues", []func(*NodePool){requiresSome(3, "team", "In", "a", "b")}, "needs 3 values and has 2"},
		{"more than a number", []func(*NodePool){requires("x", "Gt", "1", "2")}, "needs one whole number"},
		{"less than a number", []func(*NodePool){requires("x", "Lte", "1.5")}, "needs one whole number"},
		{"a capacity type that does not exist, beside one that does", []func(*NodePool){requires(CapacityTypeLabelKey, "In", "spott", "spot")}, ""},
		{"no capacity type that exists", []func(*NodePool){requires(CapacityTypeLabelKey, "In", "spott")}, "needs 1 values that exist, of on-demand, reserved, spot, and has 0"},
		{"too few capacity types that exist", []func(*NodePool){requiresSome(2, CapacityTypeLabelKey, "In", "spott", "spot")}, "needs 2 values that exist"},
		{"a beta label that means a stable one", []func(*NodePool){requires("failure-domain.beta.kubernetes.io/zone", "In", "a")}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			pool := &NodePool{}
			for _, change := range c.changes {
				change(pool)
			}
			errs := pool.Validate()
			if c.want == "" {
				if len(errs) != 0 {
					t.Fatalf("it is refused: %v", errs)
				}
				return
			}
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want) {
				t.Errorf("got %v, want %q", errs, c.want)
			}
		})
	}
}
