package scenarios

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// fleetTypes are the types of a fleet's nodes, in equal shares: a cluster that grew over
// some years.
var fleetTypes = []string{
	"m5.4xlarge", "m6i.xlarge", "m6i.2xlarge", "m6i.4xlarge", "c6i.2xlarge", "c6i.4xlarge", "c7g.4xlarge", "r6i.xlarge", "r6i.2xlarge", "m6g.2xlarge",
}

// sparse adds nodes with about 37 % of their net CPU requested.
func sparse(d *draw, s *Scenario, nodes int) { fleet(d, s, nodes, 0.15, 0.6) }

// dense adds nodes with about 75 %: some are full, some are limited by memory.
func dense(d *draw, s *Scenario, nodes int) { fleet(d, s, nodes, 0.6, 1.2) }

// fleet adds nodes that are filled to a share of their CPU between low and high.
func fleet(d *draw, s *Scenario, nodes int, low, high float64) {
	net := netSizes()
	pods := 0
	for n := range nodes {
		name := oneOf(d, fleetTypes...)
		node := Node{
			Name: fmt.Sprintf("node-%04d", n), NodePool: "default", InstanceType: name,
			Zone: oneOf(d, Zones()...), CapacityType: karpenter.CapacityTypeOnDemand,
		}
		for _, one := range d.packed(net[name], min(1, d.between(low, high))) {
			node.Pods = append(node.Pods, owned(pods, one))
			pods++
		}
		s.Nodes = append(s.Nodes, node)
	}
}

// packed draws pods until the node has the share of CPU, or several in a row do not fit.
func (d *draw) packed(room size, share float64) (out []size) {
	const missesMax = 8
	goal := int64(share * float64(room.milliCPU))
	for misses := 0; misses < missesMax; {
		one := d.size()
		if one.milliCPU > goal || one.memoryMiB > room.memoryMiB {
			misses++
			continue
		}
		misses, out = 0, append(out, one)
		goal, room.memoryMiB = goal-one.milliCPU, room.memoryMiB-one.memoryMiB
	}
	return out
}

// owned returns the n-th pod of a fleet. Five consecutive pods belong to one ReplicaSet.
func owned(n int, s size) corev1.Pod {
	app := fmt.Sprintf("app-%d", n/5)
	p := pod("default", fmt.Sprintf("%s-%d", app, n), s.requests())
	p.Labels[appKey] = app
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app, UID: "rs"}}
	return p
}

// netSizes returns the capacity of the fleet's types without the daemons.
func netSizes() map[string]size {
	types, err := Types()
	if err != nil {
		panic(err) // unreachable: the catalogue is embedded
	}
	out := map[string]size{}
	for _, t := range types {
		left := catalog.Allocatable(t.Capacity, t.Overhead)
		for _, p := range daemons() {
			for name, taken := range p.Spec.Containers[0].Resources.Requests {
				rest := left[name]
				rest.Sub(taken)
				left[name] = rest
			}
		}
		out[t.Name] = size{left.Cpu().MilliValue(), left.Memory().Value() >> 20}
	}
	return out
}
