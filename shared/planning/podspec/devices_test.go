package podspec_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// TestClaims checks which claims of a pod are described, and with which name or problem.
func TestClaims(t *testing.T) {
	claim := func(name string, change func(*resourcev1.ResourceClaim)) *resourcev1.ResourceClaim {
		c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
		c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu"}}
		if change != nil {
			change(c)
		}
		return c
	}
	allocated := func(c *resourcev1.ResourceClaim) { c.Status.Allocation = &resourcev1.AllocationResult{} }
	known := map[string]*resourcev1.ResourceClaim{
		"free": claim("free", nil), "taken": claim("taken", allocated),
		"going": claim("going", func(c *resourcev1.ResourceClaim) { c.DeletionTimestamp = new(metav1.Now()) }),
	}
	lookup := podspec.NewClaims(func(_ cluster.Kind, key cluster.Key) (cluster.Object, bool) {
		found, ok := known[key.Name]
		return found, ok && key.Namespace == "a"
	})
	named := func(name string) corev1.PodResourceClaim {
		return corev1.PodResourceClaim{Name: "r", ResourceClaimName: &name}
	}
	generated := corev1.PodResourceClaim{Name: "r", ResourceClaimTemplateName: new("t")}
	status := func(name *string) []corev1.PodResourceClaimStatus {
		return []corev1.PodResourceClaimStatus{{Name: "r", ResourceClaimName: name}}
	}
	plain := planning.PodClaim{Requests: known["free"].Spec.Devices.Requests}
	withName := func(name string) planning.PodClaim {
		return planning.PodClaim{Name: name, Requests: plain.Requests}
	}
	for _, tt := range []struct {
		name, node string
		reference  corev1.PodResourceClaim
		statuses   []corev1.PodResourceClaimStatus
		want       []planning.PodClaim
		names      []string
	}{
		{"named", "", named("free"), nil, []planning.PodClaim{withName("free")}, []string{"free"}},
		{"named, missing", "", named("no"), nil, []planning.PodClaim{{Name: "no", Problem: `resourceclaim "a/no" not found`}}, []string{"no"}},
		{"being deleted", "", named("going"), nil, []planning.PodClaim{{Name: "going", Problem: `resourceclaim "a/going" is being deleted`}}, []string{"going"}},
		{"being deleted, of a running pod", "n", named("going"), nil, []planning.PodClaim{withName("going")}, []string{"going"}},
		{"generated", "", generated, status(new("free")), []planning.PodClaim{plain}, []string{"free"}},
		{"generated and allocated", "", generated, status(new("taken")), []planning.PodClaim{withName("taken")}, []string{"taken"}},
		{"generated and allocated, of a running pod", "n", generated, status(new("taken")), []planning.PodClaim{plain}, []string{"taken"}},
		{"generated, not in the cache", "", generated, status(new("no")), []planning.PodClaim{{Problem: `resourceclaim of the template "a/t" not found`}}, []string{"no"}},
		{"not generated yet", "", generated, nil, []planning.PodClaim{{Problem: `resourceclaim of the template "a/t" not found`}}, []string{""}},
		{"not needed", "", generated, status(nil), nil, nil},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"}}
		pod.Spec.NodeName, pod.Spec.ResourceClaims, pod.Status.ResourceClaimStatuses = tt.node, []corev1.PodResourceClaim{tt.reference}, tt.statuses
		for _, trimmed := range []bool{false, true} {
			if trimmed {
				podspec.Trim(pod)
			}
			got, names := lookup.Of(pod)
			if diff := cmp.Diff(tt.want, got) + cmp.Diff(tt.names, names); diff != "" {
				t.Errorf("%s, trimmed %t: %s", tt.name, trimmed, diff)
			}
		}
		if got, names := (*podspec.Claims)(nil).Of(pod); got != nil || names != nil {
			t.Errorf("%s: without devices: %v, %v", tt.name, got, names)
		}
	}
}

// TestLargeClaims checks that a pending pod with very large claims is not planned, and that a running
// one keeps only its requests.
func TestLargeClaims(t *testing.T) {
	big := &resourcev1.ResourceClaim{}
	big.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: strings.Repeat("x", podspec.MaxSpec)}}
	classes := podspec.Classes{Claims: podspec.NewClaims(func(cluster.Kind, cluster.Key) (cluster.Object, bool) { return big, true })}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"}}
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "r", ResourceClaimName: new("big")}}
	if classes.AddPending(pod, nil, nil) {
		t.Error("a pending pod with large claims is planned")
	}
	classes.AddBound(pod, nil, nil)
	if list := classes.List(); len(list) != 1 || list[0].Spec.Claims != nil || list[0].Spec.DoNotDisrupt != "true" {
		t.Errorf("a running pod with large claims: %+v", list)
	}
}
