package devices

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

type quantity = resource.Quantity

// consumedCapacity returns what a request consumes of each capacity of a shared device, rounded up by
// the request policies. It returns false if the device lacks a requested capacity or a policy forbids
// the amount.
func consumedCapacity(requests map[resourcev1.QualifiedName]quantity, d *resourcev1.Device) (map[resourcev1.QualifiedName]quantity, bool) {
	for name := range requests {
		if _, has := d.Capacity[name]; !has {
			return nil, false
		}
	}
	out := make(map[resourcev1.QualifiedName]quantity, len(d.Capacity))
	for name, capacity := range d.Capacity {
		wanted, requested := requests[name]
		amount := roundUp(wanted, requested, capacity)
		if violatesPolicy(amount, capacity.RequestPolicy) {
			return nil, false
		}
		out[name] = amount
	}
	return out, true
}

// roundUp returns the amount that a request consumes. Without a request it is the policy's default, or
// else the whole capacity.
func roundUp(wanted quantity, requested bool, capacity resourcev1.DeviceCapacity) quantity {
	policy := capacity.RequestPolicy
	switch {
	case !requested && policy != nil && policy.Default != nil:
		return *policy.Default
	case !requested:
		return capacity.Value
	case policy == nil:
		return wanted
	case policy.ValidRange != nil && policy.ValidRange.Min != nil:
		return roundUpToStep(wanted, policy.ValidRange)
	}
	for _, value := range policy.ValidValues { // The API server requires them to be sorted.
		if wanted.Cmp(value) <= 0 {
			return value
		}
	}
	return wanted
}

func roundUpToStep(wanted quantity, r *resourcev1.CapacityRequestPolicyRange) quantity {
	if wanted.Cmp(*r.Min) < 0 {
		return *r.Min
	}
	if r.Step == nil || r.Step.Value() <= 0 {
		return wanted
	}
	least, step := r.Min.Value(), r.Step.Value()
	steps := (wanted.Value() - least + step - 1) / step
	return *resource.NewQuantity(least+step*steps, resource.BinarySI)
}

// violatesPolicy reports whether the policy forbids the amount; the default is always allowed.
func violatesPolicy(amount quantity, policy *resourcev1.CapacityRequestPolicy) bool {
	if policy == nil || policy.Default != nil && amount.Cmp(*policy.Default) == 0 {
		return false
	}
	if r := policy.ValidRange; r != nil {
		if r.Max != nil && amount.Cmp(*r.Max) > 0 {
			return true
		}
		least := int64(0)
		if r.Min != nil {
			least = r.Min.Value()
		}
		return r.Step != nil && r.Step.Value() > 0 && (amount.Value()-least)%r.Step.Value() != 0
	}
	for _, value := range policy.ValidValues {
		if amount.Cmp(value) == 0 {
			return false
		}
	}
	return len(policy.ValidValues) > 0
}
