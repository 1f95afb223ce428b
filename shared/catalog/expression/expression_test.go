package expression_test

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/catalog/expression"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// m5large has 29 pods by default.
var m5large = catalog.InstanceType{Name: "m5.large", VCPU: 2, MemoryMiB: 8192, Network: catalog.Network{ENIs: 3, IPv4PerENI: 10}}

// configure returns the configuration of an AL2023 node.
func configure(maxPods string, kubeReserved map[string]string) catalog.NodeConfig {
	cfg := catalog.NodeConfig{AMIFamily: karpenter.AMIFamilyAL2023, Kubelet: karpenter.ParsedKubelet{KubeReserved: kubeReserved}}
	if maxPods != "" {
		cfg.Kubelet.MaxPods = new(intstr.FromString(maxPods))
	}
	return cfg
}

func TestMaxPods(t *testing.T) {
	for _, tt := range []struct {
		expression string
		want       int32
		wantErr    string
	}{
		{"default_enis * (ips_per_eni - 1) + 2", 29, ""},
		{"min(default_enis * (ips_per_eni - 1) * 16 + 2, 110)", 110, ""},
		{"min(max_pods, 20)", 20, ""},
		{"max_pods", 29, ""},
		{"max(0.5 * double(vcpus), 3)", 3, ""},
		{"min(7.9, 3)", 3, ""},
		{"max(3, 7.9)", 7, ""},
		{"max(3.9, 7.9)", 7, ""},
		{`instance_type.startsWith("m5") ? 7 : 8`, 7, ""},
		{"memory_mib / 1024", 8, ""},
		{"vcpus * 10.0", 0, "found no matching overload for '_*_' applied to '(int, double)'"},
		{"double(vcpus) * 3.99", 7, ""},
		{"2147483647", math.MaxInt32, ""},
		{"2147483648", 0, "maxPods expression evaluated to a value outside the valid range [0, 2147483647] (expression=2147483648, instance-type=m5.large, result=2147483648)"},
		{"vcpus - 10", 0, "maxPods expression evaluated to a value outside the valid range [0, 2147483647] (expression=vcpus - 10, instance-type=m5.large, result=-8)"},
		{"1e300", 0, "result=-9223372036854775808)"},
		{"1 / (vcpus - 2)", 0, "evaluating maxPods expression, evaluating expression, division by zero (expression=1 / (vcpus - 2), instance-type=m5.large) (expression=1 / (vcpus - 2), instance-type=m5.large)"},
		{"vcpus % 0", 0, "modulus by zero"},
		{"1.0 / 0.0", 0, "expression returned a non-finite value (expression=1.0 / 0.0, instance-type=m5.large, value=+Inf)"},
		{"0.0 / 0.0", 0, "value=NaN"},
	} {
		t.Run(tt.expression, func(t *testing.T) {
			cfg, err := expression.Resolve(m5large, configure(tt.expression, nil))
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("got error %v, want %s", err, tt.wantErr)
				}
				return
			}
			if err != nil || cfg.Kubelet.MaxPods.IntVal != tt.want {
				t.Errorf("got %v, %v, want %d", cfg.Kubelet.MaxPods, err, tt.want)
			}
		})
	}
}

func TestReserved(t *testing.T) {
	for _, tt := range []struct{ resource, expression, want string }{
		{"cpu", "max(60, vcpus * 30)", "60m"},
		{"cpu", "70 + vcpus", "80m"},
		{"cpu", "vcpus * 5", "10m"},
		{"cpu", "0", "0"},
		{"cpu", "vcpus - 2", "0m"},
		{"memory", "memory_mib / 100", "96Mi"},
		{"memory", "11 * max_pods + 255", "576Mi"},
		{"memory", "double(memory_mib) * 0.0625", "512Mi"},
		{"memory", "9223372036854775807 - vcpus / 2", "9223372036854775806Mi"},
		{"ephemeral-storage", "vcpus + 1", "3Gi"},
		{"pid", "max_pods * 7", "203"},
		{"memory", "100Mi", "100Mi"},
	} {
		t.Run(tt.expression, func(t *testing.T) {
			given := map[string]string{tt.resource: tt.expression, "pid": "1000"}
			given[tt.resource] = tt.expression
			before := maps.Clone(given)
			cfg, err := expression.Resolve(m5large, configure("", given))
			if err != nil || cfg.Kubelet.KubeReserved[tt.resource] != tt.want {
				t.Errorf("got %v, %v, want %s", cfg.Kubelet.KubeReserved, err, tt.want)
			}
			if diff := cmp.Diff(before, given); diff != "" {
				t.Errorf("the class's settings changed (-before +after):\n%s", diff)
			}
		})
	}
}

// TestReservedUsesResolvedPods checks that max_pods is the result of maxPods, after podsPerCore.
func TestReservedUsesResolvedPods(t *testing.T) {
	for _, tt := range []struct {
		name, maxPods string
		perCore       *int32
		want          string
	}{
		{"the default", "", nil, "29"}, {"the result of maxPods", "max_pods - 2", nil, "27"},
		{"after podsPerCore", "max_pods - 2", new(int32(4)), "6"}, {"podsPerCore alone", "", new(int32(4)), "8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := configure(tt.maxPods, nil)
			cfg.Kubelet.PodsPerCore, cfg.Kubelet.SystemReserved = tt.perCore, map[string]string{"pid": "max_pods + 0"}
			cfg, err := expression.Resolve(m5large, cfg)
			if err != nil || cfg.Kubelet.SystemReserved["pid"] != tt.want {
				t.Errorf("got %v, %v, want %s", cfg.Kubelet.SystemReserved, err, tt.want)
			}
		})
	}
}

func TestReservedErrors(t *testing.T) {
	for _, tt := range []struct{ expression, want string }{
		{"vcpus - 10", "kubelet resource expression evaluated to a negative value (expression=vcpus - 10, field=kubeReserved, instance-type=m5.large, key=cpu, result=-8)"},
		{"1 / 0", "evaluating kubelet resource expression, evaluating expression, division by zero (expression=1 / 0, instance-type=m5.large) (expression=1 / 0, field=kubeReserved, instance-type=m5.large, key=cpu)"},
		{"[1,2,3,4,5,6,7,8,9,0].map(a, [1,2,3,4,5,6,7,8,9,0].map(b, [1,2,3,4,5,6,7,8,9,0].map(c, [1,2,3,4,5,6,7,8,9,0].map(d, [1,2,3,4,5,6,7,8,9,0].map(e, a*b*c*d*e))))).size()", "cost limit exceeded"},
	} {
		t.Run(tt.expression, func(t *testing.T) {
			_, err := expression.Resolve(m5large, configure("", map[string]string{"cpu": tt.expression, "memory": "1Gi"}))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %s", err, tt.want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  catalog.NodeConfig
		want string
	}{
		{"no expression", configure("", map[string]string{"cpu": "100m"}), ""},
		{"valid expressions", configure("vcpus * 10", map[string]string{"cpu": "vcpus * 10"}), ""},
		{"a type that is not a number", configure("vcpus > 2", nil), "validating expression, expression must return int or double (expression=vcpus > 2, output-type=bool) (field=spec.kubelet.maxPods)"},
		{"text", configure("instance_type", nil), "output-type=string"},
		{"an unknown variable", configure("", map[string]string{"memory": "memory * 2"}), "undeclared reference to 'memory'"},
		{"the field", configure("", map[string]string{"memory": "memory * 2"}), "(field=spec.kubelet.kubeReserved[memory])"},
		{"a syntax error", configure("vcpus +", nil), "validating expression, compiling expression, ERROR: <input>:1:8: Syntax error"},
		{"nothing", configure("", map[string]string{"memory": ""}), "Syntax error"},
		{"a unit in an expression", configure("", map[string]string{"cpu": "vcpus * 10m"}), "Syntax error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			errs := expression.Check(tt.cfg.Kubelet)
			if tt.want == "" && len(errs) > 0 || tt.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), tt.want)) {
				t.Errorf("got errors %v, want %s", errs, tt.want)
			}
		})
	}
}

// TestConcurrently checks that concurrent evaluations share programs without mixing their variables.
func TestConcurrently(t *testing.T) {
	var group sync.WaitGroup
	for i := range int64(64) {
		group.Go(func() {
			one := m5large
			one.VCPU = i
			cfg, err := expression.Resolve(one, configure(fmt.Sprintf("vcpus * 2 + %d", i%4), nil))
			if err != nil || int64(cfg.Kubelet.MaxPods.IntVal) != 2*i+i%4 {
				t.Errorf("vcpus %d: got %v, %v", i, cfg.Kubelet.MaxPods, err)
			}
		})
	}
	group.Wait()
}
