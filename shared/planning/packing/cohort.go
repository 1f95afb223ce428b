package packing

import "slices"

// cohorts are all sets of parties that may use the same columns. There are few, because most columns
// of one pool are for the same parties.
type cohorts struct {
	parties []party
	list    []cohort
	// last is the index of the last cohort returned.
	last int
}

type cohort struct {
	who []int
	// most caches, by planes, the highest price of each resource among the parties that may use the
	// planes.
	most map[uint64][]float64
}

// of returns the cohort of some parties, and adds it if it is new.
func (c *cohorts) of(who []int) *cohort {
	if c.last < len(c.list) && slices.Equal(c.list[c.last].who, who) {
		return &c.list[c.last]
	}
	c.last = slices.IndexFunc(c.list, func(one cohort) bool { return slices.Equal(one.who, who) })
	if c.last < 0 {
		c.last = len(c.list)
		c.list = append(c.list, cohort{slices.Clone(who), map[uint64][]float64{}})
	}
	return &c.list[c.last]
}

// value returns the value of room in some planes if each resource goes to the party with the highest
// price.
func (c *cohorts) value(of *cohort, planes uint64, room []float64) float64 {
	most, known := of.most[planes]
	if !known {
		most = make([]float64, len(room))
		for _, i := range of.who {
			for r, price := range c.parties[i].prices {
				if c.parties[i].planes&planes != 0 {
					most[r] = max(most[r], price)
				}
			}
		}
		of.most[planes] = most
	}
	sum := 0.0
	for r, price := range most {
		sum += float64(price * room[r])
	}
	return sum
}
