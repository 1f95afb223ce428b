package karpenter

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func poolWithRequirement(key string, operator corev1.NodeSelectorOperator, values ...string) func(*NodePool) {
	return poolWithMinValues(0, key, operator, values...)
}

func poolWithMinValues(least int, key string, operator corev1.NodeSelectorOperator, values ...string) func(*NodePool) {
	r := NodeSelectorRequirementWithMinValues{Key: key, Operator: operator, Values: values}
	if least > 0 {
		r.MinValues = &least
	}
	return func(p *NodePool) {
		p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements, r)
	}
}

func poolWithLabel(key, value string) func(*NodePool) {
	return func(p *NodePool) { p.Spec.Template.Labels = map[string]string{key: value} }
}

func poolWithTaint(taints ...corev1.Taint) func(*NodePool) {
	return func(p *NodePool) { p.Spec.Template.Spec.Taints = taints }
}

func poolWithStartupTaint(taints ...corev1.Taint) func(*NodePool) {
	return func(p *NodePool) { p.Spec.Template.Spec.StartupTaints = taints }
}

// Each error has its path and says what to do. integration/suites/upstream tests that the results equal Karpenter's.
func TestValidate(t *testing.T) {
	const zone = corev1.LabelTopologyZone
	gpu := corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}
	for _, c := range []struct {
		name    string
		changes []func(*NodePool)
		want    string // a part of the only error; empty for none
	}{
		{"nothing", nil, ""},
		{"a label", []func(*NodePool){poolWithLabel("team", "web")}, ""},
		{"the pool's own label", []func(*NodePool){poolWithLabel(NodePoolLabelKey, "web")}, "spec.template.metadata.labels[karpenter.sh/nodepool]: label karpenter.sh/nodepool is set by Joist from the NodePool"},
		{"a restricted label", []func(*NodePool){poolWithLabel("karpenter.sh/team", "web")}, "is restricted"},
		{"an invalid label key", []func(*NodePool){poolWithLabel("a b", "web")}, "labels[a b]: the key is wrong"},
		{"an invalid label value", []func(*NodePool){poolWithLabel("team", "a b")}, "labels[team]: the value is wrong"},
		{"taints", []func(*NodePool){poolWithTaint(gpu, corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoExecute}), poolWithStartupTaint(corev1.Taint{Key: "cni"})}, ""},
		{"a taint without key", []func(*NodePool){poolWithTaint(corev1.Taint{Effect: corev1.TaintEffectNoSchedule})}, "spec.template.spec.taints[0]: the key is wrong"},
		{"an invalid taint value", []func(*NodePool){poolWithTaint(corev1.Taint{Key: "gpu", Value: "a b"})}, "the value is wrong"},
		{"unknown effect", []func(*NodePool){poolWithStartupTaint(corev1.Taint{Key: "gpu", Effect: "NoRun"})}, `startupTaints[0]: unknown effect "NoRun"`},
		{"duplicate taint", []func(*NodePool){poolWithTaint(gpu, gpu)}, "taints[1]: gpu with the effect \"NoSchedule\" duplicates spec.template.spec.taints[0]"},
		{"a taint in both lists", []func(*NodePool){poolWithTaint(gpu), poolWithStartupTaint(gpu)}, "startupTaints[0]: gpu"},
		{"requirements", []func(*NodePool){poolWithRequirement(zone, "In", "a"), poolWithRequirement("team", "Exists"), poolWithRequirement("team", "DoesNotExist"), poolWithRequirement("team", "NotIn"), poolWithRequirement("x", "Gt", "0")}, ""},
		{"a requirement on the pool", []func(*NodePool){poolWithRequirement(NodePoolLabelKey, "In", "a")}, "spec.template.spec.requirements[0]: label karpenter.sh/nodepool"},
		{"a restricted requirement", []func(*NodePool){poolWithRequirement(zone, "In", "a"), poolWithRequirement("kubernetes.io/hostname", "Exists")}, "requirements[1]: label kubernetes.io/hostname is restricted"},
		{"unknown operator", []func(*NodePool){poolWithRequirement(zone, "Near", "a")}, `unknown operator "Near"`},
		{"invalid key", []func(*NodePool){poolWithRequirement("a b", "Exists")}, "the key is wrong"},
		{"invalid value", []func(*NodePool){poolWithRequirement("team", "NotIn", "ok", "a b")}, `the value "a b" is wrong`},
		{"In nothing", []func(*NodePool){poolWithRequirement("team", "In")}, "In of team needs 1 values and has 0"},
		{"too few for minValues", []func(*NodePool){poolWithMinValues(3, "team", "In", "a", "b")}, "needs 3 values and has 2"},
		{"two bounds", []func(*NodePool){poolWithRequirement("x", "Gt", "1", "2")}, "needs one whole number"},
		{"a bound that is not an integer", []func(*NodePool){poolWithRequirement("x", "Lte", "1.5")}, "needs one whole number"},
		{"an unknown and a known capacity type", []func(*NodePool){poolWithRequirement(CapacityTypeLabelKey, "In", "spott", "spot")}, ""},
		{"only an unknown capacity type", []func(*NodePool){poolWithRequirement(CapacityTypeLabelKey, "In", "spott")}, "needs 1 values that exist, of on-demand, reserved, spot, and has 0"},
		{"too few known capacity types", []func(*NodePool){poolWithMinValues(2, CapacityTypeLabelKey, "In", "spott", "spot")}, "needs 2 values that exist"},
		{"a beta label that means a stable one", []func(*NodePool){poolWithRequirement("failure-domain.beta.kubernetes.io/zone", "In", "a")}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			pool := &NodePool{}
			for _, change := range c.changes {
				change(pool)
			}
			errs := pool.Validate()
			if c.want == "" {
				if len(errs) != 0 {
					t.Fatalf("the NodePool is rejected: %v", errs)
				}
				return
			}
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want) {
				t.Errorf("got %v, want %q", errs, c.want)
			}
		})
	}
}
