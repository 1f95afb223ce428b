package devices

import (
	"errors"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
)

// claim is a ResourceClaim that needs devices.
type claim struct {
	object      *resourcev1.ResourceClaim
	requests    []*request
	constraints []*constraint
}

// request is a device request, one of its alternatives, or the parent of alternatives.
type request struct {
	// parent is the name of the request, and alternative that of the alternative.
	parent, alternative string
	// alternatives are tried in order; nil for a request without alternatives.
	alternatives []*request
	selectors    []*selector
	// all requests every matching device; otherwise count is the number of devices.
	all      bool
	count    int
	capacity map[resourcev1.QualifiedName]quantity
}

// name returns the name as allocation results have it.
func (r *request) name() string {
	if r.alternative == "" {
		return r.parent
	}
	return r.parent + "/" + r.alternative
}

// details are the fields that requests and alternatives have in common.
type details struct {
	class     string
	selectors []resourcev1.DeviceSelector
	mode      resourcev1.DeviceAllocationMode
	count     int64
	capacity  *resourcev1.CapacityRequirements
}

// readClaim reads the requests and constraints of a claim.
func (v *PublishedDevices) readClaim(object *resourcev1.ResourceClaim) (*claim, error) {
	out := &claim{object: object}
	for _, c := range object.Spec.Devices.Constraints {
		switch {
		case c.MatchAttribute != nil:
			out.constraints = append(out.constraints, &constraint{requests: c.Requests, attribute: resourcev1.QualifiedName(*c.MatchAttribute)})
		case c.DistinctAttribute != nil:
			return nil, fmt.Errorf("ResourceClaim %s: distinctAttribute constraints are not supported", object.Name)
		default:
			return nil, fmt.Errorf("ResourceClaim %s has a constraint of an unknown type", object.Name)
		}
	}
	least := 0
	for i := range object.Spec.Devices.Requests {
		r, err := v.readRequest(&object.Spec.Devices.Requests[i])
		if err != nil {
			return nil, fmt.Errorf("ResourceClaim %s, request %s: %w", object.Name, object.Spec.Devices.Requests[i].Name, err)
		}
		out.requests = append(out.requests, r)
		least += r.leastCount()
	}
	if least > resourcev1.AllocationResultsMaxSize {
		return nil, fmt.Errorf("ResourceClaim %s requests %d devices; the maximum is %d", object.Name, least, resourcev1.AllocationResultsMaxSize)
	}
	return out, nil
}

// leastCount returns the least number of devices that meet the request.
func (r *request) leastCount() int {
	least := r.count
	for i, alternative := range r.alternatives {
		if i == 0 || alternative.count < least {
			least = alternative.count
		}
	}
	return least
}

func (v *PublishedDevices) readRequest(in *resourcev1.DeviceRequest) (*request, error) {
	if e := in.Exactly; e != nil {
		return v.newRequest(in.Name, "", details{e.DeviceClassName, e.Selectors, e.AllocationMode, e.Count, e.Capacity})
	}
	if len(in.FirstAvailable) == 0 {
		return nil, errors.New("it has neither exactly nor firstAvailable")
	}
	out := &request{parent: in.Name}
	for i := range in.FirstAvailable {
		f := &in.FirstAvailable[i]
		r, err := v.newRequest(in.Name, f.Name, details{f.DeviceClassName, f.Selectors, f.AllocationMode, f.Count, f.Capacity})
		if err != nil {
			return nil, err
		}
		out.alternatives = append(out.alternatives, r)
	}
	return out, nil
}

func (v *PublishedDevices) newRequest(parent, alternative string, in details) (*request, error) {
	class, found := v.classes[in.class]
	if !found {
		return nil, fmt.Errorf("DeviceClass %q not found", in.class)
	}
	out := &request{parent: parent, alternative: alternative, all: in.mode == resourcev1.DeviceAllocationModeAll}
	if !out.all {
		out.count = int(in.count)
	}
	if in.capacity != nil {
		out.capacity = in.capacity.Requests
	}
	for _, list := range [][]resourcev1.DeviceSelector{class.Spec.Selectors, in.selectors} {
		for _, one := range list {
			if one.CEL == nil {
				return nil, errors.New("it has a selector that is not CEL")
			}
			s := v.findSelector(one.CEL.Expression)
			if s.err != nil {
				return nil, fmt.Errorf("CEL expression %q does not compile: %w", s.expression, s.err)
			}
			out.selectors = append(out.selectors, s)
		}
	}
	return out, nil
}

func (v *PublishedDevices) findSelector(expression string) *selector {
	s, known := v.selectors[expression]
	if !known {
		s = compileSelector(expression)
		v.selectors[expression] = s
	}
	return s
}
