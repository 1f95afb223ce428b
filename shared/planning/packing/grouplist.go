package packing

import "math"

// blockSize is how many pod groups of a list are skipped at once.
const blockSize = 16

// groupList is the pod groups of an option that mainly need one dimension, in stage order. Nodes are filled from the most
// valuable pod on, so each node would pass all pods that are placed already or too large for the rest of the node. The list
// skips blocks of them.
type groupList struct {
	groups []int32
	// least has the smallest request in each dimension of each block's unplaced pods, as of the last time that the block was
	// read; 0 before that. Pods are only placed, so it never exceeds the current one.
	least []int64
}

// countUnfit returns how many pod groups from a position on are in blocks of which no pod fits into free. It is 0 within a
// block.
func (l *groupList) countUnfit(s *stage, from int, free []int64) int {
	at := from
	for at%blockSize == 0 && at < len(l.groups) && !l.mayFit(s, at, free) {
		at = min(at+blockSize, len(l.groups))
	}
	return at - from
}

// mayFit reports whether the smallest requests of the block at a position fit into free. It is true if a pod of the
// block fits.
func (l *groupList) mayFit(s *stage, at int, free []int64) bool {
	dims := len(free)
	least := l.least[at/blockSize*dims:][:dims]
	if !fitsInto(least, free) {
		return false
	}
	for r := range least {
		least[r] = math.MaxInt64
	}
	for _, i := range l.groups[at:min(at+blockSize, len(l.groups))] {
		if s.unplaced[i] == 0 {
			continue
		}
		for r, need := range s.requests[int(i)*dims:][:dims] {
			least[r] = min(least[r], need)
		}
	}
	return fitsInto(least, free)
}
