package podspec_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// anyPod generates pods that are often equal, with quantities in different formats.
func anyPod(t *rapid.T, i int) *corev1.Pod {
	pick := func(label string, words ...string) string { return rapid.SampledFrom(words).Draw(t, label) }
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("p-%d", i), UID: types.UID(fmt.Sprintf("u-%d", i)), Namespace: pick("namespace", "a", "b"),
		Labels: map[string]string{"app": pick("app", "x", "y"), "hash": pick("hash", "1", "2")},
	}}
	for range rapid.IntRange(1, 2).Draw(t, "containers") {
		p.Spec.Containers = append(p.Spec.Containers, container(pick("cpu", "500m", "0.5", "1", "1000m", "0"), nil))
	}
	if rapid.Bool().Draw(t, "init") {
		p.Spec.InitContainers = []corev1.Container{container(pick("init", "1", "2"), nil)}
	}
	if rapid.Bool().Draw(t, "selector") {
		p.Spec.NodeSelector = map[string]string{"zone": pick("zone", "a", "b"), "arch": "arm64"}
	}
	if rapid.Bool().Draw(t, "spread") {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: pick("over", "zone", "host"), LabelSelector: selecting("app")}}
	}
	return p
}

// reference groups pods by their specs as JSON, which is slow and simple.
func reference(t *rapid.T, pods []*corev1.Pod, keys podspec.SelectorKeys) map[string][]string {
	out := map[string][]string{}
	for _, pod := range pods {
		text, err := json.Marshal(podspec.Convert(pod, keys, nil))
		if err != nil {
			t.Fatal(err)
		}
		out[string(text)] = append(out[string(text)], string(pod.UID))
	}
	for _, list := range out {
		slices.Sort(list)
	}
	return out
}

// TestGroupMatchesReference checks that pods share a class exactly if their specs have the same JSON,
// and that the order of pods does not matter.
func TestGroupMatchesReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var pods []*corev1.Pod
		keys := podspec.SelectorKeys{}
		for i := range rapid.IntRange(0, 30).Draw(t, "pods") {
			pods = append(pods, anyPod(t, i))
			keys.Add(pods[i])
		}
		got := podspec.Group(pods, keys, nil)
		groups := map[string][]string{}
		for _, class := range got {
			text, err := json.Marshal(class.Spec)
			if err != nil {
				t.Fatal(err)
			}
			for _, ref := range class.Pods {
				groups[string(text)] = append(groups[string(text)], ref.UID)
			}
		}
		if diff := cmp.Diff(reference(t, pods, keys), groups); diff != "" {
			t.Error(diff)
		}
		seed := rapid.Uint64().Draw(t, "shuffle")
		rand.New(rand.NewPCG(seed, seed)).Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
		if diff := cmp.Diff(got, podspec.Group(pods, keys, nil)); diff != "" {
			t.Errorf("the same pods in another order differ:\n%s", diff)
		}
		if diff := cmp.Diff(got, oneByOne(pods, keys)); diff != "" {
			t.Errorf("the same pods converted one by one differ:\n%s", diff)
		}
	})
}

// oneByOne groups specs that were converted before.
func oneByOne(pods []*corev1.Pod, keys podspec.SelectorKeys) []planning.PodClass {
	var classes podspec.Classes
	for _, pod := range pods {
		classes.Add(podspec.Convert(pod, keys, nil), podspec.Ref(pod))
	}
	return classes.List()
}

// TestAbsurdRequests checks that an amount too large for an int64 stays too large for any node, and
// never becomes 0.
func TestAbsurdRequests(t *testing.T) {
	for _, tt := range []struct{ cpu, memory, wantCPU, wantMemory string }{
		{"1e30", "1e30", "9223372036854775807m", "9223372036854775807"},
		{"1e16", "9223372036854775807", "9223372036854775807m", "9223372036854775807"},
		{"-1e30", "-1Gi", "-9223372036854775808m", "-1Gi"},
		{"1n", "1m", "1m", "1"},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container(tt.cpu, nil)}}}
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse(tt.memory)
		got := podspec.Requests(pod)
		cpu, memory := got[corev1.ResourceCPU], got[corev1.ResourceMemory]
		if cpu.String() != tt.wantCPU || memory.String() != tt.wantMemory {
			t.Errorf("cpu %s and memory %s are read as %s and %s, want %s and %s", tt.cpu, tt.memory, cpu.String(), memory.String(), tt.wantCPU, tt.wantMemory)
		}
	}
}

// manyPods returns n pods that are all different or all equal.
func manyPods(n int, different bool) []*corev1.Pod {
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		cpu, memory := int64(250), int64(512)
		if different {
			cpu, memory = int64(100+i), int64(256+3*i)
		}
		pods[i] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("p-%d", i), Namespace: "default", UID: types.UID(fmt.Sprintf("%08x", uint32(i)*2654435761)),
				Labels: map[string]string{"app": "web"},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewMilliQuantity(cpu, resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(memory<<20, resource.BinarySI),
			}}}}},
		}
	}
	return pods
}

// TestGroupAllocations bounds the memory that grouping allocates, because every plan groups up to tens of
// thousands of pods.
func TestGroupAllocations(t *testing.T) {
	for _, tt := range []struct {
		name      string
		different bool
		perPod    float64
	}{{"different pods", true, 3}, {"equal pods", false, 0.05}} {
		pods := manyPods(1000, tt.different)
		got := testing.AllocsPerRun(5, func() { podspec.Group(pods, nil, nil) })
		if got > tt.perPod*float64(len(pods)) {
			t.Errorf("%s: %.0f allocations for %d pods, want at most %v per pod", tt.name, got, len(pods), tt.perPod)
		}
	}
}

func BenchmarkGroup(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		for _, different := range []bool{false, true} {
			pods := manyPods(n, different)
			b.Run(fmt.Sprintf("pods=%d/different=%v", n, different), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					podspec.Group(pods, nil, nil)
				}
			})
		}
	}
}
