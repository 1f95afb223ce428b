package launchspec

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// machine is an instance type for nodes of a pool, as the plan used it, with its hardware. Launches
// share it; it must not be changed.
type machine struct {
	hardware catalog.InstanceType
	typ      *instancetypes.Type
}

// machines are the types that the launches of a plan may try, by pool and type.
type machines map[[2]string]machine

// newMachines prepares only the types of the nodes' offerings; a region has many more.
func newMachines(nodes []planning.PlannedNode, s planning.Snapshot, cat catalog.Catalogue) machines {
	names, seen, pools := map[string]bool{}, map[listAt]bool{}, map[string]string{}
	for i := range nodes {
		pools[nodes[i].NodePool] = nodes[i].NodeClass
		if at := whereabouts(nodes[i].Offerings); !seen[at] {
			seen[at] = true
			for _, o := range nodes[i].Offerings {
				names[o.InstanceType] = true
			}
		}
	}
	wanted := cat
	wanted.Types = slices.DeleteFunc(slices.Clone(cat.Types), func(t catalog.InstanceType) bool { return !names[t.Name] })
	stock := instancetypes.New(s, wanted)
	out := machines{}
	for pool, class := range pools {
		types := stock.TypesForPool(pool, class)
		for i := range types {
			if hardware, ok := wanted.Find(types[i].Name); ok {
				out[[2]string{pool, types[i].Name}] = machine{hardware, &types[i]}
			}
		}
	}
	return out
}

// machine returns a type by name.
func (g *recipe) machine(name string) (machine, error) {
	m, ok := g.machines[[2]string{g.pool.Name, name}]
	if !ok {
		return machine{}, fault.F("reading the catalogue", fault.Bug, "it has no instance type %s for EC2NodeClass %s", name, g.class.Name)
	}
	return m, nil
}

// left adds the remaining capacity of the type's reservations to into.
func (m machine) left(into map[string]int) {
	for i := range m.typ.Offerings {
		if o := &m.typ.Offerings[i]; o.Reservation != "" {
			into[o.Reservation] = o.ReservationCapacity
		}
	}
}

// factsOf returns the facts for NodeClaims whose instance has the type. It drops resources that only
// the planner counts, and EFA devices if the launch template has no interfaces for them.
func (g *recipe) factsOf(m machine) TypeFacts {
	allocatable := maps.Clone(m.typ.Allocatable)
	maps.DeleteFunc(allocatable, func(name corev1.ResourceName, _ resource.Quantity) bool { return planning.IsAttachLimit(name) })
	capacity := maps.Clone(m.typ.Capacity)
	if !g.efa && g.class.Spec.NetworkInterfaces == nil {
		delete(capacity, karpenter.ResourceEFA)
		delete(allocatable, karpenter.ResourceEFA)
	}
	labels := maps.Clone(g.grouped(m.typ.Labels))
	labels[karpenter.LabelInstanceTenancy] = planning.InstanceTenancy(g.requirements)
	return TypeFacts{Capacity: capacity, Allocatable: allocatable, Labels: labels, ZoneIDs: map[string]string{}}
}
