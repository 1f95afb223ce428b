package sim

import (
	"strconv"
	"strings"

	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
)

// money is what may be spent, in US dollars an hour; nil is no limit.
type money struct {
	pool, cluster *float64
	// dearest and cheapest are what the types of the pool cost at most and at least.
	dearest, cheapest float64
}

// noise is what sums of prices may be off by.
const noise = 1e-9

// withinMoney: what runs costs no more than the limits, at any instant. It counts what
// was launched, by what it was bought for.
func (c *checker) withinMoney(records []memcloud.Record) {
	sum := spent(records)
	for name, limit := range map[string]*float64{"the pool": c.money.pool, "the cluster": c.money.cluster} {
		if limit == nil {
			continue
		}
		if sum > *limit+noise {
			c.violate("no price limit is exceeded", "%s costs %s dollars an hour, and %g is its limit", name, strconv.FormatFloat(sum, 'f', 4, 64), *limit)
		}
	}
	if c.money.left(sum) < 2*c.money.cheapest {
		c.reached["money is short"] = 1
	}
}

// spent is what all instances cost that are not gone. There is one pool.
func spent(records []memcloud.Record) (sum float64) {
	for _, r := range records {
		if r.Gone.IsZero() {
			sum += r.PricePerHour
		}
	}
	return sum
}

// left is what may be spent beside so much; without a limit there is always enough.
func (m money) left(sum float64) float64 {
	out := m.dearest
	for _, limit := range []*float64{m.pool, m.cluster} {
		if limit != nil {
			out = min(out, *limit-sum)
		}
	}
	return out
}

// prices looks up what the pool's types cost.
func (m *money) prices(c *checker) {
	for _, t := range c.world.Catalogue.Types {
		family, size, _ := strings.Cut(t.Name, ".")
		if !strings.Contains(" t4g m6g c6g ", " "+family+" ") || !strings.Contains(" medium large xlarge ", " "+size+" ") {
			continue
		}
		for _, o := range t.Offerings {
			m.dearest = max(m.dearest, o.PricePerHour)
			if o.Priced() && (m.cheapest == 0 || o.PricePerHour < m.cheapest) {
				m.cheapest = o.PricePerHour
			}
		}
	}
}
