package check

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

var types = []catalog.InstanceType{
	{Name: "c5.xlarge", VCPU: 4, MemoryMiB: 8192, Network: catalog.Network{ENIs: 4, IPv4PerENI: 15}},
	{Name: "m5.large", VCPU: 2, MemoryMiB: 8192, Network: catalog.Network{ENIs: 3, IPv4PerENI: 10}},
}

func TestKubeletProblems(t *testing.T) {
	for _, tt := range []struct {
		name, alias, settings string
		gate                  bool
		reason, message       string
	}{
		{"none", "al2023@latest", `{}`, false, "", ""},
		{"static values without the gate", "al2023@latest", `{maxPods: 20, kubeReserved: {cpu: 100m}, serializeImagePulls: false}`, false, "", ""},
		{"an unknown field and an inverted pair", "al2023@latest", `{bogus: 1, imageGCHighThresholdPercent: 1, imageGCLowThresholdPercent: 2}`, true, "InvalidKubeletConfiguration",
			`spec.kubelet: unknown field "bogus"; spec.kubelet: imageGCHighThresholdPercent (1) must be greater than imageGCLowThresholdPercent (2)`},
		{"maxPods without the gate", "al2023@latest", `{maxPods: vcpus * 10}`, false, "KubeletExpressionsDisabled",
			"spec.kubelet contains a CEL expression, but the NodeClassCEL feature gate is disabled"},
		{"systemReserved without the gate", "al2023@latest", `{systemReserved: {cpu: vcpus * 10}}`, false, "KubeletExpressionsDisabled", "NodeClassCEL"},
		{"valid expressions", "al2023@latest", `{maxPods: vcpus * 10, kubeReserved: {cpu: vcpus * 10}}`, true, "", ""},
		{"a syntax error", "al2023@latest", `{kubeReserved: {cpu: vcpus +}}`, true, "KubeletExpressionInvalid", "(field=spec.kubelet.kubeReserved[cpu])"},
		{"an unknown variable", "al2023@latest", `{maxPods: cores}`, true, "KubeletExpressionInvalid", "undeclared reference to 'cores'"},
		{"a dropped field", "bottlerocket@latest", `{registryPullQPS: 10}`, false, "UnsupportedKubeletConfiguration", "that would be silently dropped: registryPullQPS"},
		{"fails for a small type", "al2023@latest", `{maxPods: 10 / (vcpus - 2)}`, true, "KubeletExpressionEvaluationFailed", "division by zero"},
		{"negative for a small type", "al2023@latest", `{kubeReserved: {cpu: vcpus - 3}}`, true, "KubeletExpressionEvaluationFailed",
			"kubelet resource expression evaluated to a negative value (expression=vcpus - 3, field=kubeReserved, instance-type=m5.large, key=cpu, result=-1)"},
		{"pods above int32", "al2023@latest", `{maxPods: memory_mib * 1000000}`, true, "KubeletExpressionEvaluationFailed", "outside the valid range [0, 2147483647]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			class := karpenter.EC2NodeClass{}
			class.Spec.AMISelectorTerms = []karpenter.AMISelectorTerm{{Alias: tt.alias}}
			if err := yaml.Unmarshal([]byte(tt.settings), &class.Spec.Kubelet); err != nil {
				t.Fatal(err)
			}
			settings := planning.Settings{Gates: planning.Gates{NodeClassCEL: tt.gate}}
			problem := FindKubeletProblem(class, settings)
			if problem == nil && HasExpressions(class) {
				problem = EvaluateExpressions(class, settings, types)
			}
			switch {
			case tt.reason == "" && problem != nil:
				t.Errorf("got %+v", *problem)
			case tt.reason != "" && (problem == nil || problem.Reason != tt.reason || !strings.Contains(problem.Message, tt.message) || problem.Condition != "ValidationSucceeded"):
				t.Errorf("got %+v, want %s: %s", problem, tt.reason, tt.message)
			}
		})
	}
}
