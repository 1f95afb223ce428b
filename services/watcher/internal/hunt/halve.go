package hunt

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
)

// Halve is the hunt after a batch that could not be stored because it is too large: the
// next has half of its classes, and the other half comes after that. It returns false if
// the batch has no two classes: then what is beside the pods is too large, and no class
// is blamed.
func Halve(h outbox.Hunt, classes []uint64) (outbox.Hunt, bool) {
	if h.Probe {
		return h, false
	}
	parts := h.Parts
	if len(parts) == 0 {
		parts = []outbox.Span{everything}
	}
	in := within(h, parts[0], classes)
	if len(in) < 2 {
		return h, false
	}
	h.Parts = slices.Concat(halves(parts[0], in), parts[1:])
	return h, true
}
