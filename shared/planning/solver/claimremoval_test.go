package solver_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// bindPod moves the last pending class, of one pod, to a node, where its claim holds devices.
func (c *claimCluster) bindPod(node string, devices ...string) {
	class := c.Pending[len(c.Pending)-1]
	c.Pending = c.Pending[:len(c.Pending)-1]
	for i := range c.Snapshot.Nodes {
		n := &c.Snapshot.Nodes[i]
		if n.Name != node {
			continue
		}
		n.Pods, n.Used = append(n.Pods, class), class.Spec.Requests
		pod := class.Pods[0]
		c.Snapshot.Devices.Claims = append(c.Snapshot.Devices.Claims, *newClaim(pod.Claims[0], class.Spec.Claims[0].Requests, []string{pod.UID}, devices...))
	}
}

func (c *claimCluster) addBoundPod(name, node, device string, request resourcev1.DeviceRequest) {
	c.addPods(name, 1, request)
	c.bindPod(node, device)
}

// TestRemovalsWithClaims holds what Karpenter's pkg/controllers/disruption/consolidation_dra_test.go
// specifies.
func TestRemovalsWithClaims(t *testing.T) {
	const zone = "ap-northeast-2a"
	one := exactly(1, "gpu")
	shared := func(c *claimCluster) {
		c.addRemoteDevices(zone, "r")
		d := &c.Snapshot.Devices.Slices[len(c.Snapshot.Devices.Slices)-1].Spec.Devices[0]
		d.AllowMultipleAllocations, d.Capacity = new(true), map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}}
	}
	share := func(amount string) resourcev1.DeviceRequest {
		r := sharing(amount)
		r.Exactly.DeviceClassName = "remote"
		return r
	}
	consume := func(c *claimCluster, amount string) {
		r := &c.Snapshot.Devices.Claims[len(c.Snapshot.Devices.Claims)-1].Status.Allocation.Devices.Results[0]
		r.ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(amount)}
	}
	for _, tt := range []struct {
		name   string
		edit   func(*claimCluster)
		remove []int
		want   string
	}{
		{"the claim is allocated again on a replacement", func(c *claimCluster) {
			c.addNode("n1", zone, 1)
			c.addBoundPod("p", "n1", "gpu.example.com/n1/n1-0", one)
		}, []int{0}, "p-0 on t4g.2xlarge|t4g.xlarge with gpu-0"},
		{"devices of the removed node are not used", func(c *claimCluster) {
			c.addNode("n1", zone, 3)
			c.addBoundPod("p", "n1", "gpu.example.com/n1/n1-0", one)
			s := &c.Snapshot.Devices.Slices[0].Spec
			s.NodeName, s.AllNodes = nil, new(true)
		}, []int{0}, "p-0 on t4g.2xlarge|t4g.xlarge with gpu-0"},
		{"a claim that can be met nowhere else", func(c *claimCluster) {
			c.addNode("n1", zone, 6)
			c.addBoundPod("p", "n1", "gpu.example.com/n1/n1-0", exactly(6, "gpu"))
		}, []int{0}, "1 unplaced: devices: the node has too few free devices for ResourceClaim p-0-claim, or they violate its constraints"},
		{"a device of another node that is free", func(c *claimCluster) {
			c.addNode("n1", zone, 1)
			c.addNode("n2", zone, 1)
			c.addBoundPod("p", "n1", "gpu.example.com/n1/n1-0", one)
		}, []int{0}, "p-0 on n2"},
		{"a device of the first node that is free", func(c *claimCluster) {
			c.addNode("n1", zone, 1)
			c.addNode("n2", zone, 1)
			c.addBoundPod("p", "n2", "gpu.example.com/n2/n2-0", one)
		}, []int{1}, "p-0 on n1"},
		{"a device of another node that a live pod holds", func(c *claimCluster) {
			c.addNode("n1", zone, 1)
			c.addNode("n2", zone, 1)
			c.addBoundPod("p", "n1", "gpu.example.com/n1/n1-0", one)
			c.addBoundPod("q", "n2", "gpu.example.com/n2/n2-0", one)
		}, []int{0}, "p-0 on t4g.2xlarge|t4g.xlarge with gpu-0"},
		{"pods of two nodes share a replacement", func(c *claimCluster) {
			c.addNode("n1", zone, 1)
			c.addNode("n2", zone, 1)
			c.addBoundPod("p", "n1", "gpu.example.com/n1/n1-0", one)
			c.addBoundPod("q", "n2", "gpu.example.com/n2/n2-0", one)
		}, []int{0, 1}, "p-0 q-0 on t4g.2xlarge|t4g.xlarge with gpu-0 gpu-1"},
		{"only the share of the moved pod is free", func(c *claimCluster) {
			shared(c)
			c.addNode("n1", zone, 0)
			c.addNode("n2", zone, 0)
			c.addBoundPod("p", "n1", "remote.example.com/"+zone+"/r", share("40Gi"))
			consume(c, "40Gi")
			c.addBoundPod("q", "n2", "remote.example.com/"+zone+"/r", share("40Gi"))
			consume(c, "40Gi")
		}, []int{0}, "p-0 on n2"},
		{"more than the share of the moved pod is not free", func(c *claimCluster) {
			shared(c)
			c.addNode("n1", zone, 0)
			c.addNode("n2", zone, 0)
			c.addBoundPod("p", "n1", "remote.example.com/"+zone+"/r", share("40Gi"))
			consume(c, "40Gi")
			c.addBoundPod("q", "n2", "remote.example.com/"+zone+"/r", share("41Gi"))
			consume(c, "41Gi")
		}, []int{0}, "1 unplaced: devices: the node has too few free devices for ResourceClaim p-0-claim, or they violate its constraints"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newClaimCluster()
			tt.edit(c)
			sim := solver.NewSimulation(c.Snapshot, c.types())
			result := sim.SimulateRemoval(tt.remove...)
			if got := describeDevices(&result); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if one := sim.SimulateRemovalWithOneNode(tt.remove...); describeDevices(&one) != tt.want {
				t.Errorf("with one new node: got %s\nwant %s", describeDevices(&one), tt.want)
			}
			if stranded := sim.FindStrandedPods(result, tt.remove...); len(stranded) != countUnplacedPods(&result) {
				t.Errorf("stranded: %v", stranded)
			}
		})
	}
}

func countUnplacedPods(r *planning.Result) (n int) {
	for _, u := range r.Unplaced {
		n += len(u.Pods)
	}
	return n
}

// TestCommittedDevices checks that a device goes to one of two removals, and back if its pod is moved
// again.
func TestCommittedDevices(t *testing.T) {
	c := newClaimCluster()
	for _, name := range []string{"n1", "n2", "n3"} {
		c.addNode(name, "ap-northeast-2a", 1)
	}
	c.addBoundPod("p", "n1", "gpu.example.com/n1/n1-0", exactly(1, "gpu"))
	c.addBoundPod("q", "n2", "gpu.example.com/n2/n2-0", exactly(1, "gpu"))
	sim := solver.NewSimulation(c.Snapshot, c.types())
	for i, want := range []string{"p-0 on n3", "q-0 on t4g.2xlarge|t4g.xlarge with gpu-0", "p-0 on t4g.2xlarge|t4g.xlarge with gpu-0"} {
		result := sim.SimulateRemoval(i)
		if got := describeDevices(&result); got != want {
			t.Errorf("removal of node %d: got %s, want %s", i, got, want)
		}
		sim.Commit(result, i)
	}
}

// TestCommittedSharesCount checks that both requests of a committed pod use a shared device.
func TestCommittedSharesCount(t *testing.T) {
	c := newClaimCluster()
	for _, name := range []string{"n1", "free", "n2"} {
		c.addNode(name, "ap-northeast-2a", 0)
	}
	shareNetworkDevice(c.addNetworkDevices("r"))
	c.addPods("p", 1, sharingRemote("6Gi"), sharingRemote("6Gi"))
	c.bindPod("n1", "remote.example.com/gone/a", "remote.example.com/gone/b")
	c.addBoundPod("q", "n2", "remote.example.com/gone/c", sharingRemote("6Gi"))
	sim := solver.NewSimulation(c.Snapshot, c.types())
	first := sim.SimulateRemoval(0)
	if got, want := describeDevices(&first), "p-0 on free"; got != want {
		t.Fatalf("first removal: got %s, want %s", got, want)
	}
	sim.Commit(first, 0)
	second := sim.SimulateRemoval(2)
	if got, want := describeDevices(&second), strings.Replace(noFreeDevices, "p-0", "q-0", 1); got != want {
		t.Errorf("second removal: got %s, want %s because 4 of 16 GiB are free", got, want)
	}
}

// TestStrandedPodsWithClaims moves a pod with a claim to the only node with a free device. kube-scheduler places other pods first, which may
// need the room, or exclude the pod from the node.
func TestStrandedPodsWithClaims(t *testing.T) {
	for _, tt := range []struct {
		name   string
		others []planning.PodClass
		want   []string
	}{
		{"none", nil, nil},
		{"a larger pod that fits on the same node", []planning.PodClass{taking("large", "3")}, []string{"p-0"}},
		{"a larger pod that excludes it", []planning.PodClass{taking("guard", "1100m", avoidingOver(corev1.LabelHostname, "p", "guard"))}, []string{"p-0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newClaimCluster()
			c.addNode("n1", "ap-northeast-2a", 1)
			c.addNode("n2", "ap-northeast-2a", 1)
			c.addPods("p", 1, exactly(1, "gpu")).Spec.Requests = planningtest.NewRequests("1", "100Mi")
			requireLabels("app", "p")(&c.Pending[0].Spec)
			c.bindPod("n1", "gpu.example.com/n1/n1-0")
			n1 := &c.Snapshot.Nodes[0]
			n1.Pods = append(n1.Pods, tt.others...)
			c.Snapshot.Nodes = append(c.Snapshot.Nodes, node("n3", func(n *planning.Node) {
				n.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3"), corev1.ResourceMemory: resource.MustParse("3Gi"), corev1.ResourcePods: resource.MustParse("9")}
			}))
			c.Snapshot.NodePools = nil
			sim := solver.NewSimulation(c.Snapshot, c.types())
			plan := sim.SimulateRemoval(0)
			if len(plan.Unplaced) > 0 {
				t.Fatalf("unplaced: %+v", plan.Unplaced)
			}
			var got []string
			for _, pod := range sim.FindStrandedPods(plan, 0) {
				got = append(got, pod.Name)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("stranded %v, want %v", got, tt.want)
			}
		})
	}
}

// TestCommittedSharesOfPlannedNodesCountOnce checks that a pod on a planned node, which may become any of three types, uses a shared device
// once.
func TestCommittedSharesOfPlannedNodesCountOnce(t *testing.T) {
	for memory, want := range map[string]string{"4Gi": "q-0 on free", "5Gi": strings.Replace(noFreeDevices, "p-0", "q-0", 1)} {
		c := newClaimCluster()
		for _, name := range []string{"n1", "n2"} {
			c.addNode(name, "ap-northeast-2a", 0)
		}
		shareNetworkDevice(c.addNetworkDevices("r"))
		c.addBoundPod("p", "n1", "remote.example.com/gone/a", sharingRemote("12Gi"))
		c.addBoundPod("q", "n2", "remote.example.com/gone/c", sharingRemote(memory))
		c.addNode("free", "ap-northeast-2a", 0).Used = planningtest.NewRequests("3800m", "1Gi")
		c.Snapshot.Nodes[0].Pods[0].Spec.Requests, c.Snapshot.Nodes[1].Used = planningtest.NewRequests("200m", "100Mi"), c.Snapshot.Nodes[1].Allocatable
		sim := solver.NewSimulation(c.Snapshot, c.types())
		first := sim.SimulateRemoval(0)
		if len(first.Nodes) != 1 || len(first.Allocations) == 0 {
			t.Fatalf("first removal: got %s, want a planned node", describeDevices(&first))
		}
		sim.Commit(first, 0)
		second := sim.SimulateRemoval(1)
		if got := describeDevices(&second); got != want {
			t.Errorf("a pod that needs %s: got %s, want %s because 4 of 16 GiB are free", memory, got, want)
		}
	}
}
