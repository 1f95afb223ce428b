package planvalidator

import (
	"fmt"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

const (
	// typesMax is the maximum number of types of pods with a price each.
	typesMax = 120
	// distinct is the relative change of demands that keeps amounts of the basis above zero.
	distinct = 1e-6
	// limitUnit makes the coefficients of limits small: it is a core in the unit of toVector.
	limitUnit = 1000
)

// master is the linear program over the patterns so far. A row is a sum over pods that nodes must cover, a limit,
// or an existing node.
type master struct {
	program *linearProgram
	// rows are the coefficients of the types of pods in the rows that nodes must cover.
	rows [][]float64
	// rents are the rows of existing nodes by option.
	rents map[int]int

	simplex
}

// dualPrices are the prices of pods by type, of a unit of each limit, and of existing nodes by option.
type dualPrices struct {
	pods, limits []float64
	rents        map[int]float64
}

// costOf returns what a pattern of an option costs.
func (y *dualPrices) costOf(i int, o *nodeOption) float64 {
	return o.price + dot(o.usage, y.limits) + y.rents[i]
}

func (p *linearProgram) newMaster() *master {
	m := &master{program: p, rows: p.podRows(), rents: map[int]int{}}
	for i, o := range p.columns {
		if o.exists {
			m.rents[i] = len(m.rows) + len(p.limits) + len(m.rents)
		}
	}
	m.demand = make([]float64, len(m.rows)+len(p.limits)+len(m.rents))
	for r := range m.demand {
		m.addRow(r)
	}
	for r := range m.rows {
		m.addUnit(r, -1, 0) // nodes may cover more than the demand
	}
	for t := range p.types {
		m.addCheapest(t)
	}
	return m
}

// addRow sets the demand of a row and adds the column with which the method starts: units of a row of pods, for a
// price that none is worth, or the unused part of a limit or an existing node.
func (m *master) addRow(r int) {
	coefficient, cost := -1.0, 0.0
	switch limit := r - len(m.rows); {
	case limit < 0:
		least := math.Inf(1)
		for t, c := range m.rows[r] {
			m.demand[r] += c * float64(m.program.types[t].count)
			if c > 0 {
				least = min(least, c)
			}
		}
		for _, o := range m.program.columns {
			cost = max(cost, o.price/least)
		}
		coefficient = 1
	case limit < len(m.program.limits):
		m.demand[r] = -m.program.limits[limit] / limitUnit
	default:
		m.demand[r] = -1
	}
	m.start = append(m.start, m.addUnit(r, coefficient, cost))
	m.demand[r] += coefficient * distinct * (1 + float64(r)/float64(len(m.demand))) * (1 + math.Abs(m.demand[r]))
}

// addCheapest adds the offering that runs pods of one type at the lowest price for each.
func (m *master) addCheapest(t int) {
	best, least := pattern{}, math.Inf(1)
	for i := range m.program.columns {
		o := &m.program.columns[i]
		worth := make([]float64, len(m.program.types))
		worth[t] = 1
		k := m.program.newKnapsack(o, worth)
		if o.exists || len(k.items) == 0 || o.price/float64(k.items[0].most) >= least {
			continue
		}
		most := float64(k.items[0].most)
		best, least = pattern{option: i, pods: k.byType([]float64{most})}, o.price/most
	}
	if best.pods != nil {
		m.addPattern(best)
	}
}

func (m *master) addPattern(one pattern) {
	column := make([]float64, len(m.demand))
	for r, row := range m.rows {
		for t, n := range one.pods {
			column[r] += row[t] * n
		}
	}
	o := &m.program.columns[one.option]
	for l, used := range o.usage {
		column[len(m.rows)+l] = -used / limitUnit
	}
	if r, exists := m.rents[one.option]; exists {
		column[r] = -1
	}
	m.addColumn(column, o.price)
}

// worthOf returns the prices that follow from those of the rows.
func (m *master) worthOf(rows []float64) dualPrices {
	y := dualPrices{pods: make([]float64, len(m.program.types)), limits: make([]float64, len(m.program.limits)), rents: map[int]float64{}}
	for r, row := range m.rows {
		addScaled(y.pods, max(0, rows[r]), row)
	}
	for l := range y.limits {
		y.limits[l] = max(0, rows[len(m.rows)+l]) / limitUnit
	}
	for i, r := range m.rents {
		y.rents[i] = max(0, rows[r])
	}
	return y
}

// podRows returns the rows that nodes must cover. If there are few types of pods, these are the pods of each type.
// Otherwise they are the pods and the sums of their requests, for types of about equal CPU that may run on the
// same nodes.
func (p *linearProgram) podRows() [][]float64 {
	clusters := map[string]int{}
	var members [][]int
	for t, one := range p.types {
		id := strconv.Itoa(t)
		if len(p.types) > typesMax {
			id = p.clusterOf(one)
		}
		at, seen := clusters[id]
		if !seen {
			at = len(members)
			clusters[id] = at
			members = append(members, nil)
		}
		members[at] = append(members[at], t)
	}
	var rows [][]float64
	for _, types := range members {
		rows = append(rows, p.rowsOf(types)...)
	}
	return rows
}

// clusterOf is equal for types of about equal CPU that may run on the same nodes, use the same devices and belong to
// the same groups.
func (p *linearProgram) clusterOf(one podType) string {
	parts := []any{one.class, one.size[len(p.resources):]}
	for d, name := range p.resources {
		switch name {
		case corev1.ResourceCPU:
			parts = append(parts, math.Round(math.Log2(one.size[d])))
		case corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods:
		default:
			parts = append(parts, one.size[d])
		}
	}
	return fmt.Sprint(parts...)
}

// rowsOf returns the rows of types that share their prices.
func (p *linearProgram) rowsOf(types []int) [][]float64 {
	var rows [][]float64
	if len(types) <= len(p.resources) {
		for _, t := range types {
			row := make([]float64, len(p.types))
			row[t] = 1
			rows = append(rows, row)
		}
		return rows
	}
	for d := range p.resources {
		row, most := make([]float64, len(p.types)), 0.0
		for _, t := range types {
			most = max(most, p.types[t].size[d])
		}
		for _, t := range types {
			row[t] = p.types[t].size[d] / most
		}
		if most > 0 {
			rows = append(rows, row)
		}
	}
	return rows
}
