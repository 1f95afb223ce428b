package scheduling

import (
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// PriceResource is the price of a node in millionths of a US dollar an hour, as a resource
// like cpu and memory, so that limits on it work like other limits. It appears in the
// ceiling of a NodeClaim that is not launched, and never in a capacity, a request or a
// status.
const PriceResource corev1.ResourceName = "joist.sh/microdollars-per-hour"

// PriceAnnotation of a NodeClaim is the planned price of the offering that EC2 chose, in US
// dollars an hour. Limits count this price until the node is gone. The current spot price is
// not used: when it rises, a limit could be exceeded without any launch. A person may write
// the annotation on a NodeClaim whose price is unknown.
const PriceAnnotation = "joist.sh/price-per-hour"

// Microdollars is a price in the unit of PriceResource, rounded up; false where it is
// no price.
func Microdollars(perHour float64) (int64, bool) {
	const noise = 1e-3 // A tenth of a dollar is a little more than that in binary.
	if !(perHour >= 0) {
		return 0, false
	}
	return int64(max(0, min(math.Ceil(perHour*1e6-noise), float64(most)))), true
}

// PriceLimit is a limit on what nodes cost, in the unit of PriceResource, rounded
// down.
func PriceLimit(perHour float64) int64 {
	const noise = 1e-3
	return int64(max(0, min(math.Floor(perHour*1e6+noise), float64(most))))
}

// PriceQuantity is a price as it stands in a ceiling; false where it is no price.
func PriceQuantity(perHour float64) (resource.Quantity, bool) {
	price, ok := Microdollars(perHour)
	return *resource.NewQuantity(price, resource.DecimalSI), ok
}

// FormatPrice writes a PriceAnnotation.
func FormatPrice(perHour float64) string { return strconv.FormatFloat(perHour, 'f', -1, 64) }

// PriceOf reads the PriceAnnotation of a claim; false where it has none that is one.
func PriceOf(claim *karpenter.NodeClaim) (perHour float64, known bool) {
	v, err := strconv.ParseFloat(claim.Annotations[PriceAnnotation], 64)
	return v, err == nil && v >= 0 && !math.IsInf(v, 1)
}

// Dearest is the most that any of the options costs, in US dollars an hour.
func Dearest(options []Option) float64 {
	out := 0.0
	for i := range options {
		out = max(out, options[i].PricePerHour)
	}
	return out
}

// billed is the price that a node counts for in price limits; false if it is unknown. It is
// the price of the launched offering, and before the launch the highest price that the
// launch allows. A node with neither, such as one of Karpenter's, counts with the current
// price of its offering, or with the highest price of its type if the offering is gone.
func (b *bills) billed(n *Node) (int64, bool) {
	if n.PricePerHour > 0 {
		return Microdollars(n.PricePerHour)
	}
	if price, ok := n.Capacity[PriceResource]; ok {
		return integer(PriceResource, price), true
	}
	price, known := b.listed(n)
	if !known {
		return 0, false
	}
	return Microdollars(price)
}

// listed is what the stock asks for a node like this, in US dollars an hour.
func (b *bills) listed(n *Node) (price float64, known bool) {
	t := b.typeOf(n)
	if t == nil {
		return 0, false
	}
	reservation := n.Labels[karpenter.LabelCapacityReservationID]
	for i := range t.Offers {
		o := &t.Offers[i]
		if !(o.PricePerHour > 0) || math.IsInf(o.PricePerHour, 1) {
			continue
		}
		if o.Zone == n.Labels[corev1.LabelTopologyZone] && o.CapacityType == n.Labels[karpenter.CapacityTypeLabelKey] &&
			(o.Reservation == "" || o.Reservation == reservation) {
			return o.PricePerHour, true
		}
		price, known = max(price, o.PricePerHour), true
	}
	return price, known
}

// typeOf finds a node's type, as its own pool and class have it if they do.
func (b *bills) typeOf(n *Node) *Type {
	name, class := n.Labels[corev1.LabelInstanceTypeStable], n.Labels[karpenter.LabelEC2NodeClass]
	if t := b.types(n.NodePool, class)[name]; t != nil {
		return t
	}
	for _, class := range sortedClasses(b.stock) {
		if t := b.types("", class)[name]; t != nil {
			return t
		}
	}
	return nil
}

// types are those of a pool and class, by name.
func (b *bills) types(pool, class string) map[string]*Type {
	at := [2]string{pool, class}
	if got, ok := b.known[at]; ok {
		return got
	}
	types, out := b.stock.TypesOf(pool, class), map[string]*Type{}
	for i := range types {
		out[types[i].Name] = &types[i]
	}
	b.known[at] = out
	return out
}
