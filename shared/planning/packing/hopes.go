package packing

// hope is what a candidate may score.
type hope struct {
	score float64
	offer int
}

// hopes are a heap, the highest first; of equal ones, the candidate that was offered
// first.
type hopes []hope

// Len is part of heap.Interface, as are the others.
func (h hopes) Len() int { return len(h) }

// Less puts the higher hope first.
func (h hopes) Less(i, j int) bool {
	return h[i].score > h[j].score || h[i].score == h[j].score && h[i].offer < h[j].offer
}

// Swap exchanges two.
func (h hopes) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push adds a hope.
func (h *hopes) Push(x any) { *h = append(*h, x.(hope)) }

// Pop takes the last one off.
func (h *hopes) Pop() any {
	last := len(*h) - 1
	out := (*h)[last]
	*h = (*h)[:last]
	return out
}
