package solver_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

const (
	noFreeDevices = "1 unplaced: devices: the node has too few free devices for ResourceClaim p-0-claim, or they violate its constraints"
	anyType       = "t4g.2xlarge|t4g.medium|t4g.xlarge"
)

// only restricts new nodes to t4g.xlarge with these devices.
func (c *claimCluster) only(templates ...catalog.DeviceTemplate) {
	c.Snapshot.NodePools[0].Spec.Template.Spec.Requirements[0].Values = []string{"t4g.xlarge"}
	c.devices = map[string][]catalog.DeviceTemplate{"t4g.xlarge": templates}
}

// addPartitions gives new nodes devices that consume counters, such as memory=80Gi, of one budget.
func (c *claimCluster) addPartitions(budget []string, count int, each ...string) {
	parse := func(list []string) map[string]resourcev1.Counter {
		out := map[string]resourcev1.Counter{}
		for _, one := range list {
			name, value, _ := strings.Cut(one, "=")
			out[name] = resourcev1.Counter{Value: resource.MustParse(value)}
		}
		return out
	}
	counters := catalog.DeviceTemplate{Driver: gpuDriver, Pool: "gpus", SharedCounters: []resourcev1.CounterSet{{Name: "gpu-slices", Counters: parse(budget)}}}
	partitions := catalog.DeviceTemplate{Driver: gpuDriver, Pool: "gpus"}
	for i := range count {
		partitions.Devices = append(partitions.Devices, resourcev1.Device{
			Name: "part-" + string(rune('0'+i)), ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: "gpu-slices", Counters: parse(each)}},
		})
	}
	c.only(counters, partitions)
}

// addSharedGPU gives new nodes one GPU of 16Gi that pods share.
func (c *claimCluster) addSharedGPU(policy *resourcev1.CapacityRequestPolicy) {
	d := resourcev1.Device{Name: "shared", AllowMultipleAllocations: new(true)}
	d.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("16Gi"), RequestPolicy: policy}}
	c.only(catalog.DeviceTemplate{Driver: gpuDriver, Pool: "gpus", Devices: []resourcev1.Device{d}})
}

// addNetworkDevices adds devices that every node can use, and no others.
func (c *claimCluster) addNetworkDevices(names ...string) *resourcev1.ResourceSliceSpec {
	c.devices = map[string][]catalog.DeviceTemplate{}
	c.addRemoteDevices("network", names...)
	s := &c.Snapshot.Devices.Slices[len(c.Snapshot.Devices.Slices)-1].Spec
	s.NodeSelector, s.AllNodes = nil, new(true)
	return s
}

// shareNetworkDevice makes a network device shared, with 16Gi.
func shareNetworkDevice(s *resourcev1.ResourceSliceSpec) {
	s.Devices[0].AllowMultipleAllocations = new(true)
	s.Devices[0].Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("16Gi")}}
}

// addHolder adds an allocated claim on a network device. With a capacity it shares the device.
func (c *claimCluster) addHolder(pod, device, memory string) {
	held := newClaim(pod+"-held", []resourcev1.DeviceRequest{exactly(1, "remote")}, []string{pod}, "remote.example.com/network/"+device)
	if memory != "" {
		held.Status.Allocation.Devices.Results[0].ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)}
	}
	c.Snapshot.Devices.Claims = append(c.Snapshot.Devices.Claims, *held)
}

// addLeavingPod adds a node that is being deleted, and a pod on it with the UID leaving.
func (c *claimCluster) addLeavingPod() {
	node := c.addNode("leaving", "ap-northeast-2a", 0)
	node.MarkedForDeletion = true
	pods := planningtest.NewPods("leaving", 1, "100m", "100Mi")
	pods.Pods[0].UID, pods.Pods[0].Node = "leaving", "leaving"
	node.Pods = append(node.Pods, pods)
}

// sharingRemote requests a share of a shared network device.
func sharingRemote(memory string) resourcev1.DeviceRequest {
	r := sharing(memory)
	r.Exactly.DeviceClassName = "remote"
	return r
}

// TestClaimSpecs has the specs of Karpenter's pkg/controllers/provisioning/dra_test.go that
// TestResourceClaims does not show, by the short names in their titles.
func TestClaimSpecs(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(*claimCluster)
		want string
	}{
		{"X1 two claims on devices of different zones", func(c *claimCluster) {
			c.addRemoteDevices("ap-northeast-2a", "r")
			c.addRemoteDevices("ap-northeast-2b", "s")
			in := func(zone string) resourcev1.DeviceRequest {
				name := map[string]string{"ap-northeast-2a": "r", "ap-northeast-2b": "s"}[zone]
				c.Snapshot.Devices.Classes = append(c.Snapshot.Devices.Classes, newClass(zone, `device.attributes["remote.example.com"].name == "`+name+`"`))
				return exactly(1, zone)
			}
			for i, name := range []string{"r", "s"} {
				c.Snapshot.Devices.Slices[i].Spec.Devices[0].Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"name": {StringValue: &name}}
			}
			c.addTwoClaims(in("ap-northeast-2a"), in("ap-northeast-2b"))
		}, noFreeDevices},
		{"D2 two claims on devices of one zone", func(c *claimCluster) {
			c.addRemoteDevices("ap-northeast-2b", "r", "s")
			c.addTwoClaims(exactly(1, "remote"), exactly(1, "remote"))
		}, "p-0 on " + anyType + " with r s in ap-northeast-2b"},
		{"X3 the types with devices have another architecture", func(c *claimCluster) {
			c.Snapshot.NodePools[0].Spec.Template.Spec.Requirements[0].Values = []string{"m7i.large", "t4g.xlarge"}
			class := c.addPods("p", 1, exactly(1, "gpu"))
			class.Spec.NodeSelector = map[string]string{corev1.LabelArchStable: "amd64"}
		}, "1 unplaced: devices: ResourceClaim p-0-claim: no device of the node matches request request"},
		{"V2 a device that a live pod holds is not allocated", func(c *claimCluster) {
			c.addNetworkDevices("r", "s")
			c.addHolder("live", "r", "")
			c.addPods("p", 2, exactly(1, "remote"))
		}, "p-0 on " + anyType + " with s; " + strings.Replace(noFreeDevices, "p-0", "p-1", 1)},
		{"V1 a device is free if its only pod is on a deleted node", func(c *claimCluster) {
			c.addNetworkDevices("r")
			c.addLeavingPod()
			c.addHolder("leaving", "r", "")
			c.addPods("p", 1, exactly(1, "remote"))
		}, "p-0 on " + anyType + " with r"},
		{"P4 the share of a pod on a deleted node is free, that of a live pod is not", func(c *claimCluster) {
			shareNetworkDevice(c.addNetworkDevices("r"))
			c.addLeavingPod()
			c.addHolder("live", "r", "4Gi")
			c.addHolder("leaving", "r", "10Gi")
			c.addPods("p", 1, sharingRemote("10Gi"))
		}, "p-0 on " + anyType + " with r"},
		{"P4 and no more than that share", func(c *claimCluster) {
			shareNetworkDevice(c.addNetworkDevices("r"))
			c.addLeavingPod()
			c.addHolder("live", "r", "4Gi")
			c.addHolder("leaving", "r", "10Gi")
			c.addPods("p", 1, sharingRemote("13Gi"))
		}, noFreeDevices},
		{"runs H2 a second pod uses an allocated claim", func(c *claimCluster) {
			c.addNetworkDevices("r")
			held := newClaim("held", []resourcev1.DeviceRequest{exactly(1, "remote")}, []string{"live"}, "remote.example.com/network/r")
			c.addSharedClaim(c.addPods("p", 1, exactly(1, "remote")), held)
		}, "p-0 on " + anyType + " with "},
		{"P2 three pods share a device", func(c *claimCluster) {
			c.addSharedGPU(nil)
			c.addPods("p", 3, sharing("4Gi"))
		}, "p-0 p-1 p-2 on t4g.xlarge with shared shared shared"},
		{"P3 four pods with more than one device has get a second node", func(c *claimCluster) {
			c.addSharedGPU(nil)
			c.addPods("p", 3, sharing("4Gi"))
			c.addPods("q", 1, sharing("8Gi"))
		}, "p-0 p-1 q-0 on t4g.xlarge with shared shared shared; p-2 on t4g.xlarge with shared"},
		{"P8 a capacity that no device has", func(c *claimCluster) {
			c.addSharedGPU(nil)
			r := sharing("4Gi")
			r.Exactly.Capacity.Requests["bandwidth"] = resource.MustParse("10")
			c.addPods("p", 1, r)
		}, noFreeDevices},
		{"P9 more than the largest valid value", func(c *claimCluster) {
			c.addSharedGPU(&resourcev1.CapacityRequestPolicy{Default: new(resource.MustParse("4Gi")), ValidValues: []resource.Quantity{resource.MustParse("4Gi"), resource.MustParse("8Gi"), resource.MustParse("16Gi")}})
			c.addPods("p", 1, sharing("32Gi"))
		}, noFreeDevices},
		{"P10 a request without capacity consumes the default", func(c *claimCluster) {
			c.addSharedGPU(&resourcev1.CapacityRequestPolicy{Default: new(resource.MustParse("4Gi"))})
			r := sharing("4Gi")
			r.Exactly.Capacity = nil
			c.addPods("p", 3, r)
		}, "p-0 p-1 p-2 on t4g.xlarge with shared shared shared"},
		{"K1 partitions within the budget share a node", func(c *claimCluster) {
			c.addPartitions([]string{"memory=80Gi"}, 2, "memory=40Gi")
			c.addPods("p", 2, exactly(1, "gpu"))
		}, "p-0 p-1 on t4g.xlarge with part-0 part-1"},
		{"K2 the third partition gets a second node", func(c *claimCluster) {
			c.addPartitions([]string{"memory=80Gi"}, 3, "memory=40Gi")
			c.addPods("p", 3, exactly(1, "gpu"))
		}, "p-0 p-1 on t4g.xlarge with part-0 part-1; p-2 on t4g.xlarge with part-0"},
		{"K3 several counters", func(c *claimCluster) {
			c.addPartitions([]string{"memory=80Gi", "compute=100"}, 2, "memory=40Gi", "compute=50")
			c.addPods("p", 2, exactly(1, "gpu"))
		}, "p-0 p-1 on t4g.xlarge with part-0 part-1"},
		{"K5 a partition above the budget", func(c *claimCluster) {
			c.addPartitions([]string{"memory=40Gi"}, 1, "memory=80Gi")
			c.addPods("p", 1, exactly(1, "gpu"))
		}, noFreeDevices},
		{"K6 a device consumes counters that do not exist", func(c *claimCluster) {
			c.addPartitions([]string{"memory=80Gi"}, 1, "memory=40Gi")
			c.devices["t4g.xlarge"][1].Devices[0].ConsumesCounters[0].CounterSet = "other"
			c.addPods("p", 1, exactly(1, "gpu"))
		}, noFreeDevices},
		{"K7 two partitions are above the budget together", func(c *claimCluster) {
			c.addPartitions([]string{"compute=100"}, 2, "compute=60")
			c.addPods("p", 2, exactly(1, "gpu"))
		}, "p-0 on t4g.xlarge with part-0; p-1 on t4g.xlarge with part-0"},
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

// addTwoClaims adds a pod with two claims.
func (c *claimCluster) addTwoClaims(first, second resourcev1.DeviceRequest) {
	class := c.addPods("p", 1, first)
	class.Spec.ResourceClaims, class.Spec.Claims = 2, append(class.Spec.Claims, planning.PodClaim{Requests: []resourcev1.DeviceRequest{second}})
	class.Pods[0].Claims = append(class.Pods[0].Claims, "p-0-other")
}

// TestAllocationsOfClaims checks the names of claims and requests in a plan's allocations: a request with
// alternatives has the name of the chosen one. A node of pods without claims has no drivers.
func TestAllocationsOfClaims(t *testing.T) {
	for _, tt := range []struct {
		name, instanceType, want string
		claims                   bool
	}{
		{"H1 the fallback", "t4g.xlarge", "default/p-0-claim: req/fallback-2=gpu-0 req/fallback-2=gpu-1", true},
		{"H2 the preferred alternative", "t4g.2xlarge", "default/p-0-claim: req/prefer-4=gpu-0 req/prefer-4=gpu-1 req/prefer-4=gpu-2 req/prefer-4=gpu-3", true},
		{"A3 a pod without claims", "t4g.xlarge", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newClaimCluster()
			c.Snapshot.NodePools[0].Spec.Template.Spec.Requirements[0].Values = []string{tt.instanceType}
			c.Pending = []planning.PodClass{planningtest.NewPods("p", 1, "100m", "100Mi")}
			drivers := []string{}
			if tt.claims {
				four, two := exactly(4, "gpu").Exactly, exactly(2, "gpu").Exactly
				c.Pending, drivers = nil, []string{gpuDriver}
				c.addPods("p", 1, resourcev1.DeviceRequest{Name: "req", FirstAvailable: []resourcev1.DeviceSubRequest{
					{Name: "prefer-4", DeviceClassName: "gpu", Selectors: four.Selectors, AllocationMode: four.AllocationMode, Count: 4},
					{Name: "fallback-2", DeviceClassName: "gpu", Selectors: two.Selectors, AllocationMode: two.AllocationMode, Count: 2},
				}})
			}
			result := solver.SolveWithTypes(c.Batch, c.types())
			var got []string
			for _, a := range result.Allocations {
				got = append(got, a.Namespace+"/"+a.Claim+":")
				for _, d := range a.Devices {
					got = append(got, d.Request+"="+d.Device)
				}
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("got  %s\nwant %s", text, tt.want)
			}
			if !slices.Equal(result.Nodes[0].DeviceDrivers, drivers) {
				t.Errorf("the drivers are %v, want %v", result.Nodes[0].DeviceDrivers, drivers)
			}
		})
	}
}

// TestClaimsOfLaterPlans plans again after something changed, as the specs of Karpenter with several
// runs.
func TestClaimsOfLaterPlans(t *testing.T) {
	t.Run("I2 a node's devices count once when it is initialized", func(t *testing.T) {
		c := newClaimCluster()
		c.addNode("n1", "ap-northeast-2a", 1).Initialized = false
		c.addPods("p", 1, exactly(2, "gpu"))
		if got, want := c.solve(t), "p-0 on n1"; got != want {
			t.Errorf("before: got %s, want %s", got, want)
		}
		c.Snapshot.Nodes[0].Initialized = true // It has published one device, not the two of its type.
		c.Pending = nil
		c.addPods("q", 2, exactly(1, "gpu"))
		if got, want := c.solve(t), "q-0 on n1; q-1 on t4g.2xlarge|t4g.xlarge with gpu-0"; got != want {
			t.Errorf("after: got %s, want %s", got, want)
		}
	})
	t.Run("runs H1 the device of a pod that runs is not allocated again", func(t *testing.T) {
		c := newClaimCluster()
		c.addNode("n1", "ap-northeast-2a", 1)
		c.addBoundPod("p", "n1", "gpu.example.com/n1/n1-0", exactly(1, "gpu"))
		c.addPods("q", 1, exactly(1, "gpu"))
		if got, want := c.solve(t), "q-0 on t4g.2xlarge|t4g.xlarge with gpu-0"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("runs H3 a pod is planned once its claim exists", func(t *testing.T) {
		c := newClaimCluster()
		c.addPods("p", 1).Spec.Claims[0] = planning.PodClaim{Name: "late", Problem: `resourceclaim "default/late" not found`}
		if got, want := c.solve(t), `1 unplaced: pod: resourceclaim "default/late" not found`; got != want {
			t.Errorf("before: got %s, want %s", got, want)
		}
		c.Pending = nil
		c.addSharedClaim(c.addPods("p", 1, exactly(1, "gpu")), newClaim("late", []resourcev1.DeviceRequest{exactly(1, "gpu")}, nil))
		if got, want := c.solve(t), "p-0 on t4g.2xlarge|t4g.xlarge with gpu-0"; got != want {
			t.Errorf("after: got %s, want %s", got, want)
		}
	})
}
