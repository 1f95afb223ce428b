package upstream

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/aws/karpenter-provider-aws/pkg/cel"
	"github.com/aws/karpenter-provider-aws/pkg/fake"
	"github.com/aws/karpenter-provider-aws/pkg/operator/options"
	"github.com/aws/karpenter-provider-aws/pkg/providers/instancetype"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/catalog/expression"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// newEnvironment returns Karpenter's environment of expressions.
func newEnvironment(t *testing.T) *cel.CELEnvironment {
	t.Helper()
	env, err := cel.NewEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// variablesOf returns Karpenter's variables of a type.
func variablesOf(it catalog.InstanceType, maxPods int64) cel.InstanceTypeVars {
	return cel.InstanceTypeVars{
		VCPUs: it.VCPU, MemoryMiB: it.MemoryMiB, DefaultENIs: it.Network.ENIs, IPsPerENI: it.Network.IPv4PerENI, MaxPods: maxPods, InstanceType: it.Name,
	}
}

// TestExpressionsMatchKarpenter compares the results of expressions for every type of the embedded catalogue.
func TestExpressionsMatchKarpenter(t *testing.T) {
	env := newEnvironment(t)
	embedded, err := catalog.EmbeddedCatalogue("us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	reserved := map[string]string{
		"cpu": "max(60, vcpus * 30)", "memory": "11 * max_pods + 255", "ephemeral-storage": "min(vcpus, 100.5) / 2.0", "pid": `instance_type.startsWith("m") ? 1000 : max_pods * 7`,
	}
	for _, count := range []string{"", "min(max_pods, vcpus * 8)", "double(vcpus) * 3.7", "default_enis * (ips_per_eni - 1) * 16 + 2", "max(110, memory_mib / 1024)", "max_pods"} {
		for _, it := range embedded.Types {
			cfg := catalog.NodeConfig{AMIFamily: karpenter.AMIFamilyAL2023, Kubelet: karpenter.ParsedKubelet{KubeReserved: reserved}}
			pods := catalog.MaxPods(it, cfg)
			if count != "" {
				cfg.Kubelet.MaxPods = new(intstr.FromString(count))
				if pods, err = env.EvaluateExpression(count, variablesOf(it, pods)); err != nil {
					t.Fatal(err)
				}
			}
			want, err := env.ResolveResourceMap(t.Context(), reserved, func() (cel.InstanceTypeVars, error) { return variablesOf(it, pods), nil })
			if err != nil {
				t.Fatal(err)
			}
			got, err := expression.Resolve(it, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got.Kubelet.KubeReserved); diff != "" || catalog.MaxPods(it, got) != pods {
				t.Errorf("%s, maxPods %q: got %d pods, want %d; reserved (-want +got):\n%s", it.Name, count, catalog.MaxPods(it, got), pods, diff)
			}
		}
	}
	t.Logf("%d types", len(embedded.Types))
}

// TestExpressionNodesMatchKarpenter compares the resources of nodes with expressions for the recorded types, resolved
// by Karpenter's provider and by Joist.
func TestExpressionNodesMatchKarpenter(t *testing.T) {
	ctx := options.ToContext(t.Context(), &options.Options{VMMemoryOverheadPercent: 0.075, FeatureGates: options.FeatureGates{NodeClassCEL: true}})
	resolver := instancetype.NewDefaultResolver("us-east-1", newEnvironment(t))
	recorded, err := fake.NewEC2API().DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{})
	if err != nil {
		t.Fatal(err)
	}
	embedded, err := catalog.EmbeddedCatalogue("us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	k := karpenter.ParsedKubelet{
		MaxPods: new(intstr.FromString("min(max_pods, vcpus * 8)")), PodsPerCore: new(int32(5)),
		KubeReserved: map[string]string{"cpu": "vcpus * 30", "memory": "11 * max_pods + 255"}, SystemReserved: map[string]string{"cpu": "100m", "memory": "memory_mib / 100"},
	}
	for _, info := range recorded.InstanceTypes {
		for _, family := range families {
			class := &awsv1.EC2NodeClass{}
			class.Spec.AMIFamily = &family
			class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{ID: "ami-1"}}
			theirs, err := resolver.Resolve(ctx, info, nil, class, &awsv1.ParsedKubeletConfig{
				MaxPods: k.MaxPods, PodsPerCore: k.PodsPerCore, KubeReserved: k.KubeReserved, SystemReserved: k.SystemReserved,
			})
			if err != nil {
				t.Fatal(err)
			}
			it, _ := embedded.Find(string(info.InstanceType))
			cfg, err := expression.Resolve(it, catalog.NodeConfig{AMIFamily: family, Kubelet: k})
			if err != nil {
				t.Fatal(err)
			}
			capacity, overhead, _ := catalog.NodeResources(it, cfg)
			for _, diff := range []string{
				differ("overhead", theirs.Overhead.Total(), overhead),
				one(corev1.ResourcePods, theirs.Capacity, capacity),
			} {
				if diff != "" {
					t.Errorf("%s, %s: %s", it.Name, family, diff)
				}
			}
		}
	}
}

// TestExpressionErrorsMatchKarpenter compares the texts of errors.
func TestExpressionErrorsMatchKarpenter(t *testing.T) {
	env := newEnvironment(t)
	it := catalog.InstanceType{Name: "m5.large", VCPU: 2, MemoryMiB: 8192, Network: catalog.Network{ENIs: 3, IPv4PerENI: 10}}
	for _, text := range []string{
		"", " ", "vcpus +", "cores", "vcpus > 2", "instance_type", "dyn(1)", "uint(1)", "vcpus * 2.0", "max(1)", "min(1, 2, 3)", "max('a', 1)", "vcpus * 10m", "[1].size() == 1", "size(instance_type)",
		"1 / 0", "vcpus % 0", "1.0 / 0.0", "0.0 / 0.0", "9223372036854775807 + vcpus", "int('x')", "[1][vcpus]", "vcpus - 10", "0.0 - 1.5", "1e30 * 1.0", "vcpus",
	} {
		k := karpenter.ParsedKubelet{KubeReserved: map[string]string{"cpu": text}}
		want := ""
		if err := env.ValidateExpression(text); err != nil {
			want = fmt.Sprintf("validating expression, %v (field=spec.kubelet.kubeReserved[cpu])", err)
		}
		got := ""
		for _, err := range expression.Check(k) {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got\n%s\nwant\n%s", text, got, want)
		}
		if want != "" {
			continue
		}
		result, err := env.EvaluateExpression(text, variablesOf(it, 29))
		about := fmt.Sprintf("expression=%s, field=kubeReserved, instance-type=m5.large, key=cpu", text)
		switch {
		case err != nil:
			want = fmt.Sprintf("evaluating kubelet resource expression, %v (%s)", err, about)
		case result < 0:
			want = fmt.Sprintf("kubelet resource expression evaluated to a negative value (%s, result=%d)", about, result)
		}
		_, err = expression.Resolve(it, catalog.NodeConfig{AMIFamily: karpenter.AMIFamilyAL2023, Kubelet: k})
		if got := fmt.Sprint(err); got != want && (want != "" || err != nil) {
			t.Errorf("%q: got\n%s\nwant\n%s", text, got, want)
		}
	}
}
