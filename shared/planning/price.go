package planning

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

// PriceAnnotation is the planned price, on a NodeClaim, of the offering that EC2 chose, in US dollars an
// hour. Limits count this price until the node is gone. The current spot price is not used: when it
// rises, a limit could be exceeded without any launch. A user may write the annotation on a NodeClaim
// whose price is unknown.
const PriceAnnotation = "joist.sh/price-per-hour"

// maxMicrodollars is the largest price. Sums of several hundred of them fit in an int64.
const maxMicrodollars = int64(1) << 54

// PriceToMicrodollars returns a price in US dollars in the unit of PriceResource, rounded up; false if
// it is not a valid price.
func PriceToMicrodollars(perHour float64) (int64, bool) {
	const noise = 1e-3 // Binary 0.1 is slightly above a tenth of a dollar.
	if !(perHour >= 0) {
		return 0, false
	}
	return int64(max(0, min(math.Ceil(perHour*1e6-noise), float64(maxMicrodollars)))), true
}

// LimitToMicrodollars returns a price limit in US dollars in the unit of PriceResource, rounded down.
func LimitToMicrodollars(perHour float64) int64 {
	const noise = 1e-3
	return int64(max(0, min(math.Floor(perHour*1e6+noise), float64(maxMicrodollars))))
}

// PriceQuantity returns a price as a quantity of PriceResource; false if it is not a valid price.
func PriceQuantity(perHour float64) (resource.Quantity, bool) {
	price, ok := PriceToMicrodollars(perHour)
	return *resource.NewQuantity(price, resource.DecimalSI), ok
}

// FormatPrice returns the value of a PriceAnnotation.
func FormatPrice(perHour float64) string { return strconv.FormatFloat(perHour, 'f', -1, 64) }

// ReadPrice returns the PriceAnnotation of a NodeClaim; false if it is missing or invalid.
func ReadPrice(claim *karpenter.NodeClaim) (perHour float64, known bool) {
	v, err := strconv.ParseFloat(claim.Annotations[PriceAnnotation], 64)
	return v, err == nil && v >= 0 && !math.IsInf(v, 1)
}

// HighestPrice returns the highest price of the offerings, in US dollars an hour.
func HighestPrice(options []PricedOffering) float64 {
	out := 0.0
	for i := range options {
		out = max(out, options[i].PricePerHour)
	}
	return out
}
