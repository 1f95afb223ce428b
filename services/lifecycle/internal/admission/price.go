package admission

import (
	"fmt"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// ledger is what claims cost, in the unit of scheduling.PriceResource. Who cannot
// count does not spend: while the price of a claim is not known, its pool launches
// nothing that is limited, and neither does a cluster that is.
type ledger struct {
	limit *float64
	all   int64
	pools map[string]int64
	// unknown names a claim of each pool whose price is not known, and stranger one of
	// any pool.
	unknown  map[string]string
	stranger string
}

// newLedger counts claims, by themselves and by what the plan knows of those that do
// not say what they cost. A claim that is being deleted counts until it is gone.
func newLedger(limit *float64, claims []*karpenter.NodeClaim, plan planning.Plan) *ledger {
	l := &ledger{limit: limit, pools: map[string]int64{}, unknown: map[string]string{}}
	for _, c := range claims {
		pool := c.Labels[karpenter.NodePoolLabelKey]
		if price, known := ClaimPrice(c, plan); known {
			l.add(pool, price)
		} else {
			l.unknown[pool], l.stranger = c.Name, c.Name
		}
	}
	return l
}

// ClaimPrice is what a claim counts for where money is limited: what its instance was
// bought for, and until that is written down the most that its launch may cost. Claims
// that say neither, which are not Joist's, cost what the plan was made with.
func ClaimPrice(c *karpenter.NodeClaim, plan planning.Plan) (micro int64, known bool) {
	if price, ok := planning.PriceOf(c); ok {
		return planning.Microdollars(price)
	}
	ceiling := ceilingOf(c)
	if price, ok := ceiling[planning.PriceResource]; ok {
		return price.Value(), true
	}
	price, ok := plan.Prices[c.Name]
	if !ok {
		return 0, false
	}
	return planning.Microdollars(price)
}

func (l *ledger) add(pool string, price int64) {
	l.all += price
	l.pools[pool] += price
}

// asked is what the claims of an intent, as far as they do not exist, may cost.
func asked(intent planning.PlannedIntent, exists map[string]bool) (sum int64, known bool) {
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

// refuse says why an intent may not pass for what it costs, or "".
func (l *ledger) refuse(intent planning.PlannedIntent, pool *karpenter.NodePool, exists map[string]bool) string {
	limit, err := policy.ReadPriceLimit(pool.Annotations)
	if err != nil {
		return "the NodePool's " + err.Error()
	}
	if limit == nil && l.limit == nil {
		return ""
	}
	price, known := asked(intent, exists)
	unknown := l.unknown[pool.Name]
	if l.limit != nil {
		unknown = l.stranger
	}
	switch {
	case !known:
		return "what nodes cost is limited, and the plan does not say what these may"
	case unknown != "":
		return fmt.Sprintf("what nodes cost is limited, and the price of NodeClaim %s is not known: write it there as %s", unknown, planning.PriceAnnotation)
	case limit != nil && price > 0 && l.pools[pool.Name]+price > planning.PriceLimit(*limit):
		return over(policy.PriceLimit, *limit, l.pools[pool.Name]+price)
	case l.limit != nil && price > 0 && l.all+price > planning.PriceLimit(*l.limit):
		return over("the cluster's price limit", *l.limit, l.all+price)
	}
	return ""
}

func over(name string, limit float64, sum int64) string {
	return fmt.Sprintf("%s of $%g an hour would be exceeded: $%.4f with this intent", name, limit, float64(sum)/1e6)
}
