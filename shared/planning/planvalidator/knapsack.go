package planvalidator

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

const (
	// stepsLeast is the number of steps of a search of a knapsack in the first rounds, and stepsMost in the last. The
	// bound of the search is valid also if it ends there.
	stepsLeast, stepsMost, stepsFactor = 2000, 200000, 10
	// bundlesMax is the maximum number of rounds of the relaxation of a knapsack.
	bundlesMax = 40
	// relaxEnough ends the relaxation when the relative distance to the best bound is at most this.
	relaxEnough = 1e-4
)

// knapsack is the search for the most valuable pods that fit on a nodeOption, by branch and bound.
type knapsack struct {
	items []item
	room  []float64
	// price is the price of each dimension, with which the free room bounds what pods add.
	price []float64
	// left are the steps that the search may still take.
	left int
	// now are the pods so far by item. best and found are the worth and the pods of the best set of pods.
	now   []float64
	best  float64
	found []float64
	types int
	// seen is the worth of the pods so far by index and room; key is reused.
	seen map[string]float64
	key  []byte
	// fractions are the best fractions of pods by type.
	fractions []float64
}

// item is a podType of which at least one pod fits.
type item struct {
	index  int
	most   int
	size   []float64
	profit float64
	// cost is the size at the prices of the dimensions, rate the profit per cost.
	cost, rate float64
	// surplus is the profit above the cost of all pods of this item and those after it.
	surplus float64
}

// newKnapsack returns the knapsack of an option, where a pod is worth the price of its type.
func (p *linearProgram) newKnapsack(o *nodeOption, worth []float64) *knapsack {
	k := &knapsack{room: slices.Clone(o.room), types: len(p.types)}
	for t, one := range p.types {
		if worth[t] <= 0 || !o.serves[one.class] {
			continue
		}
		if most := min(one.count, k.fitting(one.size)); most > 0 {
			k.items = append(k.items, item{index: t, most: most, size: one.size, profit: worth[t]})
		}
	}
	k.dropDimensions()
	return k
}

// dropDimensions drops dimensions of which no pods that fit in another dimension use more than there is.
func (k *knapsack) dropDimensions() {
	var kept []int
	for d := range k.room {
		kept = append(kept, d)
	}
	for d, room := range slices.Backward(k.room) {
		if k.largestUse(d, kept) <= room {
			kept = slices.DeleteFunc(kept, func(e int) bool { return e == d })
		}
	}
	k.room = pick(k.room, kept)
	for j := range k.items {
		k.items[j].size = pick(k.items[j].size, kept)
	}
}

// largestUse returns a bound of what pods use of a dimension if they fit in one of the others.
func (k *knapsack) largestUse(d int, others []int) float64 {
	least := 0.0
	for _, one := range k.items {
		least += float64(one.most) * one.size[d]
	}
	for _, e := range others {
		most := 0.0
		for _, one := range k.items {
			if one.size[d] > 0 {
				most = max(most, k.room[e]*one.size[d]/one.size[e])
			}
		}
		if e != d {
			least = min(least, most)
		}
	}
	return least
}

func pick(from []float64, at []int) []float64 {
	out := make([]float64, len(at))
	for i, d := range at {
		out[i] = from[d]
	}
	return out
}

// fitting returns how many pods of a size fit.
func (k *knapsack) fitting(size []float64) int {
	most := math.Inf(1)
	for d, s := range size {
		if s > 0 {
			most = min(most, k.room[d]/s)
		}
	}
	return int(min(most, math.MaxInt32))
}

// maximize returns a bound of the worth of pods that fit. It looks for sets of pods that are worth more than
// enough, and returns at least that.
func (k *knapsack) maximize(enough float64, steps int) float64 {
	k.best, k.left = enough, steps
	if len(k.items) == 0 {
		return enough
	}
	k.priceDimensions(enough)
	whole := k.items[0].surplus + k.valueOfRoom()
	if whole <= enough {
		return enough
	}
	k.dropDominated()
	k.now, k.seen = make([]float64, len(k.items)), map[string]float64{}
	k.search(0, 0)
	if k.left <= 0 {
		return max(k.best, whole)
	}
	return k.best
}

// priceDimensions computes the prices of the dimensions, and sorts the items by what they are worth at these.
func (k *knapsack) priceDimensions(enough float64) {
	price, fractions := k.relax(enough)
	k.price, k.fractions = price, k.byType(fractions)
	for j := range k.items {
		one := &k.items[j]
		one.cost = dot(one.size, k.price)
		one.rate = one.profit / one.cost
	}
	slices.SortStableFunc(k.items, func(a, b item) int { return cmp.Compare(b.rate, a.rate) })
	surplus := 0.0
	for j := len(k.items) - 1; j >= 0; j-- {
		surplus += float64(k.items[j].most) * max(0, k.items[j].profit-k.items[j].cost)
		k.items[j].surplus = surplus
	}
}

// relax returns the prices of the dimensions that bound the worth of fractions of pods best: the room at these
// prices, and what pods are worth above their cost. It also returns the best fractions of pods by item. Each round
// adds all pods that are worth more than they cost as a column of which at most one is taken. Prices that show that
// no pods are worth more than enough end it.
func (k *knapsack) relax(enough float64) (best, fractions []float64) {
	dims := len(k.room)
	// The room of each dimension is the unit of its row.
	lp := &simplex{demand: slices.Repeat([]float64{1}, dims+1)}
	for d := range lp.demand {
		lp.demand[d] += 1e-7 * float64(d)
		lp.start = append(lp.start, lp.addUnit(d, 1, 0))
	}
	var bundles [][]int
	price, least := make([]float64, dims), math.Inf(1)
	for range bundlesMax {
		bundle, column, worth, bound := k.bundleAbove(price)
		if bound < least {
			least, best = bound, price
		}
		if least <= enough {
			break
		}
		bundles = append(bundles, bundle)
		lp.addColumn(column, -worth)
		if err := lp.minimize(); err != nil || -lp.value() > least*(1-relaxEnough) {
			break
		}
		price = make([]float64, dims)
		for d := range price {
			price[d] = max(0, -lp.prices[d]) / k.room[d]
		}
	}
	fractions = make([]float64, len(k.items))
	for j, amount := range lp.amounts {
		if j <= dims {
			continue
		}
		for _, item := range bundles[j-dims-1] {
			fractions[item] += amount * float64(k.items[item].most)
		}
	}
	return best, fractions
}

// bundleAbove returns the items that are worth more than they cost, all their pods as a column with their worth, and
// the bound of what fits that follows from the prices.
func (k *knapsack) bundleAbove(price []float64) (bundle []int, column []float64, worth, bound float64) {
	column, bound = make([]float64, len(k.room)+1), dot(price, k.room)
	column[len(k.room)] = 1
	for i, one := range k.items {
		surplus := one.profit - dot(price, one.size)
		if surplus <= 0 {
			continue
		}
		bundle = append(bundle, i)
		worth += float64(one.most) * one.profit
		bound += float64(one.most) * surplus
		for d, s := range one.size {
			column[d] += float64(one.most) * s / k.room[d]
		}
	}
	return bundle, column, worth, bound
}

// dropDominated drops items that another item replaces in any number.
func (k *knapsack) dropDominated() {
	var kept []item
	for _, one := range k.items {
		if !slices.ContainsFunc(k.items, func(by item) bool { return k.replaces(by, one) }) {
			kept = append(kept, one)
		}
	}
	k.items = kept
}

// replaces reports whether an item is smaller than another, worth more, and enough for all room. Of equal items, the
// first replaces the others.
func (k *knapsack) replaces(by, one item) bool {
	if by.index == one.index || by.profit < one.profit || by.most < k.fitting(by.size) {
		return false
	}
	for d, s := range by.size {
		if s > one.size[d] {
			return false
		}
	}
	return by.profit > one.profit || !slices.Equal(by.size, one.size) || by.index < one.index
}

// valueOfRoom returns the price of the free room.
func (k *knapsack) valueOfRoom() float64 { return dot(k.room, k.price) }

// search extends the pods so far, which are worth an amount, by items from index j on.
func (k *knapsack) search(j int, worth float64) {
	if worth > k.best {
		k.best, k.found = worth, k.byType(k.now)
	}
	fits := 0
	for ; j < len(k.items); j++ {
		if fits = min(k.items[j].most, k.fitting(k.items[j].size)); fits > 0 {
			break
		}
	}
	if j == len(k.items) || k.hasSeen(j, worth) {
		return
	}
	one := &k.items[j]
	for n := fits; n >= 0 && k.left > 0; n-- {
		k.left--
		k.take(one, n)
		k.now[j] = float64(n)
		if k.canImprove(j+1, worth+float64(n)*one.profit) {
			k.search(j+1, worth+float64(n)*one.profit)
		}
		k.now[j] = 0
		k.take(one, -n)
	}
}

// hasSeen reports whether the search was here with the same room and pods that are worth as much.
func (k *knapsack) hasSeen(j int, worth float64) bool {
	k.key = binary.LittleEndian.AppendUint32(k.key[:0], uint32(j))
	for _, room := range k.room {
		k.key = binary.LittleEndian.AppendUint64(k.key, math.Float64bits(room))
	}
	if best, seen := k.seen[string(k.key)]; seen && best >= worth {
		return true
	}
	k.seen[string(k.key)] = worth
	return false
}

// canImprove reports whether items from index j on could improve the best worth.
func (k *knapsack) canImprove(j int, worth float64) bool {
	if j == len(k.items) {
		return worth > k.best
	}
	return worth+k.items[j].surplus+min(1, k.items[j].rate)*k.valueOfRoom() > k.best
}

func (k *knapsack) take(one *item, n int) {
	for d, s := range one.size {
		k.room[d] -= float64(n) * s
	}
}

// byType returns numbers of pods by type, given those by item.
func (k *knapsack) byType(items []float64) []float64 {
	out := make([]float64, k.types)
	for j, n := range items {
		out[k.items[j].index] = n
	}
	return out
}
