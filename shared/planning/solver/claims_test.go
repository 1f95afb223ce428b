package solver_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

const gpuDriver = "gpu.example.com"

// claimCluster is a cluster in which new nodes have two GPUs, except those of the type t4g.medium, and
// t4g.2xlarge has four. All have a NIC of another driver.
type claimCluster struct {
	planning.Batch
	// devices, if set, are the devices of the instance types instead.
	devices map[string][]catalog.DeviceTemplate
	// freeIPs, if set, are the free addresses for new nodes and their pods, by zone.
	freeIPs map[string]int64
}

func newClaimCluster() *claimCluster {
	c := &claimCluster{Batch: planningtest.WithoutSpot(planningtest.NewBatch())}
	c.Snapshot.Settings.PlanDRARequests = true
	pool := &c.Snapshot.NodePools[0]
	pool.Spec.Limits, pool.Spec.Template.Spec.Taints, pool.Spec.Template.Spec.StartupTaints = nil, nil, nil
	class := &c.Snapshot.NodeClasses[0]
	class.Status.Subnets = nil
	for i, zone := range []string{"ap-northeast-2a", "ap-northeast-2b"} {
		class.Status.Subnets = append(class.Status.Subnets, karpenter.Subnet{ID: fmt.Sprint("subnet-", i), Zone: zone, ZoneID: fmt.Sprintf("apne2-az%d", i+1)})
	}
	pool.Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
		{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"t4g.medium", "t4g.xlarge", "t4g.2xlarge"}},
	}
	c.Snapshot.Devices.Classes = []resourcev1.DeviceClass{newClass("gpu", `device.driver == "gpu.example.com"`), newClass("nic", `device.driver == "nic.example.com"`)}
	return c
}

func newClass(name, expression string) resourcev1.DeviceClass {
	return resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}},
	}}
}

// types returns the instance types with their devices.
func (c *claimCluster) types() instancetypes.InstanceTypes {
	stock := instancetypes.New(c.Snapshot, planningtest.NewCatalogue())
	if c.freeIPs != nil {
		stock.FreeIPs = map[string]map[string]int64{c.Snapshot.NodeClasses[0].Name: c.freeIPs}
	}
	for _, list := range stock.ByNodeClass {
		for i := range list {
			t := &list[i]
			if c.devices != nil {
				t.DeviceTemplates = c.devices[t.Name]
				continue
			}
			count := map[string]int{"t4g.xlarge": 2, "t4g.2xlarge": 4}[t.Name]
			gpus := catalog.DeviceTemplate{Driver: gpuDriver, Pool: "gpus-" + t.Name}
			for n := range count {
				d := resourcev1.Device{Name: fmt.Sprint("gpu-", n), AllowMultipleAllocations: new(false)}
				d.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"numa": {IntValue: new(int64(n / 2))}, "size": {StringValue: new("full")}}
				gpus.Devices = append(gpus.Devices, d)
			}
			if count > 0 {
				shared := resourcev1.Device{Name: "shared", AllowMultipleAllocations: new(true), Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}}}
				shared.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"size": {StringValue: new("shared")}}
				gpus.Devices = append(gpus.Devices, shared)
			}
			t.DeviceTemplates = []catalog.DeviceTemplate{gpus, {Driver: "nic.example.com", Pool: "nics-" + t.Name, Devices: []resourcev1.Device{{Name: "nic-0"}}}}
		}
	}
	return stock
}

// addPods adds pods, each with a generated claim for the requests.
func (c *claimCluster) addPods(name string, count int, requests ...resourcev1.DeviceRequest) *planning.PodClass {
	for i := range requests[min(1, len(requests)):] {
		requests[1+i].Name = fmt.Sprint("request-", 1+i)
	}
	class := planningtest.NewPods(name, count, "100m", "100Mi", func(s *planning.PodSpec) {
		s.ResourceClaims, s.Claims = 1, []planning.PodClaim{{Requests: requests}}
	})
	for i := range class.Pods {
		class.Pods[i].Claims = []string{class.Pods[i].Name + "-claim"}
	}
	c.Pending = append(c.Pending, class)
	return &c.Pending[len(c.Pending)-1]
}

// addSharedClaim makes the pods of a class share one claim.
func (c *claimCluster) addSharedClaim(class *planning.PodClass, claim *resourcev1.ResourceClaim) {
	c.Snapshot.Devices.Claims = append(c.Snapshot.Devices.Claims, *claim)
	class.Spec.Claims[0].Name = claim.Name
	for i := range class.Pods {
		class.Pods[i].Claims = []string{claim.Name}
	}
}

func exactly(count int64, class string, expressions ...string) resourcev1.DeviceRequest {
	e := &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}
	for _, text := range append([]string{`!device.allowMultipleAllocations`}, expressions...) {
		e.Selectors = append(e.Selectors, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: text}})
	}
	return resourcev1.DeviceRequest{Name: "request", Exactly: e}
}

func sharing(memory string) resourcev1.DeviceRequest {
	return resourcev1.DeviceRequest{Name: "request", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.allowMultipleAllocations`}}},
		Capacity:  &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)}},
	}}
}

// addNode adds an initialized node of type t4g.xlarge with published GPUs.
func (c *claimCluster) addNode(name, zone string, gpus int) *planning.Node {
	labels := map[string]string{
		corev1.LabelHostname: name, corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: planningtest.Region, corev1.LabelInstanceTypeStable: "t4g.xlarge",
		karpenter.CapacityTypeLabelKey: karpenter.CapacityTypeOnDemand, karpenter.NodePoolLabelKey: c.Snapshot.NodePools[0].Name,
	}
	for _, t := range c.types().ByNodeClass["default"] {
		if t.Name == "t4g.xlarge" {
			maps.Copy(labels, t.Labels)
			c.Snapshot.Nodes = append(c.Snapshot.Nodes, planning.Node{
				Name: name, Claim: "claim-" + name, ClaimUID: "uid-" + name, NodePool: c.Snapshot.NodePools[0].Name, Labels: labels, Allocatable: t.Allocatable, Capacity: t.Capacity,
				Launched: true, Registered: true, Initialized: true, Ready: true,
			})
		}
	}
	c.Snapshot.Devices.Slices = append(c.Snapshot.Devices.Slices, newNodeSlice(name, gpus))
	return &c.Snapshot.Nodes[len(c.Snapshot.Nodes)-1]
}

func newNodeSlice(node string, gpus int) resourcev1.ResourceSlice {
	s := resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node, OwnerReferences: []metav1.OwnerReference{{Kind: "Node", Name: node}}}}
	s.Spec = resourcev1.ResourceSliceSpec{Driver: gpuDriver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}}
	for n := range gpus {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: fmt.Sprint(node, "-", n)})
	}
	return s
}

// addRemoteDevices adds devices that every node of a zone can use.
func (c *claimCluster) addRemoteDevices(zone string, names ...string) {
	s := resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: zone}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "remote.example.com", Pool: resourcev1.ResourcePool{Name: zone, Generation: 1, ResourceSliceCount: 1}, NodeSelector: selectZone(zone),
	}}
	for _, name := range names {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: name})
	}
	c.Snapshot.Devices.Slices = append(c.Snapshot.Devices.Slices, s)
	if len(c.Snapshot.Devices.Classes) == 2 {
		c.Snapshot.Devices.Classes = append(c.Snapshot.Devices.Classes, newClass("remote", `device.driver == "remote.example.com"`))
	}
}

func selectZone(zone string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}},
	}}}}
}

// newClaim returns a claim that holds devices, as driver/pool/device, for pods.
func newClaim(name string, requests []resourcev1.DeviceRequest, holders []string, devices ...string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	c.Spec.Devices.Requests = requests
	for _, one := range devices {
		if c.Status.Allocation == nil {
			c.Status.Allocation = &resourcev1.AllocationResult{}
		}
		parts := strings.Split(one, "/")
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{Driver: parts[0], Pool: parts[1], Device: parts[2]})
	}
	for _, uid := range holders {
		c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: uid, UID: apitypes.UID(uid)})
	}
	return c
}

// solve plans the batch, checks the plan, and describes it: "node: devices" for existing nodes,
// "pods on types with devices of the first type" for new nodes, and the reasons of unplaced pods.
func (c *claimCluster) solve(t *testing.T) string {
	t.Helper()
	result := solver.SolveWithTypes(c.Batch, c.types())
	if err := planningtest.CheckResult(c.Batch, planningtest.NewCatalogue(), result); err != nil {
		t.Errorf("invalid plan:\n%v", err)
	}
	if err := planningtest.CheckDevices(c.Batch, c.types(), result); err != nil {
		t.Errorf("invalid allocations:\n%v", err)
	}
	return describeDevices(&result)
}

func describeDevices(result *planning.Result) string {
	var out []string
	for _, n := range result.Nominations {
		out = append(out, fmt.Sprintf("%s on %s", n.Pod.Name, n.Node))
	}
	slices.Sort(out)
	for i := range result.Nodes {
		n := &result.Nodes[i]
		types, _ := n.Requirements[corev1.LabelInstanceTypeStable].ListValues()
		var pods, devices []string
		for _, p := range n.Pods {
			pods = append(pods, p.Pod.Name)
		}
		slices.Sort(pods)
		for _, a := range result.Allocations {
			for _, d := range a.Devices {
				if a.Node == "" && a.PlannedNode == i && d.InstanceType == types[0] {
					devices = append(devices, d.Device)
				}
			}
		}
		text := fmt.Sprintf("%s on %s with %s", strings.Join(pods, " "), strings.Join(types, "|"), strings.Join(devices, " "))
		if zones, _ := n.Requirements[corev1.LabelTopologyZone].ListValues(); len(zones) == 1 {
			text += " in " + zones[0]
		}
		out = append(out, text)
	}
	for _, u := range result.Unplaced {
		out = append(out, fmt.Sprintf("%d unplaced: %s: %s", len(u.Pods), u.Rejections[0].Rule, u.Rejections[0].Detail))
	}
	return strings.Join(out, "; ")
}

// TestResourceClaims holds what Karpenter's pkg/controllers/provisioning/dra_test.go specifies.
func TestResourceClaims(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(*claimCluster)
		want string
	}{
		{"a claim restricts the instance types", func(c *claimCluster) { c.addPods("p", 1, exactly(1, "gpu")) }, "p-0 on t4g.2xlarge|t4g.xlarge with gpu-0"},
		{"a pod without claims is planned as before", func(c *claimCluster) {
			c.Pending = []planning.PodClass{planningtest.NewPods("p", 1, "100m", "100Mi")}
		}, "p-0 on t4g.2xlarge|t4g.medium|t4g.xlarge with "},
		{"two pods share a node with different devices", func(c *claimCluster) { c.addPods("p", 2, exactly(1, "gpu")) }, "p-0 p-1 on t4g.2xlarge|t4g.xlarge with gpu-0 gpu-1"},
		{"more pods than devices of one node", func(c *claimCluster) {
			c.addPods("p", 3, exactly(2, "gpu", `device.attributes["gpu.example.com"].numa == 0`))
		},
			"p-0 on t4g.2xlarge|t4g.xlarge with gpu-0 gpu-1; p-1 on t4g.2xlarge|t4g.xlarge with gpu-0 gpu-1; p-2 on t4g.2xlarge|t4g.xlarge with gpu-0 gpu-1"},
		{"four devices are on the large type only", func(c *claimCluster) { c.addPods("p", 1, exactly(4, "gpu")) }, "p-0 on t4g.2xlarge with gpu-0 gpu-1 gpu-2 gpu-3"},
		{"pods without claims fill the node", func(c *claimCluster) {
			c.addPods("p", 1, exactly(1, "gpu"))
			c.Pending = append(c.Pending, planningtest.NewPods("q", 2, "100m", "100Mi"))
		}, "p-0 q-0 q-1 on t4g.2xlarge|t4g.xlarge with gpu-0"},
		{"two drivers", func(c *claimCluster) { c.addPods("p", 1, exactly(1, "gpu"), exactly(1, "nic")) }, "p-0 on t4g.2xlarge|t4g.xlarge with gpu-0 nic-0"},
		{"no instance type has the devices", func(c *claimCluster) { c.addPods("p", 1, exactly(5, "gpu")) },
			"1 unplaced: devices: the node has too few free devices for ResourceClaim p-0-claim, or they violate its constraints"},
		{"no device matches", func(c *claimCluster) { c.addPods("p", 1, exactly(1, "gpu", "false")) }, "1 unplaced: devices: ResourceClaim p-0-claim: no device of the node matches request request"},
		{"a class that does not exist", func(c *claimCluster) { c.addPods("p", 1, exactly(1, "none")) }, `1 unplaced: pod: ResourceClaim p-0-claim, request request: DeviceClass "none" not found`},
		{"a class that does not exist, for two pods", func(c *claimCluster) { c.addPods("p", 2, exactly(1, "none")) },
			`2 unplaced: pod: ResourceClaim p-1-claim, request request: DeviceClass "none" not found`},
		{"a claim that does not exist", func(c *claimCluster) { c.addPods("p", 1).Spec.Claims[0].Problem = "ResourceClaim default/x not found" }, "1 unplaced: pod: ResourceClaim default/x not found"},
		{"a pod whose claim was not generated needs none", func(c *claimCluster) { c.addPods("p", 1).Spec.Claims = nil }, "p-0 on t4g.2xlarge|t4g.medium|t4g.xlarge with "},
		{"capacity of a shared device", func(c *claimCluster) { c.addPods("p", 2, sharing("40Gi")) }, "p-0 p-1 on t4g.2xlarge|t4g.xlarge with shared shared"},
		{"more capacity than a device has", func(c *claimCluster) { c.addPods("p", 3, sharing("40Gi")) },
			"p-0 p-1 on t4g.2xlarge|t4g.xlarge with shared shared; p-2 on t4g.2xlarge|t4g.xlarge with shared"},
		{"a request above the capacity", func(c *claimCluster) { c.addPods("p", 1, sharing("81Gi")) }, "1 unplaced: devices: the node has too few free devices for ResourceClaim p-0-claim, or they violate its constraints"},
		{"a device of an existing node", func(c *claimCluster) {
			c.addNode("n1", "ap-northeast-2a", 1)
			c.addPods("p", 2, exactly(1, "gpu"))
		}, "p-0 on n1; p-1 on t4g.2xlarge|t4g.xlarge with gpu-0"},
		{"devices that a live pod holds", func(c *claimCluster) {
			c.addNode("n1", "ap-northeast-2a", 1)
			c.Snapshot.Devices.Claims = []resourcev1.ResourceClaim{*newClaim("old", nil, []string{"live"}, "gpu.example.com/n1/n1-0")}
			c.addPods("p", 1, exactly(1, "gpu"))
		}, "p-0 on t4g.2xlarge|t4g.xlarge with gpu-0"},
		{"slices of an uninitialized node do not count, its type's devices do", func(c *claimCluster) {
			c.addNode("n1", "ap-northeast-2a", 1).Initialized = false
			c.addPods("p", 3, exactly(1, "gpu"))
		}, "p-0 on n1; p-1 on n1; p-2 on t4g.2xlarge|t4g.xlarge with gpu-0"},
		{"slices of an unknown node do not count", func(c *claimCluster) {
			s := newNodeSlice("gone", 1)
			s.Spec.NodeName, s.Spec.AllNodes = nil, new(true)
			c.Snapshot.Devices.Slices = append(c.Snapshot.Devices.Slices, s)
			c.addPods("p", 1, exactly(5, "gpu"))
		}, "1 unplaced: devices: the node has too few free devices for ResourceClaim p-0-claim, or they violate its constraints"},
		{"a device in a zone narrows the node", func(c *claimCluster) {
			c.addRemoteDevices("ap-northeast-2b", "r")
			c.addPods("p", 2, exactly(1, "remote"))
		}, "p-0 on t4g.2xlarge|t4g.medium|t4g.xlarge with r in ap-northeast-2b; 1 unplaced: devices: the node has too few free devices for ResourceClaim p-1-claim, or they violate its constraints"},
		{"a planned node gets devices of the zone that has addresses", func(c *claimCluster) {
			c.Snapshot.PodsUseNodeSubnets = true
			c.freeIPs = map[string]int64{"ap-northeast-2a": 1, "ap-northeast-2b": 9}
			c.addRemoteDevices("ap-northeast-2a", "r")
			c.addRemoteDevices("ap-northeast-2b", "s")
			c.addPods("p", 1, exactly(1, "gpu")).Spec.Requests = planningtest.NewRequests("200m", "100Mi")
			c.addPods("q", 1, exactly(1, "remote"))
		}, "p-0 q-0 on t4g.2xlarge|t4g.xlarge with gpu-0 s in ap-northeast-2b"},
		{"pods that share a claim on devices of a node share the node", func(c *claimCluster) {
			c.addSharedClaim(c.addPods("p", 2, exactly(1, "gpu")), newClaim("both", []resourcev1.DeviceRequest{exactly(1, "gpu")}, nil))
		}, "p-0 p-1 on t4g.2xlarge|t4g.xlarge with gpu-0"},
		{"all devices of a node", func(c *claimCluster) {
			r := exactly(0, "gpu")
			r.Exactly.AllocationMode = resourcev1.DeviceAllocationModeAll
			c.addPods("p", 2, r)
		}, "p-0 on t4g.2xlarge|t4g.xlarge with gpu-0 gpu-1 gpu-2 gpu-3; p-1 on t4g.2xlarge|t4g.xlarge with gpu-0 gpu-1 gpu-2 gpu-3"},
		{"devices with the same attribute", func(c *claimCluster) {
			c.addPods("p", 1, exactly(1, "gpu", `device.attributes["gpu.example.com"].numa == 1`), exactly(1, "gpu")).Spec.Claims[0].Constraints =
				[]resourcev1.DeviceConstraint{{MatchAttribute: new(resourcev1.FullyQualifiedName("gpu.example.com/numa"))}}
		}, "p-0 on t4g.2xlarge with gpu-2 gpu-3"},
		{"the first alternative that a type has", func(c *claimCluster) {
			four, one := exactly(4, "gpu").Exactly, exactly(1, "gpu").Exactly
			c.addPods("p", 1, resourcev1.DeviceRequest{Name: "request", FirstAvailable: []resourcev1.DeviceSubRequest{
				{Name: "four", DeviceClassName: "gpu", Selectors: four.Selectors, AllocationMode: four.AllocationMode, Count: 4},
				{Name: "one", DeviceClassName: "gpu", Selectors: one.Selectors, AllocationMode: one.AllocationMode, Count: 1},
			}})
		}, "p-0 on t4g.2xlarge|t4g.xlarge with gpu-0 gpu-1 gpu-2 gpu-3"},
		{"a claim on published devices is shared by nodes", func(c *claimCluster) {
			c.addRemoteDevices("ap-northeast-2b", "r")
			class := c.addPods("p", 2, exactly(1, "remote"))
			class.Spec.Requests = planningtest.NewRequests("3", "1Gi")
			c.Snapshot.NodePools[0].Spec.Template.Spec.Requirements[0].Values = []string{"t4g.xlarge"}
			c.addSharedClaim(class, newClaim("both", []resourcev1.DeviceRequest{exactly(1, "remote")}, nil))
		}, "p-0 on t4g.xlarge with r in ap-northeast-2b; p-1 on t4g.xlarge with  in ap-northeast-2b"},
		{"claims that are allocated in different zones", func(c *claimCluster) {
			class := c.addPods("p", 1, exactly(1, "remote"))
			for _, zone := range []string{"ap-northeast-2a", "ap-northeast-2b"} {
				claim := newClaim(zone, []resourcev1.DeviceRequest{exactly(1, "remote")}, []string{"live"}, "remote.example.com/"+zone+"/r")
				claim.Status.Allocation.NodeSelector = selectZone(zone)
				c.Snapshot.Devices.Claims = append(c.Snapshot.Devices.Claims, *claim)
			}
			class.Spec.Claims = []planning.PodClaim{{Name: "ap-northeast-2a"}, {Name: "ap-northeast-2b"}}
			class.Pods[0].Claims = []string{"ap-northeast-2a", "ap-northeast-2b"}
		}, "1 unplaced: devices: ResourceClaim ap-northeast-2b is allocated where the node cannot be"},
		{"pods with claims are spread over zones", func(c *claimCluster) {
			c.addRemoteDevices("ap-northeast-2a", "r", "s")
			c.addRemoteDevices("ap-northeast-2b", "t", "u")
			spec := &c.addPods("p", 2, exactly(1, "remote")).Spec
			requireLabels("app", "p")(spec)
			spreads(corev1.LabelTopologyZone, 1)(spec)
		}, "p-0 on t4g.2xlarge|t4g.medium|t4g.xlarge with r in ap-northeast-2a; p-1 on t4g.2xlarge|t4g.medium|t4g.xlarge with t in ap-northeast-2b"},
		{"a pod without claims keeps away from the zone of a pod with a claim", func(c *claimCluster) {
			requireLabels("app", "p")(&c.addPods("p", 1, exactly(1, "gpu")).Spec)
			c.Pending = append(c.Pending, planningtest.NewPods("q", 1, "100m", "100Mi", apartOver(corev1.LabelTopologyZone, "p")))
		}, "p-0 on t4g.2xlarge|t4g.xlarge with gpu-0 in ap-northeast-2a; q-0 on t4g.2xlarge|t4g.medium|t4g.xlarge with  in ap-northeast-2b"},
		{"two devices of one zone", func(c *claimCluster) {
			c.addRemoteDevices("ap-northeast-2b", "r", "s")
			c.addPods("p", 1, exactly(2, "remote"))
		}, "p-0 on t4g.2xlarge|t4g.medium|t4g.xlarge with r s in ap-northeast-2b"},
		{"types with the devices are too small for the pod", func(c *claimCluster) {
			c.addPods("p", 1, exactly(1, "gpu")).Spec.Requests = planningtest.NewRequests("7", "1Gi")
			c.Snapshot.NodePools[0].Spec.Template.Spec.Requirements[0].Values = []string{"t4g.medium", "t4g.xlarge"}
		}, "1 unplaced: resources: cpu: the pod needs 7, and the closest type, t4g.xlarge, has 3920m left after the daemons"},
		{"partitions of one device", func(c *claimCluster) {
			slots := []resourcev1.DeviceCounterConsumption{{CounterSet: "s", Counters: map[string]resourcev1.Counter{"slots": {Value: resource.MustParse("2")}}}}
			c.addRemoteDevices("ap-northeast-2b", "r", "s", "t")
			parts := &c.Snapshot.Devices.Slices[0].Spec
			for i := range parts.Devices {
				parts.Devices[i].ConsumesCounters = slots
			}
			counters := c.Snapshot.Devices.Slices[0]
			counters.Name, counters.Spec.Devices = "counters", nil
			counters.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "s", Counters: map[string]resourcev1.Counter{"slots": {Value: resource.MustParse("5")}}}}
			c.Snapshot.Devices.Slices = append(c.Snapshot.Devices.Slices, counters)
			for i := range c.Snapshot.Devices.Slices {
				c.Snapshot.Devices.Slices[i].Spec.Pool.ResourceSliceCount = 2
			}
			c.addPods("p", 3, exactly(1, "remote"))
		}, "p-0 p-1 on t4g.2xlarge|t4g.medium|t4g.xlarge with r s in ap-northeast-2b; 1 unplaced: devices: the node has too few free devices for ResourceClaim p-2-claim, or they violate its constraints"},
		{"a pod whose node no longer suits it goes elsewhere", func(c *claimCluster) {
			n := c.addNode("n1", "ap-northeast-2a", 1)
			n.Taints, n.ExpectedPods = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}, []string{"p-0000"}
			c.addPods("p", 1, exactly(1, "gpu"))
		}, "p-0 on t4g.2xlarge|t4g.xlarge with gpu-0"},
		{"the second planned node has a free device", func(c *claimCluster) {
			c.addPods("a", 1, exactly(4, "gpu")).Spec.Requests = planningtest.NewRequests("3", "1Gi")
			c.addPods("b", 1, exactly(1, "gpu")).Spec.Requests = planningtest.NewRequests("1500m", "1Gi")
			c.addPods("c", 1, exactly(1, "gpu"))
		}, "a-0 on t4g.2xlarge with gpu-0 gpu-1 gpu-2 gpu-3; b-0 c-0 on t4g.2xlarge|t4g.xlarge with gpu-0 gpu-1"},
		{"a device that a planned node no longer needs", func(c *claimCluster) {
			c.addNode("n1", "ap-northeast-2a", 0).Used = planningtest.NewRequests("3", "1Gi")
			c.addRemoteDevices("ap-northeast-2a", "r")
			four, one := exactly(4, "gpu").Exactly, exactly(1, "remote").Exactly
			c.addPods("q", 1, resourcev1.DeviceRequest{Name: "request", FirstAvailable: []resourcev1.DeviceSubRequest{
				{Name: "four", DeviceClassName: "gpu", Selectors: four.Selectors, AllocationMode: four.AllocationMode, Count: 4},
				{Name: "one", DeviceClassName: "remote", Selectors: one.Selectors, AllocationMode: one.AllocationMode, Count: 1},
			}}).Spec.Requests = planningtest.NewRequests("1500m", "100Mi")
			p := &c.addPods("p", 1, exactly(1, "remote")).Spec
			p.Requests, p.NodeSelector = planningtest.NewRequests("600m", "100Mi"), map[string]string{corev1.LabelHostname: "n1"}
			c.addPods("s", 1, exactly(1, "nic")).Spec.NodeSelector = map[string]string{corev1.LabelInstanceTypeStable: "t4g.2xlarge"}
		}, "p-0 on n1; q-0 s-0 on t4g.2xlarge with gpu-0 gpu-1 gpu-2 gpu-3 nic-0 in ap-northeast-2a"},
		{"a claim whose pods leave is allocated again", func(c *claimCluster) {
			c.addRemoteDevices("ap-northeast-2b", "r")
			class := c.addPods("p", 1, exactly(1, "remote"))
			class.Pods[0].Node = "n9"
			c.addSharedClaim(class, newClaim("old", []resourcev1.DeviceRequest{exactly(1, "remote")}, []string{"p-0000"}, "remote.example.com/ap-northeast-2b/r"))
		}, "p-0 on t4g.2xlarge|t4g.medium|t4g.xlarge with r in ap-northeast-2b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newClaimCluster()
			tt.edit(c)
			if got := c.solve(t); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestClaimsAreRefused checks that pods with claims are rejected with a reason unless they are to be
// planned.
func TestClaimsAreRefused(t *testing.T) {
	batch := planningtest.NewBatch(planningtest.NewPods("gpu", 2, "1", "1Gi", func(s *planning.PodSpec) { s.ResourceClaims = 1 }))
	rules, detail := labelRule(t, batch)
	if len(rules) == 0 || !strings.Contains(detail, "IGNORE_DRA_REQUESTS") || !strings.Contains(detail, "Dynamic Resource Allocation requirements") {
		t.Errorf("rejected by %v: %s", rules, detail)
	}
}

// TestDeviceDrivers checks the drivers of planned nodes.
func TestDeviceDrivers(t *testing.T) {
	c := newClaimCluster()
	c.addPods("p", 1, exactly(1, "gpu"), exactly(1, "nic"))
	result := solver.SolveWithTypes(c.Batch, c.types())
	if got, want := result.Nodes[0].Pods[0].Devices, []string{"gpu.example.com/gpus-t4g.xlarge/gpu-0", "nic.example.com/nics-t4g.xlarge/nic-0"}; !slices.Equal(got, want) {
		t.Errorf("the devices are %v, want %v", got, want)
	}
	if got, want := result.Nodes[0].DeviceDrivers, []string{gpuDriver, "nic.example.com"}; !slices.Equal(got, want) {
		t.Errorf("the drivers are %v, want %v", got, want)
	}
}

// TestDevicesNextToAllocatedClaims plans a pod with a claim that is allocated already, and another one. Only the second is part of the plan.
func TestDevicesNextToAllocatedClaims(t *testing.T) {
	c := newClaimCluster()
	c.addRemoteDevices("ap-northeast-2b", "r")
	class := c.addPods("p", 1, exactly(1, "gpu"))
	class.Spec.Claims = append([]planning.PodClaim{{Name: "old"}}, class.Spec.Claims...)
	class.Pods[0].Claims = append([]string{"old"}, class.Pods[0].Claims...)
	claim := newClaim("old", []resourcev1.DeviceRequest{exactly(1, "remote")}, []string{"live"}, "remote.example.com/ap-northeast-2b/r")
	claim.Status.Allocation.NodeSelector = selectZone("ap-northeast-2b")
	c.Snapshot.Devices.Claims = append(c.Snapshot.Devices.Claims, *claim)
	result := solver.SolveWithTypes(c.Batch, c.types())
	if len(result.Nodes) != 1 || !slices.Equal(result.Nodes[0].Pods[0].Devices, []string{"gpu.example.com/gpus-t4g.xlarge/gpu-0"}) {
		t.Errorf("got %s", describeDevices(&result))
	}
}

// TestDevicesOfPlannedNodeClaims checks that the pods of a launched NodeClaim get its devices again.
func TestDevicesOfPlannedNodeClaims(t *testing.T) {
	c := newClaimCluster()
	node := c.addNode("n1", "ap-northeast-2a", 0)
	node.Initialized, node.Registered, node.ExpectedPods = false, false, []string{"p-0001"}
	c.addPods("p", 3, exactly(2, "gpu"))
	if got, want := c.solve(t), "p-1 on ; p-0 p-2 on t4g.2xlarge with gpu-0 gpu-1 gpu-2 gpu-3"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestOrderOfDevices checks that the order of the snapshot's slices, claims and pods does not change a
// plan.
func TestOrderOfDevices(t *testing.T) {
	build := func(reverse bool) *claimCluster {
		c := newClaimCluster()
		for _, name := range []string{"n1", "n2"} {
			c.addNode(name, "ap-northeast-2a", 2)
		}
		c.addRemoteDevices("ap-northeast-2b", "r", "s")
		c.addPods("p", 5, exactly(1, "gpu"))
		c.addPods("q", 2, exactly(1, "remote"))
		c.addPods("s", 3, sharing("30Gi"))
		if d := &c.Snapshot.Devices; reverse {
			slices.Reverse(d.Slices)
			slices.Reverse(d.Classes)
			slices.Reverse(c.Pending)
		}
		return c
	}
	first, second := build(false).solve(t), build(true).solve(t)
	if first != second || !strings.Contains(first, "n1") {
		t.Errorf("two orders give two plans:\n%s\n%s", first, second)
	}
}
