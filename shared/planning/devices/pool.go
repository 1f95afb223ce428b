package devices

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// slice is a published ResourceSlice.
type slice struct {
	spec *resourcev1.ResourceSliceSpec
	name string
	// owner is the node that owns the slice; empty if no node owns it.
	owner    string
	devices  []*device
	topology planning.Requirements
}

// pool is the slices of one pool with the highest generation.
type pool struct {
	id     DeviceKey
	slices []*slice
	// counters are the totals of the shared counters.
	counters map[budget]quantity
	// incomplete is true if slices are missing or disagree about their number.
	incomplete bool
	// badCounters is true if counter sets are defined twice, or devices consume counters that do not
	// exist.
	badCounters bool
}

// newSlice reads a slice of the cluster.
func newSlice(in *resourcev1.ResourceSlice) *slice {
	s := &slice{spec: &in.Spec, name: in.Name, topology: newTopology(in.Spec.NodeSelector)}
	for i := range in.OwnerReferences {
		if in.OwnerReferences[i].Kind == "Node" {
			s.owner = in.OwnerReferences[i].Name
			break
		}
	}
	if isTrue(in.Spec.AllNodes) {
		s.topology = nil
	}
	for i := range in.Spec.Devices {
		id := s.poolID()
		id.Device = in.Spec.Devices[i].Name
		s.devices = append(s.devices, &device{id: id, spec: &in.Spec.Devices[i], topology: s.topology})
	}
	return s
}

func isTrue(b *bool) bool { return b != nil && *b }

func (s *slice) poolID() DeviceKey {
	return DeviceKey{DeviceID: catalog.DeviceID{Driver: s.spec.Driver, Pool: s.spec.Pool.Name}}
}

// newTopology returns what a node selector requires of labels; nil for no selector.
func newTopology(selector *corev1.NodeSelector) planning.Requirements {
	if selector == nil {
		return nil
	}
	out := planning.Requirements{}
	for _, term := range selector.NodeSelectorTerms {
		for _, one := range term.MatchExpressions {
			out.Add(one.Key, planning.NewValues(one.Operator, one.Values...))
		}
	}
	return out
}

// compareSlices orders slices by pool and name.
func compareSlices(a, b *slice) int {
	return cmp.Or(cmp.Compare(a.spec.Driver, b.spec.Driver), cmp.Compare(a.spec.Pool.Name, b.spec.Pool.Name), cmp.Compare(a.name, b.name))
}

// newPools groups sorted slices into pools.
func newPools(all []*slice) (out []*pool) {
	for _, s := range all {
		id := s.poolID()
		if len(out) == 0 || out[len(out)-1].id != id {
			out = append(out, &pool{id: id})
		}
		p := out[len(out)-1]
		switch {
		case len(p.slices) > 0 && s.spec.Pool.Generation < p.slices[0].spec.Pool.Generation:
			continue
		case len(p.slices) > 0 && s.spec.Pool.Generation > p.slices[0].spec.Pool.Generation:
			p.slices = nil
		}
		p.slices = append(p.slices, s)
	}
	for _, p := range out {
		p.incomplete = slices.ContainsFunc(p.slices, func(s *slice) bool { return s.spec.Pool.ResourceSliceCount != int64(len(p.slices)) })
		p.readCounters()
	}
	return out
}

// readCounters reads and checks the shared counters. Devices in a slice with counters are ignored.
func (p *pool) readCounters() {
	p.counters = map[budget]quantity{}
	sets := map[string]bool{}
	for _, s := range p.slices {
		for _, set := range s.spec.SharedCounters {
			p.badCounters = p.badCounters || sets[set.Name]
			sets[set.Name] = true
			for name := range set.Counters {
				p.counters[budget{p.id, set.Name, name}] = set.Counters[name].Value
			}
		}
	}
	for _, s := range p.slices {
		for _, d := range s.listDevices() {
			for _, consumed := range d.spec.ConsumesCounters {
				p.badCounters = p.badCounters || !sets[consumed.CounterSet]
				for name := range consumed.Counters {
					_, known := p.counters[budget{p.id, consumed.CounterSet, name}]
					p.badCounters = p.badCounters || !known
				}
			}
		}
	}
}

// listDevices returns the devices of a slice without counters.
func (s *slice) listDevices() []*device {
	if len(s.spec.SharedCounters) > 0 {
		return nil
	}
	return s.devices
}

// view is the part of a pool that a site can use.
type view struct {
	*pool
	visible []*slice
	devices []*device
	// invalid pools have no devices here: their counters are wrong, or two devices have one name.
	invalid bool
}

// viewPools returns what the site can use of the pools.
func viewPools(all []*pool, site *Site) []view {
	var out []view
	for _, p := range all {
		v := view{pool: p, invalid: p.badCounters}
		for _, s := range p.slices {
			if len(s.spec.SharedCounters) == 0 && s.isVisible(site, site.Requirements) {
				v.visible = append(v.visible, s)
			}
		}
		names := map[string]bool{}
		for _, s := range v.visible {
			for _, d := range s.devices {
				v.invalid = v.invalid || names[d.id.Device]
				names[d.id.Device] = true
				v.devices = append(v.devices, d)
			}
		}
		if v.invalid || len(v.visible) > 0 {
			out = append(out, v)
		}
	}
	return out
}

// isVisible reports whether a node of the site with these requirements can use the slice's devices.
func (s *slice) isVisible(site *Site, reqs planning.Requirements) bool {
	switch {
	case isTrue(s.spec.AllNodes):
		return true
	case s.spec.NodeName != nil && *s.spec.NodeName != "":
		return *s.spec.NodeName == site.NodeName
	case s.spec.NodeSelector == nil:
		return false
	}
	return slices.ContainsFunc(s.spec.NodeSelector.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		return site.allows(reqs, planning.NewNodeSelectorRequirements(term.MatchExpressions))
	})
}
