package instancetypes

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// overlayChange is one parsed NodeOverlay.
type overlayChange struct {
	weight       int32
	requirements planning.Requirements
	price        func(float64) float64 // nil if it does not change prices
	capacity     corev1.ResourceList
	// publicPrice is the price for types without a price published by AWS; nil if not set.
	publicPrice *float64
}

// selectedType is a type in a pool that an overlay selects, with the offerings that it selects.
// Capacity belongs to the type, so one selected offering is enough to change it.
type selectedType struct {
	pool         *poolTypes
	index        int
	instanceType *Type
	offerings    []int
}

// commonResources are resources of every node, which overlays must not change.
var commonResources = []corev1.ResourceName{
	corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods,
}

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func readOverlay(o *karpenter.NodeOverlay) (overlayChange, error) {
	out := overlayChange{weight: o.Weight(), requirements: planning.Requirements{}, capacity: o.Spec.Capacity}
	if invalid := o.ValidateRequirements(); len(invalid) > 0 {
		return out, invalid[0]
	}
	for i, r := range o.Spec.Requirements {
		values := planning.NewValues(r.Operator, r.Values...)
		if values.IsEmpty() {
			return out, fmt.Errorf("spec.requirements[%d]: %s %s %v cannot match: correct its values", i, r.Key, r.Operator, r.Values)
		}
		out.requirements.Add(r.Key, values)
	}
	err := checkCapacity(o.Spec.Capacity)
	if err == nil {
		out.price, err = parsePriceChange(o.Spec)
	}
	if err == nil && o.Spec.Price != nil && listsInstanceTypes(o.Spec.Requirements) {
		out.publicPrice = new(out.price(0))
	}
	return out, err
}

// listsInstanceTypes reports whether the requirements only list instance types. Only such
// an overlay makes types without a public price available
// (Karpenter: pkg/providers/instancetype/offering/offering.go, GetOverlayPrice).
func listsInstanceTypes(list []karpenter.OverlayRequirement) bool {
	return len(list) == 1 && list[0].Key == corev1.LabelInstanceTypeStable && list[0].Operator == corev1.NodeSelectorOpIn
}

func checkCapacity(capacity corev1.ResourceList) error {
	for _, name := range slices.Sorted(maps.Keys(capacity)) {
		quantity := capacity[name]
		switch {
		case slices.Contains(commonResources, name):
			return fmt.Errorf("capacity: %s belongs to the instance type: add only extended resources", name)
		case quantity.Sign() < 0:
			return fmt.Errorf("capacity: invalid quantity %s of %s (use a positive quantity)", quantity.String(), name)
		}
	}
	return nil
}

// parsePriceChange returns the function from the old to the new price, in US dollars per hour.
func parsePriceChange(spec karpenter.NodeOverlaySpec) (func(float64) float64, error) {
	switch {
	case spec.Price != nil && spec.PriceAdjustment != nil:
		return nil, errors.New("price and priceAdjustment are both set: remove one")
	case spec.Price != nil:
		fixed, err := parseAmount(*spec.Price)
		if err != nil || fixed < 0 {
			return nil, fmt.Errorf("price: invalid price %q (use US dollars such as 0.12)", *spec.Price)
		}
		return func(float64) float64 { return fixed }, nil
	case spec.PriceAdjustment != nil:
		return parseAdjustment(*spec.PriceAdjustment)
	default:
		return nil, nil
	}
}

// parseAdjustment parses "-0.05" and "+10%". The new price is at least 0.
func parseAdjustment(text string) (func(float64) float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	by, err := parseAmount(number)
	if signed := strings.HasPrefix(text, "+") || strings.HasPrefix(text, "-"); err != nil || !signed {
		return nil, fmt.Errorf("priceAdjustment: invalid adjustment %q (use for example -0.05 or +10%%)", text)
	}
	if percent {
		return func(price float64) float64 { return max(0, price*(1+by/100)) }, nil
	}
	return func(price float64) float64 { return max(0, price+by) }, nil
}

func parseAmount(text string) (float64, error) {
	amount, err := strconv.ParseFloat(text, 64)
	if err == nil && (math.IsNaN(amount) || math.IsInf(amount, 0)) {
		err = strconv.ErrRange
	}
	return amount, err
}

// selectTypes returns the types that the overlay selects.
func (c *overlayChange) selectTypes(views []*poolTypes) []selectedType {
	var out []selectedType
	for _, v := range views {
		for i := range v.types {
			if offers := c.selectOfferings(v, &v.types[i]); len(offers) > 0 {
				out = append(out, selectedType{v, i, &v.types[i], offers})
			}
		}
	}
	return out
}

// selectOfferings returns the offerings whose nodes would match the overlay's requirements. A label
// that such a node would not have is absent, even a well-known one.
func (c *overlayChange) selectOfferings(v *poolTypes, t *Type) []int {
	var out []int
	for i := range t.Offerings {
		o := &t.Offerings[i]
		label := func(key string) (string, bool) {
			if value := o.Label(key); value != "" {
				return value, true
			}
			for _, labels := range []map[string]string{o.Labels, t.Labels, v.labels} {
				if value, ok := labels[key]; ok {
					return value, true
				}
			}
			return "", false
		}
		if satisfiesRequirements(c.requirements, label) {
			out = append(out, i)
		}
	}
	return out
}

// satisfiesRequirements reports whether the labels meet the requirements.
func satisfiesRequirements(r planning.Requirements, label func(string) (string, bool)) bool {
	for key, values := range r {
		value, ok := label(key)
		if ok && !values.Has(value) || !ok && !values.AllowsAbsent() {
			return false
		}
	}
	return true
}

// conflictsOn reports whether an overlay of the same weight has already changed the type's price or
// capacity. Overlays are applied by weight, the heaviest first, so only the last weight needs to be
// compared.
func (c *overlayChange) conflictsOn(h selectedType) bool {
	known := h.pool.changes[h.index]
	if known == nil {
		return false
	}
	if c.price != nil && slices.ContainsFunc(h.offerings, func(i int) bool {
		said, ok := known.prices[i]
		return ok && said.lastWeight == c.weight
	}) {
		return true
	}
	if known.lastWeight != c.weight {
		return false
	}
	for name := range c.capacity {
		if _, said := known.lastCapacity[name]; said {
			return true
		}
	}
	return false
}

// applyTo applies everything that no heavier overlay has set.
func (c *overlayChange) applyTo(h selectedType) {
	if c.price == nil && len(c.capacity) == 0 {
		return
	}
	change := h.pool.changeOf(h.index)
	if change.publicPrice == nil {
		change.publicPrice = c.publicPrice
	}
	if c.price != nil {
		for _, i := range h.offerings {
			said, ok := change.prices[i]
			if !ok {
				said.adjust = c.price
			}
			said.lastWeight = c.weight
			change.prices[i] = said
		}
	}
	if len(c.capacity) == 0 {
		return
	}
	for name, quantity := range c.capacity {
		if _, said := change.capacity[name]; !said {
			change.capacity[name] = quantity
		}
	}
	if change.lastWeight != c.weight || change.lastCapacity == nil {
		change.lastCapacity = corev1.ResourceList{}
	}
	change.lastCapacity = mergeResources(change.lastCapacity, c.capacity)
	change.lastWeight = c.weight
}
