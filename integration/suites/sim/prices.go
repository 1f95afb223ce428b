package sim

import (
	"strconv"
	"strings"

	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
)

// priceLimits are the price limits in US dollars per hour; nil is no limit.
type priceLimits struct {
	pool, cluster *float64
	// highest and lowest are the prices of the most and least expensive type of the NodePool.
	highest, lowest float64
}

// priceTolerance is the rounding error of sums of prices.
const priceTolerance = 1e-9

// checkPriceLimits checks that the prices at which instances were launched are within the limits.
func (c *checker) checkPriceLimits(records []memcloud.Record) {
	sum := sumPrices(records)
	for name, limit := range map[string]*float64{"the pool": c.prices.pool, "the cluster": c.prices.cluster} {
		if limit == nil {
			continue
		}
		if sum > *limit+priceTolerance {
			c.reportViolation("no price limit is exceeded", "%s costs $%s per hour, and the limit is $%g", name, strconv.FormatFloat(sum, 'f', 4, 64), *limit)
		}
	}
	if c.prices.remainingPrice(sum) < 2*c.prices.lowest {
		c.occurrences["price limit nearly reached"] = 1
	}
}

// sumPrices sums the prices of all instances that are not terminated. There is one NodePool.
func sumPrices(records []memcloud.Record) (sum float64) {
	for i := range records {
		if records[i].Gone.IsZero() {
			sum += records[i].PricePerHour
		}
	}
	return sum
}

// remainingPrice returns what may still be spent; without a limit the highest price.
func (m priceLimits) remainingPrice(sum float64) float64 {
	out := m.highest
	for _, limit := range []*float64{m.pool, m.cluster} {
		if limit != nil {
			out = min(out, *limit-sum)
		}
	}
	return out
}

// readPrices reads the prices of the NodePool's types.
func (m *priceLimits) readPrices(c *checker) {
	for _, t := range c.world.Catalogue.Types {
		family, size, _ := strings.Cut(t.Name, ".")
		if !strings.Contains(" t4g m6g c6g ", " "+family+" ") || !strings.Contains(" medium large xlarge ", " "+size+" ") {
			continue
		}
		for _, o := range t.Offerings {
			m.highest = max(m.highest, o.PricePerHour)
			if o.HasPrice() && (m.lowest == 0 || o.PricePerHour < m.lowest) {
				m.lowest = o.PricePerHour
			}
		}
	}
}
