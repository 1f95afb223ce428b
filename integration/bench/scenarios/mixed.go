package scenarios

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The requests and labels of mixed pods, as in the benchmark of Karpenter's own
// scheduler.
var (
	mixedCPU    = []string{"100m", "250m", "500m", "1", "1500m"}
	mixedMemory = []string{"100Mi", "256Mi", "512Mi", "1Gi", "2Gi", "4Gi"}
	mixedLabels = []string{"a", "b", "c", "d", "e", "f", "g"}
)

const (
	labelKey    = "my-label"
	affinityKey = "my-affinity"
)

// mixed adds pods in five equal parts: plain, spread over zones, spread over hosts,
// together in a zone, and each on its own host. The selectors of the spreads select other
// pods than their own, and pods of all constraints share labels, which makes the mix
// hard.
func mixed(d *draw, s *Scenario, count int) {
	parts := []struct {
		name      string
		constrain func(*corev1.Pod)
	}{
		{"generic", func(p *corev1.Pod) { p.Labels = d.label(labelKey) }},
		{"zspread", func(p *corev1.Pod) {
			p.Labels = d.label(labelKey)
			spread(p, corev1.LabelTopologyZone, selecting(labelKey, oneOf(d, mixedLabels...)))
		}},
		{"hspread", func(p *corev1.Pod) {
			p.Labels = d.label(labelKey)
			spread(p, corev1.LabelHostname, selecting(labelKey, oneOf(d, mixedLabels...)))
		}},
		{"zaff", func(p *corev1.Pod) {
			p.Labels = d.label(affinityKey)
			together(p, corev1.LabelTopologyZone, selecting(affinityKey, p.Labels[affinityKey]))
		}},
		{"hanti", func(p *corev1.Pod) {
			p.Labels = map[string]string{appKey: "nginx"}
			apart(p, corev1.LabelHostname, selecting(appKey, "nginx"))
		}},
	}
	for i, part := range parts {
		for n := range portion(count, i, len(parts)) {
			p := pod("default", fmt.Sprintf("%s-%d", part.name, n), d.mixedRequests())
			part.constrain(&p)
			s.Pods = append(s.Pods, p)
		}
	}
}

// portion returns the size of the i-th of several parts of count, which differ by at most
// one.
func portion(count, i, parts int) int { return (count*(i+1))/parts - (count*i)/parts }

func (d *draw) label(key string) map[string]string {
	return map[string]string{key: oneOf(d, mixedLabels...)}
}

func (d *draw) mixedRequests() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(oneOf(d, mixedCPU...)),
		corev1.ResourceMemory: resource.MustParse(oneOf(d, mixedMemory...)),
	}
}
