package devices

import (
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// constraint requires that all devices of some requests have the same value of an attribute. The
// first device decides how: by its published value, or, if it has none, by the binding of its
// instance type. The two ways never mix.
type constraint struct {
	// requests are the names of the requests; empty for all requests of the claim.
	requests  []string
	attribute resourcev1.QualifiedName

	value *resourcev1.DeviceAttribute
	group int
	count int
}

// appliesTo reports whether the constraint names the request, or the alternative of a request.
func (c *constraint) appliesTo(r *request) bool {
	return len(c.requests) == 0 || slices.Contains(c.requests, r.parent) || r.alternative != "" && slices.Contains(c.requests, r.name())
}

// add adds a device, or returns false and changes nothing if the device violates the constraint.
func (c *constraint) add(r *request, d *device, t *NodeDevices) bool {
	if !c.appliesTo(r) {
		return true
	}
	value := lookUpAttribute(d, c.attribute)
	group, bound := t.bindingGroup(c.attribute, d.id)
	switch {
	case value != nil && c.count == 0:
		c.value = value
	case value != nil:
		if c.value == nil || !areEqual(c.value, value) {
			return false
		}
	case !bound:
		return false
	case c.count == 0:
		c.group = group
	case c.value != nil || c.group != group:
		return false
	}
	c.count++
	return true
}

// remove removes the device that was added last.
func (c *constraint) remove(r *request) {
	if !c.appliesTo(r) {
		return
	}
	if c.count--; c.count == 0 {
		c.value, c.group = nil, 0
	}
}

// lookUpAttribute returns an attribute by its full name, or by its name without the domain if that is
// the driver.
func lookUpAttribute(d *device, name resourcev1.QualifiedName) *resourcev1.DeviceAttribute {
	if value, ok := d.spec.Attributes[name]; ok {
		return &value
	}
	if domain, id, ok := strings.Cut(string(name), "/"); ok && domain == d.id.Driver {
		if value, ok := d.spec.Attributes[resourcev1.QualifiedName(id)]; ok {
			return &value
		}
	}
	return nil
}

// areEqual compares two values of the same type; values of different types are not equal.
func areEqual(a, b *resourcev1.DeviceAttribute) bool {
	switch {
	case a.StringValue != nil && b.StringValue != nil:
		return *a.StringValue == *b.StringValue
	case a.IntValue != nil && b.IntValue != nil:
		return *a.IntValue == *b.IntValue
	case a.BoolValue != nil && b.BoolValue != nil:
		return *a.BoolValue == *b.BoolValue
	case a.VersionValue != nil && b.VersionValue != nil:
		return *a.VersionValue == *b.VersionValue
	}
	return false
}
