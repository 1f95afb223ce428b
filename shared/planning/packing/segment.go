package packing

import "slices"

// segment is a group of pods that may use the same candidates in the same zone-capacity types, with
// its shadow prices.
type segment struct {
	candidates        Set
	zoneCapacityTypes uint64
	// demand and prices are by dimension; the last entry is for nodes.
	demand, prices []float64
	bound          float64
}

// segmentSets are all sets of segments that may use the same candidates. There are few, because
// most candidates of one pool are for the same segments.
type segmentSets struct {
	segments []segment
	list     []segmentSet
	// last is the index of the last set returned.
	last int
}

type segmentSet struct {
	members []int
	// highestPrices caches, by zone-capacity types, the highest price of each resource among the
	// segments that may use the zone-capacity types.
	highestPrices map[uint64][]float64
}

// find returns the set of some segments, and adds it if it is new.
func (l *segmentSets) find(members []int) *segmentSet {
	if l.last < len(l.list) && slices.Equal(l.list[l.last].members, members) {
		return &l.list[l.last]
	}
	l.last = slices.IndexFunc(l.list, func(one segmentSet) bool { return slices.Equal(one.members, members) })
	if l.last < 0 {
		l.last = len(l.list)
		l.list = append(l.list, segmentSet{slices.Clone(members), map[uint64][]float64{}})
	}
	return &l.list[l.last]
}

// valueOf returns the value of a capacity in some zone-capacity types if each resource goes to the
// segment with the highest price.
func (l *segmentSets) valueOf(set *segmentSet, zoneCapacityTypes uint64, capacity []float64) float64 {
	most, known := set.highestPrices[zoneCapacityTypes]
	if !known {
		most = make([]float64, len(capacity))
		for _, i := range set.members {
			for r, price := range l.segments[i].prices {
				if l.segments[i].zoneCapacityTypes&zoneCapacityTypes != 0 {
					most[r] = max(most[r], price)
				}
			}
		}
		set.highestPrices[zoneCapacityTypes] = most
	}
	sum := 0.0
	for r, price := range most {
		sum += float64(price * capacity[r])
	}
	return sum
}
