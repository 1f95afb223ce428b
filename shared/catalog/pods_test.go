package catalog_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

func TestMaxPods(t *testing.T) {
	tests := []struct {
		name          string
		family        string
		kubelet       karpenter.ParsedKubelet
		reserved      int64
		pods, reserve int64 // reserve is MiB of the kubelet and eviction: 11 per pod, 255, 100
	}{
		{"by addresses", "AL2", karpenter.ParsedKubelet{}, 0, 29, 674},
		{"AL2023 alike", "AL2023", karpenter.ParsedKubelet{}, 0, 29, 674},
		{"custom images by addresses", "Custom", karpenter.ParsedKubelet{}, 0, 29, 674},
		{"an unknown family counts as custom", "Ubuntu", karpenter.ParsedKubelet{}, 0, 29, 674},
		{"Bottlerocket by addresses", "Bottlerocket", karpenter.ParsedKubelet{}, 0, 29, 674},
		{"Windows has the kubelet's limit", "Windows2019", karpenter.ParsedKubelet{}, 0, 110, 1565},
		{"one interface reserved", "AL2023", karpenter.ParsedKubelet{}, 1, 20, 674},
		{"Bottlerocket reserves memory by the remaining addresses", "Bottlerocket", karpenter.ParsedKubelet{}, 1, 20, 575},
		{"all interfaces reserved", "AL2023", karpenter.ParsedKubelet{}, 3, 0, 674},
		{"more than all reserved", "AL2023", karpenter.ParsedKubelet{}, 9, 0, 674},
		{"maxPods", "AL2023", karpenter.ParsedKubelet{MaxPods: new(intstr.FromInt32(58))}, 1, 58, 674},
		{"maxPods of zero", "AL2023", karpenter.ParsedKubelet{MaxPods: new(intstr.FromInt32(0))}, 0, 0, 674},
		{"podsPerCore lowers", "AL2023", karpenter.ParsedKubelet{PodsPerCore: new(int32(5))}, 0, 10, 674},
		{"podsPerCore never raises", "AL2023", karpenter.ParsedKubelet{PodsPerCore: new(int32(50))}, 0, 29, 674},
		{"podsPerCore 0 is unset", "AL2023", karpenter.ParsedKubelet{PodsPerCore: new(int32(0))}, 0, 29, 674},
		{"podsPerCore lowers maxPods", "AL2023",
			karpenter.ParsedKubelet{MaxPods: new(intstr.FromInt32(58)), PodsPerCore: new(int32(20))}, 0, 40, 674},
		{"podsPerCore on Windows", "Windows2025", karpenter.ParsedKubelet{PodsPerCore: new(int32(20))}, 0, 40, 795},
		{"Bottlerocket ignores podsPerCore", "Bottlerocket", karpenter.ParsedKubelet{PodsPerCore: new(int32(5))}, 0, 29, 674},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cfg := catalog.NodeConfig{AMIFamily: test.family, Kubelet: test.kubelet, ReservedENIs: test.reserved}
			if got := catalog.MaxPods(x86, cfg); got != test.pods {
				t.Errorf("%d pods, want %d", got, test.pods)
			}
			_, overhead, _ := catalog.NodeResources(x86, cfg)
			if memory := overhead["memory"]; memory.Value() != test.reserve<<20 {
				t.Errorf("got %s reserved, want %dMi", memory.String(), test.reserve)
			}
		})
	}
}
