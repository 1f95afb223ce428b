package collect_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/shared/planning"
)

var withDevices = collect.Inputs{Settings: planning.Settings{PlanDRARequests: true}}

func deviceClass(name string) *resourcev1.DeviceClass {
	c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.nvidia.com"`}}}
	return c
}

func resourceSlice(name, node, device string) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node}}}}
	s.Spec = resourcev1.ResourceSliceSpec{
		Driver: "gpu.nvidia.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
		Devices: []resourcev1.Device{{
			Name: device, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": {StringValue: new("gpu")}},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("8Gi")}},
		}},
	}
	return s
}

func resourceClaim(name string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
	}}}
	return c
}

func allocate(c *resourcev1.ResourceClaim, node string) *resourcev1.ResourceClaim {
	c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Request: "gpu", Driver: "gpu.nvidia.com", Pool: node, Device: "gpu-0"}},
	}}
	c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "p", UID: "p"}}
	return c
}

// usesDevice makes a pod use a ResourceClaim that was generated for it.
func usesDevice(claim string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("one-gpu")}}
		p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &claim}}
	}
}

// Without devices in planning, a snapshot has none of their objects, and a pod only the number of its
// claims. A DaemonSet whose pods have claims adds nothing to new nodes.
func TestDevicesOff(t *testing.T) {
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "set", UID: "set"}}
	set.Spec.Template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("one-gpu")}}
	view := collectAll(pod("a", "", usesDevice("a-gpu")), resourceClaim("a-gpu"), deviceClass("gpu"), resourceSlice("s", "n", "gpu-0"), set)
	if spec := view.Pending[0].Spec; spec.ResourceClaims != 1 || spec.Claims != nil || view.Pending[0].Pods[0].Claims != nil {
		t.Errorf("the pod has claims %+v, %+v; want only their number", spec.Claims, view.Pending[0].Pods[0].Claims)
	}
	if diff := cmp.Diff(planning.DeviceState{}, view.Snapshot.Devices); diff != "" {
		t.Errorf("the snapshot has devices: %s", diff)
	}
	if len(view.Snapshot.DaemonSets) != 0 {
		t.Errorf("daemons = %+v, want none", view.Snapshot.DaemonSets)
	}
	if on := inputs(withDevices, set); len(on.Snapshot.DaemonSets) != 1 {
		t.Errorf("with devices daemons = %+v, want one", on.Snapshot.DaemonSets)
	}
}

// Pods with equal claims of one template are one class, and their references have the names. A pod
// with an allocated claim and no node keeps the name in its spec, because it must follow the
// allocation.
func TestDevicesOn(t *testing.T) {
	view := inputs(withDevices,
		pod("a", "", usesDevice("a-gpu")), resourceClaim("a-gpu"), pod("b", "", usesDevice("b-gpu")), resourceClaim("b-gpu"),
		pod("late", "", usesDevice("late-gpu")), allocate(resourceClaim("late-gpu"), "n"),
		node("n"), pod("runs", "n", usesDevice("runs-gpu"), owner("ReplicaSet")), allocate(resourceClaim("runs-gpu"), "n"),
		deviceClass("gpu"), resourceSlice("s", "n", "gpu-0"))
	got := map[string][]string{}
	for _, class := range append(view.Pending, view.Snapshot.Nodes[0].Pods...) {
		for _, one := range class.Pods {
			got[one.Name] = append([]string{class.Spec.Claims[0].Name, class.Spec.Claims[0].Requests[0].Exactly.DeviceClassName}, one.Claims...)
		}
	}
	want := map[string][]string{"a": {"", "gpu", "a-gpu"}, "b": {"", "gpu", "b-gpu"}, "late": {"late-gpu", "gpu", "late-gpu"}, "runs": {"", "gpu", "runs-gpu"}}
	if diff := cmp.Diff(want, got); diff != "" || len(view.Pending) != 2 {
		t.Errorf("%d pending classes; claims of the pods (-want +got):\n%s", len(view.Pending), diff)
	}
	if devices := view.Snapshot.Devices; len(devices.Classes) != 1 || len(devices.Slices) != 1 || len(devices.Claims) != 4 {
		t.Errorf("%d classes, %d slices, %d claims", len(devices.Classes), len(devices.Slices), len(devices.Claims))
	}
}

// A pod waits for a claim that does not exist, and the supply changes when it appears, when a class
// changes, and when a device appears that belongs to no node, so that the pod is planned again.
func TestMissingClaim(t *testing.T) {
	feed := newFakeFeed()
	feed.put(pod("a", "", usesDevice("a-gpu")))
	named := pod("b", "", func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("shared")}}
	})
	feed.put(named)
	state, what := collect.NewState(feed), withDevices
	what.Now = noon
	var problems []string
	for _, class := range state.View(what).Pending {
		problems = append(problems, class.Spec.Claims[0].Problem)
	}
	if want := []string{`resourceclaim "default/shared" not found`, `resourceclaim of the template "default/one-gpu" not found`}; !cmp.Equal(want, problems) {
		t.Errorf("problems %q, want %q", problems, want)
	}
	supply := state.View(what).SupplyKey()
	changes := func(name string, want bool, put func()) {
		t.Helper()
		put()
		next := state.View(what).SupplyKey()
		if (next != supply) != want {
			t.Errorf("%s: the supply changed: %t, want %t", name, next != supply, want)
		}
		supply = next
	}
	changes("the claim appears", true, func() { feed.put(resourceClaim("a-gpu")) })
	changes("the named claim appears", true, func() { feed.put(resourceClaim("shared")) })
	changes("the named claim is allocated", true, func() { feed.put(allocate(resourceClaim("shared"), "n")) })
	changes("another claim appears", false, func() { feed.put(resourceClaim("other")) })
	changes("a class appears", true, func() { feed.put(deviceClass("gpu")) })
	changes("a node publishes a device", false, func() { feed.put(resourceSlice("s", "n", "gpu-0")) })
	changes("a device of no node appears", true, func() {
		s := resourceSlice("network", "n", "disk-0")
		s.Spec.NodeName, s.Spec.AllNodes = nil, new(true)
		feed.put(s)
	})
	for _, class := range state.View(what).Pending {
		if problem := class.Spec.Claims[0].Problem; problem != "" {
			t.Errorf("problem %q after the claims have appeared", problem)
		}
	}
	if text := state.View(what).SupplyKey(); strings.Contains(text, "not found") {
		t.Errorf("supply %q", text)
	}
}
