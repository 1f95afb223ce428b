package packing

// hope is the upper limit of a candidate's score.
type hope struct {
	score float64
	offer int
}

// hopes is a heap, the highest score first; of equal scores, the candidate that was offered first.
type hopes []hope

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (h hopes) Len() int { return len(h) }

// Less sorts by score, the highest first.
func (h hopes) Less(i, j int) bool {
	return h[i].score > h[j].score || h[i].score == h[j].score && h[i].offer < h[j].offer
}

// Swap swaps two hopes.
func (h hopes) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push adds a hope.
func (h *hopes) Push(x any) { *h = append(*h, x.(hope)) }

// Pop removes the last hope.
func (h *hopes) Pop() any {
	last := len(*h) - 1
	out := (*h)[last]
	*h = (*h)[:last]
	return out
}
