package admission

import (
	"fmt"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// ledger sums the prices of claims, in the unit of planning.PriceResource. While the price of a
// claim is unknown, no launch is admitted that is subject to its pool's or the cluster's price
// limit.
type ledger struct {
	limit *float64
	all   int64
	pools map[string]int64
	// unknown names a claim without a known price for each pool, and anyUnknown one of any pool.
	unknown    map[string]string
	anyUnknown string
}

// newLedger sums the prices of the claims, and uses the plan's prices for claims without a price of
// their own. A claim that is being deleted counts until it is deleted.
func newLedger(limit *float64, claims []*karpenter.NodeClaim, plan planning.Plan) *ledger {
	l := &ledger{limit: limit, pools: map[string]int64{}, unknown: map[string]string{}}
	for _, c := range claims {
		pool := c.Labels[karpenter.NodePoolLabelKey]
		if price, known := ClaimPrice(c, plan); known {
			l.addPrice(pool, price)
		} else {
			l.unknown[pool], l.anyUnknown = c.Name, c.Name
		}
	}
	return l
}

// ClaimPrice returns the price that a claim counts for, in microdollars per hour: its instance's
// price, else its launch's ceiling, else, for claims that are not Joist's, the price in the plan.
func ClaimPrice(c *karpenter.NodeClaim, plan planning.Plan) (micro int64, known bool) {
	if price, ok := planning.ReadPrice(c); ok {
		return planning.PriceToMicrodollars(price)
	}
	ceiling := launchspec.ReadCeiling(c)
	if price, ok := ceiling[planning.PriceResource]; ok {
		return price.Value(), true
	}
	price, ok := plan.Prices[c.Name]
	if !ok {
		return 0, false
	}
	return planning.PriceToMicrodollars(price)
}

func (l *ledger) addPrice(pool string, price int64) {
	l.all += price
	l.pools[pool] += price
}

// plannedPrice returns the highest price of the intent's claims that do not exist yet.
func plannedPrice(intent planning.PlannedIntent, exists map[string]bool) (sum int64, known bool) {
	known = true
	for _, c := range intent.Claims {
		if exists[c.Object.Name] {
			continue
		}
		price, ok := c.Ceiling[planning.PriceResource]
		sum, known = sum+price.Value(), known && ok
	}
	return sum, known
}

// refusalReason returns why an intent may not be admitted because of its price, or "".
func (l *ledger) refusalReason(intent planning.PlannedIntent, pool *karpenter.NodePool, exists map[string]bool) string {
	limit, err := policy.ReadPriceLimit(pool.Annotations)
	if err != nil {
		return "the NodePool's " + err.Error()
	}
	if limit == nil && l.limit == nil {
		return ""
	}
	price, known := plannedPrice(intent, exists)
	unknown := l.unknown[pool.Name]
	if l.limit != nil {
		unknown = l.anyUnknown
	}
	switch {
	case !known:
		return "a price limit applies, and the plan does not state the price of these nodes"
	case unknown != "":
		return fmt.Sprintf("a price limit applies, and the price of NodeClaim %s is unknown: write it as its annotation %s", unknown, planning.PriceAnnotation)
	case limit != nil && price > 0 && l.pools[pool.Name]+price > planning.LimitToMicrodollars(*limit):
		return describeExcess(policy.PriceLimit, *limit, l.pools[pool.Name]+price)
	case l.limit != nil && price > 0 && l.all+price > planning.LimitToMicrodollars(*l.limit):
		return describeExcess("the cluster's price limit", *l.limit, l.all+price)
	}
	return ""
}

// fitsLimits reports whether the claims that exist are within the price limits of their pool and of the cluster.
func (l *ledger) fitsLimits(name string, pool *karpenter.NodePool) bool {
	limit, err := policy.ReadPriceLimit(pool.Annotations)
	if err != nil || limit != nil && l.pools[name] > planning.LimitToMicrodollars(*limit) {
		return false
	}
	return l.limit == nil || l.all <= planning.LimitToMicrodollars(*l.limit)
}

func describeExcess(name string, limit float64, sum int64) string {
	return fmt.Sprintf("%s of $%g an hour would be exceeded: $%.4f with this intent", name, limit, float64(sum)/1e6)
}
