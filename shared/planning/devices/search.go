package devices

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// maxSteps is how many devices one search may try, over all instance types of a site.
const maxSteps = 100_000

// templateOrder is the order of the first device of an instance type, after all published ones.
const templateOrder = 1 << 40

var errSteps = fmt.Errorf("the search for devices stopped after %d steps", maxSteps)

// search finds devices for claims, depth first: for each request its devices one after the other,
// published ones first. The first solution wins.
type search struct {
	a      *Allocator
	site   *Site
	claims []*claim
	// initial are the pools that the site can use, and current the pools for a node with the devices
	// of the solution so far, whose requirements are in reqs.
	initial, current []view
	reqs             planning.Requirements
	// all are the devices of requests for all matching devices: published ones, and those of the
	// instance type that is searched.
	all   map[*request][]*device
	t     *NodeDevices
	picks []pick
	// own is what the picks take.
	own   *use
	steps int
}

// pick is a device of the solution.
type pick struct {
	claim    int
	request  *request
	device   *device
	capacity map[resourcev1.QualifiedName]quantity
}

func (a *Allocator) newSearch(site *Site, objects []*resourcev1.ResourceClaim) (*search, error) {
	s := &search{a: a, site: site, initial: viewPools(a.pools, site), reqs: site.Requirements}
	for _, object := range objects {
		c, err := a.inventory.readClaim(object)
		if err != nil {
			return nil, err
		}
		s.claims = append(s.claims, c)
		if err := s.checkPools(c); err != nil {
			return nil, fmt.Errorf("ResourceClaim %s: %w", object.Name, err)
		}
	}
	return s, nil
}

// checkPools fails if a request for all devices cannot know them: a pool is incomplete or invalid.
func (s *search) checkPools(c *claim) error {
	for _, r := range c.requests {
		if !r.all && !slices.ContainsFunc(r.alternatives, func(r *request) bool { return r.all }) {
			continue
		}
		for _, v := range s.initial {
			switch {
			case v.invalid:
				return fmt.Errorf("request %s is for all devices, and pool %s/%s is invalid: two devices have one name, or counters are wrong", r.parent, v.id.Driver, v.id.Pool)
			case v.incomplete:
				return fmt.Errorf("request %s is for all devices, and pool %s/%s is incomplete: ResourceSlices are missing", r.parent, v.id.Driver, v.id.Pool)
			}
		}
	}
	return nil
}

// searchTypes searches each instance type of the site. A type must agree with the requirements of the
// types before it, because the requirements of a node cannot depend on its type.
func (s *search) searchTypes(out *Allocation) error {
	out.byType = map[string]*use{}
	for _, c := range s.claims {
		out.claims = append(out.claims, &ClaimDevices{Claim: c.object, Site: s.site.ID, Devices: map[string][]PickedDevice{}, topology: map[string]planning.Requirements{}})
	}
	var last error
	for _, t := range s.site.Types {
		found, err := s.searchType(t)
		switch {
		case errors.Is(err, errSteps) && len(out.Types) == 0:
			return err
		case errors.Is(err, errSteps):
			return nil
		case err != nil:
			last = err
		case found:
			s.recordSolution(t, out)
		}
	}
	if len(out.Types) == 0 {
		return cmp.Or(last, s.explainNone())
	}
	return nil
}

// searchType searches one instance type.
func (s *search) searchType(t *NodeDevices) (bool, error) {
	s.t, s.current, s.picks, s.own, s.all = t, slices.Clone(s.initial), nil, newUse(), map[*request][]*device{}
	for i, d := range t.devices {
		d.order = templateOrder + i
	}
	for _, c := range s.claims {
		for _, k := range c.constraints {
			k.value, k.group, k.count = nil, 0, 0
		}
		for _, r := range c.requests {
			if err := s.collectAll(append([]*request{r}, r.alternatives...)); err != nil {
				return false, fmt.Errorf("ResourceClaim %s, request %s: %w", c.object.Name, r.parent, err)
			}
		}
	}
	found := s.solveRequest(0, 0, nil, 0)
	if s.steps >= maxSteps && !found {
		return false, errSteps
	}
	return found, nil
}

// collectAll collects the devices of requests for all matching devices.
func (s *search) collectAll(requests []*request) error {
	for _, r := range requests {
		if !r.all {
			continue
		}
		var candidates []*device
		for _, v := range s.initial {
			candidates = append(candidates, v.devices...)
		}
		for _, d := range slices.Concat(candidates, s.t.devices) {
			matches, err := d.matchesAll(r.selectors)
			if err != nil {
				return err
			}
			if matches {
				s.all[r] = append(s.all[r], d)
			}
		}
	}
	return nil
}

// recordSolution adds the devices of the solution to the allocation.
func (s *search) recordSolution(t *NodeDevices, out *Allocation) {
	out.Types = append(out.Types, t.Name)
	out.byType[t.Name] = s.own
	for _, p := range s.picks {
		c := out.claims[p.claim]
		c.Devices[t.Name] = append(c.Devices[t.Name], PickedDevice{p.request.name(), p.device.id, p.capacity})
		c.usesTemplates = c.usesTemplates || p.device.id.Template
		if p.device.topology != nil {
			c.topology[t.Name] = c.topology[t.Name].Intersect(p.device.topology)
		}
	}
}

// solveRequest solves a request of a claim from a slot on, and everything after it. r is the
// alternative in work; nil for the request itself.
func (s *search) solveRequest(at, index int, r *request, slot int) bool {
	if at == len(s.claims) {
		return true
	}
	c := s.claims[at]
	if index == len(c.requests) {
		return s.solveRequest(at+1, 0, nil, 0)
	}
	if r == nil {
		if r = c.requests[index]; len(r.alternatives) > 0 {
			return slices.ContainsFunc(r.alternatives, func(one *request) bool { return s.solveRequest(at, index, one, 0) })
		}
	}
	slots := r.count
	if r.all {
		if slots = len(s.all[r]); slots == 0 {
			return false
		}
	}
	if slot == 0 && s.countPicks(at)+slots > resourcev1.AllocationResultsMaxSize {
		return false
	}
	if slot == slots {
		return s.solveRequest(at, index+1, nil, 0)
	}
	if r.all {
		return s.tryDevice(at, index, r, slot, s.all[r][slot])
	}
	return s.solveSlot(at, index, r, slot)
}

// countPicks returns how many devices the claim has in the solution.
func (s *search) countPicks(at int) (n int) {
	for _, p := range s.picks {
		if p.claim == at {
			n++
		}
	}
	return n
}

// solveSlot tries every device for a slot. Devices before that of the previous slot were tried there
// already: their order makes no difference.
func (s *search) solveSlot(at, index int, r *request, slot int) bool {
	from := -1
	if slot > 0 {
		from = s.picks[len(s.picks)-1].device.order
	}
	for i := range s.current {
		v := &s.current[i]
		if v.incomplete || v.invalid {
			continue
		}
		for _, d := range v.devices {
			if d.order >= from && s.tryDevice(at, index, r, slot, d) {
				return true
			}
		}
	}
	for _, d := range s.t.devices {
		if d.order >= from && s.tryDevice(at, index, r, slot, d) {
			return true
		}
	}
	return false
}

// tryDevice adds a device to the solution and solves the rest; it removes the device if that fails.
func (s *search) tryDevice(at, index int, r *request, slot int, d *device) bool {
	if s.steps++; s.steps > maxSteps {
		return false
	}
	capacity, free := s.checkDevice(r, d)
	if !free || !s.hasCounters(d) {
		return false
	}
	if matches, err := d.matchesAll(r.selectors); err != nil || !matches {
		return false
	}
	c := s.claims[at]
	for i, k := range c.constraints {
		if !k.add(r, d, s.t) {
			removeFrom(c.constraints[:i], r)
			return false
		}
	}
	reqs, current := s.reqs, s.current
	if d.topology != nil {
		if !s.site.allows(s.reqs, d.topology) {
			removeFrom(c.constraints, r)
			return false
		}
		s.narrow(d.topology)
	}
	s.take(d, capacity, 1)
	s.picks = append(s.picks, pick{at, r, d, capacity})
	if s.solveRequest(at, index, r, slot+1) {
		return true
	}
	s.picks = s.picks[:len(s.picks)-1]
	s.take(d, capacity, -1)
	s.reqs, s.current = reqs, current
	removeFrom(c.constraints, r)
	return false
}

func removeFrom(constraints []*constraint, r *request) {
	for _, k := range constraints {
		k.remove(r)
	}
}

// narrow adds the requirements of a device and drops the slices that a node with them cannot use.
func (s *search) narrow(topology planning.Requirements) {
	s.reqs = s.reqs.Intersect(topology)
	var kept []view
	for _, v := range s.current {
		visible := slices.DeleteFunc(slices.Clone(v.visible), func(one *slice) bool { return !one.isVisible(s.site, s.reqs) })
		if len(visible) < len(v.visible) {
			v.visible, v.devices = visible, nil
			for _, one := range visible {
				v.devices = append(v.devices, one.devices...)
			}
		}
		kept = append(kept, v)
	}
	s.current = kept
}

// checkDevice reports whether the device is free, and returns what the request consumes of a shared
// one.
func (s *search) checkDevice(r *request, d *device) (map[resourcev1.QualifiedName]quantity, bool) {
	if !d.isShared() {
		return nil, !s.own.devices[d.id] && !s.a.usage.isTaken(d.id, s.site.ID, s.t.Name)
	}
	capacity, ok := consumedCapacity(r.capacity, d.spec)
	if !ok {
		return nil, false
	}
	for name, amount := range capacity {
		if !s.fits(budget{of: d.id, name: string(name)}, amount, d.spec.Capacity[name].Value) {
			return nil, false
		}
	}
	return capacity, true
}

// fits reports whether an amount is left of a budget.
func (s *search) fits(key budget, amount, total quantity) bool {
	sum := s.a.usage.usedAmount(key, s.site.ID, s.t.Name)
	sum.Add(s.own.amounts[key])
	sum.Add(amount)
	return sum.Cmp(total) <= 0
}

// hasCounters reports whether the pool's counters have what the device consumes.
func (s *search) hasCounters(d *device) bool {
	if len(d.spec.ConsumesCounters) == 0 {
		return true
	}
	totals := s.t.counters
	if !d.id.Template {
		at := slices.IndexFunc(s.initial, func(v view) bool { return v.id == d.id.pool() })
		totals = s.initial[at].counters
	}
	for key, amount := range d.countersOf() {
		total, known := totals[key]
		if !known || !s.fits(key, amount, total) {
			return false
		}
	}
	return true
}

// take adds what a device consumes to the solution, or removes it with sign -1.
func (s *search) take(d *device, capacity map[resourcev1.QualifiedName]quantity, sign int) {
	amounts := map[budget]quantity{}
	for name, amount := range capacity {
		amounts[budget{of: d.id, name: string(name)}] = amount
	}
	maps.Copy(amounts, d.countersOf())
	for key, amount := range amounts {
		sum := s.own.amounts[key].DeepCopy()
		if sign > 0 {
			sum.Add(amount)
		} else {
			sum.Sub(amount)
		}
		s.own.amounts[key] = sum
	}
	switch {
	case d.isShared():
	case sign > 0:
		s.own.devices[d.id] = true
	default:
		delete(s.own.devices, d.id)
	}
}

// explainNone returns why no instance type has the devices: the first request that no free device
// matches, if there is one.
func (s *search) explainNone() error {
	for _, c := range s.claims {
		for _, r := range c.requests {
			if s.countMatching(r) == 0 {
				return fmt.Errorf("ResourceClaim %s: no device of the node matches request %s", c.object.Name, r.parent)
			}
		}
	}
	return fmt.Errorf("the node has too few free devices for ResourceClaim %s, or they violate its constraints", s.claims[0].object.Name)
}

// countMatching counts the devices that match a request or one of its alternatives, free or not.
func (s *search) countMatching(r *request) (n int) {
	if len(r.alternatives) > 0 {
		for _, one := range r.alternatives {
			n += s.countMatching(one)
		}
		return n
	}
	var all []*device
	for _, v := range s.initial {
		all = append(all, v.devices...)
	}
	for _, t := range s.site.Types {
		all = append(all, t.devices...)
	}
	for _, d := range all {
		if matches, err := d.matchesAll(r.selectors); err == nil && matches {
			n++
		}
	}
	return n
}

func compareClaims(a, b *resourcev1.ResourceClaim) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
