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

// overlayChange is one NodeOverlay, read.
type overlayChange struct {
	weight   int32
	want     planning.Requirements
	price    func(float64) float64 // nil when it leaves prices alone
	capacity corev1.ResourceList
	// public is the price that the overlay gives to types whose price AWS does not
	// publish; nil for none.
	public *float64
}

// hit is a type that an overlay selects in a pool, with the offers that it
// selects. Resources are the type's whatever is bought, so one offer is enough.
type hit struct {
	view   *view
	index  int
	typ    *Type
	offers []int
}

// commonResources are those that every node has, which no overlay may change.
var commonResources = []corev1.ResourceName{
	corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods,
}

func hugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func readOverlay(o *karpenter.NodeOverlay) (overlayChange, error) {
	out := overlayChange{weight: o.Weight(), want: planning.Requirements{}, capacity: o.Spec.Capacity}
	for _, r := range o.Spec.Requirements {
		values := planning.NewValues(r.Operator, r.Values...)
		switch {
		case karpenter.RestrictedLabel(r.Key) && r.Key != karpenter.LabelEC2NodeClass:
			return out, fmt.Errorf("requirements: label %s is no label of instance types or NodePools: name another", r.Key)
		case values.Empty() || r.Operator == karpenter.NodeSelectorOpNotIn && len(r.Values) == 0:
			return out, fmt.Errorf("requirements: %s %s %v matches nothing that could be meant: correct its values", r.Key, r.Operator, r.Values)
		}
		out.want.Add(r.Key, values)
	}
	err := checkCapacity(o.Spec.Capacity)
	if err == nil {
		out.price, err = readPrice(o.Spec)
	}
	if err == nil && o.Spec.Price != nil && namesTypes(o.Spec.Requirements) {
		out.public = new(out.price(0))
	}
	return out, err
}

// namesTypes reports whether the requirements only list instance types. Only such
// an overlay makes types without a public price available
// (Karpenter: pkg/providers/instancetype/offering/offering.go, GetOverlayPrice).
func namesTypes(list []karpenter.OverlayRequirement) bool {
	return len(list) == 1 && list[0].Key == corev1.LabelInstanceTypeStable && list[0].Operator == corev1.NodeSelectorOpIn
}

func checkCapacity(capacity corev1.ResourceList) error {
	for _, name := range slices.Sorted(maps.Keys(capacity)) {
		quantity := capacity[name]
		switch {
		case slices.Contains(commonResources, name):
			return fmt.Errorf("capacity: %s is the instance type's own: only extended resources can be added", name)
		case quantity.Sign() < 0:
			return fmt.Errorf("capacity: there cannot be %s of %s", quantity.String(), name)
		}
	}
	return nil
}

// readPrice gives the new price of an old one, in US dollars per hour.
func readPrice(spec karpenter.NodeOverlaySpec) (func(float64) float64, error) {
	switch {
	case spec.Price != nil && spec.PriceAdjustment != nil:
		return nil, errors.New("price and priceAdjustment exclude each other: remove one")
	case spec.Price != nil:
		fixed, err := amountOf(*spec.Price)
		if err != nil || fixed < 0 {
			return nil, fmt.Errorf("price: %q is no price in US dollars: write for example 0.12", *spec.Price)
		}
		return func(float64) float64 { return fixed }, nil
	case spec.PriceAdjustment != nil:
		return readAdjustment(*spec.PriceAdjustment)
	default:
		return nil, nil
	}
}

// readAdjustment reads "-0.05" and "+10%". No price falls below nothing.
func readAdjustment(text string) (func(float64) float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	by, err := amountOf(number)
	if signed := strings.HasPrefix(text, "+") || strings.HasPrefix(text, "-"); err != nil || !signed {
		return nil, fmt.Errorf("priceAdjustment: %q is no change of a price: write for example -0.05 or +10%%", text)
	}
	if percent {
		return func(price float64) float64 { return max(0, price*(1+by/100)) }, nil
	}
	return func(price float64) float64 { return max(0, price+by) }, nil
}

func amountOf(text string) (float64, error) {
	amount, err := strconv.ParseFloat(text, 64)
	if err == nil && (math.IsNaN(amount) || math.IsInf(amount, 0)) {
		err = strconv.ErrRange
	}
	return amount, err
}

// hits finds the types that the overlay selects.
func (c *overlayChange) hits(views []*view) []hit {
	var out []hit
	for _, v := range views {
		for i := range v.types {
			if offers := c.selected(v, &v.types[i]); len(offers) > 0 {
				out = append(out, hit{v, i, &v.types[i], offers})
			}
		}
	}
	return out
}

// selected are the offers whose nodes would satisfy the overlay's requirements. A
// label that such a node would not have is absent, well known or not.
func (c *overlayChange) selected(v *view, t *Type) []int {
	var out []int
	for i := range t.Offers {
		o := &t.Offers[i]
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
		if satisfies(c.want, label) {
			out = append(out, i)
		}
	}
	return out
}

// satisfies reports whether the labels are as the requirements demand.
func satisfies(r planning.Requirements, label func(string) (string, bool)) bool {
	for key, values := range r {
		value, ok := label(key)
		if ok && !values.Has(value) || !ok && !values.HasAbsent() {
			return false
		}
	}
	return true
}

// contradicted reports whether an overlay of the same weight has said something
// else of the hit already. Overlays come heaviest first, so it is enough to
// remember the lightest.
func (c *overlayChange) contradicted(h hit) bool {
	known := h.view.changes[h.index]
	if known == nil {
		return false
	}
	if c.price != nil && slices.ContainsFunc(h.offers, func(i int) bool {
		said, ok := known.prices[i]
		return ok && said.lightest == c.weight
	}) {
		return true
	}
	if known.lightest != c.weight {
		return false
	}
	for name := range c.capacity {
		if _, said := known.said[name]; said {
			return true
		}
	}
	return false
}

// apply says what nothing heavier has said.
func (c *overlayChange) apply(h hit) {
	if c.price == nil && len(c.capacity) == 0 {
		return
	}
	change := h.view.change(h.index)
	if change.public == nil {
		change.public = c.public
	}
	if c.price != nil {
		for _, i := range h.offers {
			said, ok := change.prices[i]
			if !ok {
				said.of = c.price
			}
			said.lightest = c.weight
			change.prices[i] = said
		}
	}
	if len(c.capacity) == 0 {
		return
	}
	for name, quantity := range c.capacity {
		if _, said := change.extra[name]; !said {
			change.extra[name] = quantity
		}
	}
	if change.lightest != c.weight || change.said == nil {
		change.said = corev1.ResourceList{}
	}
	change.said = with(change.said, c.capacity)
	change.lightest = c.weight
}
