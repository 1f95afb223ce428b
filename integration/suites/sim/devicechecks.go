package sim

import (
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

// deviceType is the only instance type with GPUs that the NodePool of the simulator may launch.
const deviceType = "g4dn.xlarge"

// plannedDevices is the part of a plan that the checker of devices reads.
type plannedDevices struct {
	Nominations []struct {
		Namespace string `json:"namespace"`
		Pod       struct {
			Claims []string `json:"claims"`
		} `json:"pod"`
		Claim   string   `json:"claim"`
		Node    string   `json:"node"`
		Devices []string `json:"devices"`
	} `json:"nominations"`
}

// deviceBatch is the part of a batch that the checker of devices reads.
type deviceBatch struct {
	Snapshot struct {
		Nodes []struct {
			Name        string `json:"name"`
			Claim       string `json:"claim"`
			Initialized bool   `json:"initialized"`
			Marked      bool   `json:"markedForDeletion"`
		} `json:"nodes"`
		Devices struct {
			Slices []resourcev1.ResourceSlice `json:"slices"`
			Claims []resourcev1.ResourceClaim `json:"claims"`
		} `json:"devices"`
	} `json:"snapshot"`
	Pending []struct {
		Pods []struct {
			UID  string `json:"uid"`
			Node string `json:"node"`
		} `json:"pods"`
	} `json:"pending"`
}

// checkPlannedDevices checks the devices of an admitted plan with the plan validator: each exists on its node, and
// neither the plan nor a pod that stays has it twice.
func (c *checker) checkPlannedDevices(batchDigest, planDigest string) {
	var plan plannedDevices
	if !c.readDocument("plans/"+planDigest, &plan) {
		return
	}
	var batch deviceBatch
	if !plan.hasDevices() || !c.readBatch(batchDigest, &batch) {
		return
	}
	offered := batch.listOfferedNodes()
	allocations := plan.listAllocations(offered)
	c.occurrences["plan with devices"]++
	s := batch.newScenario(offered)
	allocations = slices.DeleteFunc(allocations, func(a planvalidator.DeviceAllocation) bool { return batch.keepsDevices(s, a) })
	for _, a := range allocations {
		s.Requests[a.Claim] = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{Count: 1}}}
	}
	for _, v := range planvalidator.CheckDevices(s, allocations) {
		c.reportViolation("no device is allocated twice", "plan %s: %s", planDigest, v.Error())
	}
}

func (p plannedDevices) hasDevices() bool {
	for _, n := range p.Nominations {
		if len(n.Pod.Claims) > 0 {
			return true
		}
	}
	return false
}

// listAllocations returns the devices of the pods. Devices of a node that is not initialized are those of its type.
func (p plannedDevices) listAllocations(offered map[string]bool) (out []planvalidator.DeviceAllocation) {
	for _, n := range p.Nominations {
		if len(n.Pod.Claims) == 0 {
			continue
		}
		a := planvalidator.DeviceAllocation{Claim: n.Namespace + "/" + n.Pod.Claims[0], Node: n.Node, Devices: map[string][]planvalidator.UsedDevice{deviceType: nil}}
		if n.Node == "" {
			a.Node = n.Claim
		}
		for _, name := range n.Devices {
			parts := strings.Split(name, "/")
			a.Devices[deviceType] = append(a.Devices[deviceType], planvalidator.UsedDevice{
				Request: "gpu", Driver: parts[0], Pool: parts[1], Device: parts[2], Template: strings.HasPrefix(parts[1], "gpus-") && !offered[a.Node],
			})
		}
		out = append(out, a)
	}
	return out
}

// listOfferedNodes returns the nodes whose published devices a plan may use.
func (b *deviceBatch) listOfferedNodes() map[string]bool {
	offered := map[string]bool{}
	for _, n := range b.Snapshot.Nodes {
		offered[n.Name] = n.Initialized && !n.Marked
	}
	return offered
}

// keepsDevices reports whether the pod gets no further devices because its claim has devices on its node.
func (b *deviceBatch) keepsDevices(s *planvalidator.DeviceScenario, a planvalidator.DeviceAllocation) bool {
	node := a.Node
	for _, n := range b.Snapshot.Nodes {
		if n.Claim == a.Node {
			node = n.Name
		}
	}
	return len(a.Devices[deviceType]) == 0 && slices.ContainsFunc(s.Kept, func(c resourcev1.ResourceClaim) bool {
		return c.Namespace+"/"+c.Name == a.Claim && c.Status.Allocation.Devices.Results[0].Pool == node
	})
}

// newScenario returns the devices that the batch offers, and the claims that keep theirs.
func (b *deviceBatch) newScenario(offered map[string]bool) *planvalidator.DeviceScenario {
	s := &planvalidator.DeviceScenario{Templates: map[string][]resourcev1.ResourceSliceSpec{}, Requests: map[string][]resourcev1.DeviceRequest{}}
	if t, _, ok := catalog.DevicesOf(deviceType, catalog.NVIDIADriver, catalog.GPUSharing{}); ok {
		s.Templates[deviceType] = []resourcev1.ResourceSliceSpec{{Driver: t.Driver, Pool: resourcev1.ResourcePool{Name: t.Pool}, Devices: t.Devices}}
	}
	moved := map[string]bool{}
	for _, slice := range b.Snapshot.Devices.Slices {
		if offered[slice.OwnerReferences[0].Name] {
			s.Slices = append(s.Slices, slice)
		}
	}
	for _, class := range b.Pending {
		for _, pod := range class.Pods {
			moved[pod.UID] = moved[pod.UID] || pod.Node != ""
		}
	}
	for _, claim := range b.Snapshot.Devices.Claims {
		leaves := func(r resourcev1.ResourceClaimConsumerReference) bool { return moved[string(r.UID)] }
		if claim.Status.Allocation != nil && !slices.ContainsFunc(claim.Status.ReservedFor, leaves) {
			s.Kept = append(s.Kept, claim)
		}
	}
	return s
}
