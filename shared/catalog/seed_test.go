package catalog_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// The requirements of a real cluster select three types. t4g.small also has 2 vCPUs, but only 2 GiB.
func TestExactlyThreeTypesMatch(t *testing.T) {
	wanted := map[string][]string{
		karpenter.LabelInstanceFamily:  {"t4g"},
		karpenter.LabelInstanceCPU:     {"2", "4"},
		karpenter.LabelInstanceMemory:  {"4096", "8192", "16384"},
		karpenter.CapacityTypeLabelKey: {"spot", "on-demand"},
		corev1.LabelTopologyZone:       {"ap-northeast-2a"},
		corev1.LabelArchStable:         {"arm64"},
	}
	var got []string
	for _, it := range embeddedCatalogues(t, "ap-northeast-2").Types {
		for _, o := range it.Offerings {
			if matches(catalog.Labels(it, o, "ap-northeast-2"), wanted) {
				got = append(got, it.Name+"/"+o.CapacityType)
			}
		}
	}
	const want = "t4g.large/on-demand t4g.large/spot t4g.medium/on-demand t4g.medium/spot t4g.xlarge/on-demand t4g.xlarge/spot"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func matches(labels map[string]string, wanted map[string][]string) bool {
	for key, values := range wanted {
		if !slices.Contains(values, labels[key]) {
			return false
		}
	}
	return true
}
