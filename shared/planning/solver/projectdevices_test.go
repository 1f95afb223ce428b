package solver_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// joinedName is the name of a node that a planned node of the pool "default" became.
var joinedName = regexp.MustCompile(`default-[0-9a-f]{10}`)

// TestJoinedNodesHaveDevices removes nodes in several rounds, and continues each time with the snapshot after the
// round: devices of joined nodes are free, are held by the pods that moved there, or are freed when the node is
// removed.
func TestJoinedNodesHaveDevices(t *testing.T) {
	const zone = "ap-northeast-2a"
	c := newClaimCluster()
	c.addNode("n1", zone, 1)
	c.addNode("n2", zone, 1)
	c.addNode("n3", zone, 1)
	for _, pod := range []struct{ name, node string }{{"p", "n1"}, {"q", "n2"}, {"r", "n3"}} {
		c.addBoundPod(pod.name, pod.node, "gpu.example.com/"+pod.node+"/"+pod.node+"-0", exactly(1, "gpu"))
	}
	for round, tt := range []struct{ remove, want string }{
		{"n1", "p-0 on t4g.2xlarge|t4g.xlarge with gpu-0"},
		{"n2", "q-0 on joined"}, // The second device of the joined node.
		{"n3", "r-0 on t4g.2xlarge|t4g.xlarge with gpu-0"},
		{"joined", "p-0 on joined; q-0 on t4g.2xlarge|t4g.xlarge with gpu-0"}, // The other joined node has one free device.
	} {
		i, joined := 0, ""
		for k, n := range c.Snapshot.Nodes {
			if joined == "" && joinedName.MatchString(n.Name) {
				joined = n.Name
			}
			if n.Name == tt.remove || tt.remove == "joined" && n.Name == joined {
				i = k
			}
		}
		sim := solver.NewSimulation(c.Snapshot, c.types())
		result := sim.SimulateRemoval(i)
		if got := joinedName.ReplaceAllString(describeDevices(&result), "joined"); got != tt.want {
			t.Fatalf("round %d: got %s, want %s", round, got, tt.want)
		}
		moved := planning.Batch{Snapshot: c.Snapshot, Pending: withNode(c.Snapshot.Nodes[i].Pods, c.Snapshot.Nodes[i].Name)}
		if err := planningtest.CheckDevices(moved, c.types(), result); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		sim.Commit(result, i)
		c.Snapshot = sim.ProjectSnapshot()
		if err := findDoubleAllocation(&c.Snapshot); err != "" {
			t.Errorf("round %d: %s", round, err)
		}
	}
}

// TestJoinedNodesHaveTheirOwnDevices moves two pods to two planned nodes, of which each has the devices for one pod.
func TestJoinedNodesHaveTheirOwnDevices(t *testing.T) {
	c := newClaimCluster()
	c.Snapshot.NodePools[0].Spec.Template.Spec.Requirements[0].Values = []string{"t4g.xlarge"}
	for _, pod := range []struct{ name, node string }{{"p", "n1"}, {"q", "n2"}} {
		c.addNode(pod.node, "ap-northeast-2a", 2)
		c.addPods(pod.name, 1, exactly(2, "gpu"))
		c.bindPod(pod.node, "gpu.example.com/"+pod.node+"/"+pod.node+"-0", "gpu.example.com/"+pod.node+"/"+pod.node+"-1")
	}
	sim := solver.NewSimulation(c.Snapshot, c.types())
	result := sim.SimulateRemoval(0, 1)
	sim.Commit(result, 0, 1)
	joined := sim.ProjectSnapshot()
	if err := findDoubleAllocation(&joined); err != "" || len(joined.Nodes) != 2 {
		t.Fatalf("%d nodes, want two: %s", len(joined.Nodes), err)
	}
	for i := range joined.Nodes {
		claim := joined.Nodes[i].Pods[0].Pods[0].Claims[0]
		at := slices.IndexFunc(joined.Devices.Claims, func(one resourcev1.ResourceClaim) bool { return one.Name == claim })
		for _, r := range joined.Devices.Claims[at].Status.Allocation.Devices.Results {
			if !strings.HasPrefix(r.Pool, joined.Nodes[i].Name+"/") {
				t.Errorf("%s has a device of %s, and its pod is on %s", claim, r.Pool, joined.Nodes[i].Name)
			}
		}
	}
}

// TestJoinedNodesShareBoundAttributes moves a pod whose devices must have the same driver version to a joined node. The instance type says
// which devices will have it.
func TestJoinedNodesShareBoundAttributes(t *testing.T) {
	const version = "gpu.example.com/driverVersion"
	same := func(pool string) []catalog.DeviceID {
		return []catalog.DeviceID{{Driver: gpuDriver, Pool: pool, Device: "gpu-0"}, {Driver: gpuDriver, Pool: pool, Device: "gpu-1"}}
	}
	for _, tt := range []struct {
		name string
		// of returns the devices that will have the same version.
		of    func(pool string) []catalog.DeviceID
		known []resourcev1.DeviceAttribute
		bare  bool
		fits  bool
	}{
		{"both devices", same, nil, false, true},
		{"both devices, without other attributes", same, nil, true, true},
		{"no devices", func(string) []catalog.DeviceID { return nil }, nil, false, false},
		{"one of the devices", func(pool string) []catalog.DeviceID { return same(pool)[:1] }, nil, false, false},
		{"one of the devices, and a shared one", func(pool string) []catalog.DeviceID {
			return append(same(pool)[:1], catalog.DeviceID{Driver: gpuDriver, Pool: pool, Device: "shared"})
		}, nil, false, false},
		{"devices of another pool", func(string) []catalog.DeviceID { return same("other") }, nil, false, false},
		{"devices of another driver", func(pool string) []catalog.DeviceID {
			return []catalog.DeviceID{{Driver: "nic.example.com", Pool: pool, Device: "gpu-0"}, {Driver: "nic.example.com", Pool: pool, Device: "gpu-1"}}
		}, nil, false, false},
		{"devices with two versions", same, []resourcev1.DeviceAttribute{{StringValue: new("1")}, {StringValue: new("2")}}, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newClaimCluster()
			c.Snapshot.NodePools[0].Spec.Template.Spec.Requirements[0].Values = []string{"t4g.xlarge", "t4g.2xlarge"}
			c.addNode("n1", "ap-northeast-2a", 0)
			c.addNode("n2", "ap-northeast-2a", 2)
			c.addBoundPod("p", "n1", "nic.example.com/n1/nic-0", exactly(1, "nic"))
			c.addPods("q", 1, exactly(2, "gpu")).Spec.Claims[0].Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: new(resourcev1.FullyQualifiedName(version))}}
			c.bindPod("n2", "gpu.example.com/n2/n2-0", "gpu.example.com/n2/n2-1")
			q := &c.Snapshot.Devices.Claims[1].Spec.Devices
			q.Constraints = c.Snapshot.Nodes[1].Pods[0].Spec.Claims[0].Constraints
			stock := c.types()
			for _, list := range stock.ByNodeClass {
				for i := range list {
					gpus := list[i].DeviceTemplates[0]
					if len(gpus.Devices) < 3 {
						continue
					}
					list[i].DeviceBindings = []catalog.DeviceBinding{{Attribute: version, Devices: tt.of(gpus.Pool)}}
					for k := range gpus.Devices {
						if tt.bare {
							gpus.Devices[k].Attributes = nil
						}
						if k < len(tt.known) {
							gpus.Devices[k].Attributes[version] = tt.known[k]
						}
					}
				}
			}
			sim := solver.NewSimulation(c.Snapshot, stock)
			sim.Commit(sim.SimulateRemoval(0), 0)
			c.Snapshot = sim.ProjectSnapshot()
			next := solver.NewSimulation(c.Snapshot, stock).SimulateRemoval(0)
			got, want := joinedName.ReplaceAllString(describeDevices(&next), "joined"), "q-0 on joined"
			if !tt.fits {
				want = "1 unplaced: devices: the node has too few free devices for ResourceClaim q-0-claim, or they violate its constraints"
			}
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// withNode returns the pods as pods of a node that is being removed.
func withNode(classes []planning.PodClass, node string) (out []planning.PodClass) {
	for _, class := range classes {
		pods := class.Pods
		class.Pods = nil
		for _, pod := range pods {
			pod.Node = node
			class.Pods = append(class.Pods, pod)
		}
		out = append(out, class)
	}
	return out
}

// findDoubleAllocation returns a device that two claims have or that no slice has.
func findDoubleAllocation(s *planning.Snapshot) string {
	published := map[string]bool{}
	for _, slice := range s.Devices.Slices {
		for _, d := range slice.Spec.Devices {
			published[slice.Spec.Driver+" "+slice.Spec.Pool.Name+" "+d.Name] = true
		}
	}
	for _, claim := range s.Devices.Claims {
		if claim.Status.Allocation == nil || len(claim.Status.Allocation.Devices.Results) == 0 {
			return claim.Name + " has no devices"
		}
		for _, r := range claim.Status.Allocation.Devices.Results {
			key := r.Driver + " " + r.Pool + " " + r.Device
			if !published[key] {
				return claim.Name + " has " + key + ", which is not published or is allocated twice"
			}
			published[key] = false
		}
	}
	return ""
}
