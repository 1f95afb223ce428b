package launchresult

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/event"
)

// The bounds of the refusals of one launch. A fleet has up to 300 overrides and EC2
// may answer with an error for each; the bus takes 256 KiB, and lifecycle writes the
// codes and messages into annotations, conditions and Events.
const (
	maxRefusals = 32
	// maxCodeBytes and maxMessage are in bytes.
	maxCodeBytes    = 128
	maxMessageBytes = 1 << 10
)

// MergeRefusals makes one refusal of those that have the code and the place in common, cuts
// long texts, and keeps at most 32 refusals, those that blame something first. The
// order of EC2's errors does not change the result.
func MergeRefusals(refusals []event.Refusal) []event.Refusal {
	ordered := slices.SortedStableFunc(slices.Values(refusals), compareRefusals)
	var out []event.Refusal
	for from := 0; from < len(ordered); {
		to := from + 1
		for to < len(ordered) && mergeKey(ordered[to]) == mergeKey(ordered[from]) {
			to++
		}
		out = append(out, joinRefusals(ordered[from:to]))
		from = to
	}
	slices.SortStableFunc(out, func(a, b event.Refusal) int { return cmp.Compare(refusalRank(a), refusalRank(b)) })
	return out[:min(len(out), maxRefusals)]
}

// mergeKey is what refusals have in common that become one.
func mergeKey(r event.Refusal) [4]string {
	return [4]string{r.Code, r.Subnet, r.PlacementGroup, r.Reservation}
}

func compareRefusals(a, b event.Refusal) int {
	placeA, placeB := mergeKey(a), mergeKey(b)
	return cmp.Or(slices.Compare(placeA[:], placeB[:]), strings.Compare(a.Message, b.Message))
}

// refusalRank puts refusals that make something unavailable before the others.
func refusalRank(r event.Refusal) int {
	if len(r.Blamed) > 0 || r.Subnet != "" || r.Reservation != "" {
		return 0
	}
	return 1
}

// joinRefusals makes one refusal of several from one place. Its message is the first of them,
// with the number of other messages.
func joinRefusals(same []event.Refusal) event.Refusal {
	out := same[0]
	out.Blamed = nil
	seen, others := map[event.Offering]bool{}, 0
	for i, r := range same {
		if i > 0 && r.Message != same[i-1].Message {
			others++
		}
		for _, o := range r.Blamed {
			if !seen[o] {
				seen[o], out.Blamed = true, append(out.Blamed, o)
			}
		}
	}
	slices.SortFunc(out.Blamed, func(a, b event.Offering) int {
		return cmp.Or(strings.Compare(a.InstanceType, b.InstanceType), strings.Compare(a.Zone, b.Zone), strings.Compare(a.CapacityType, b.CapacityType))
	})
	out.Code, out.Message = truncateMiddle(out.Code, maxCodeBytes), truncateMiddle(out.Message, maxMessageBytes)
	if others > 0 {
		out.Message += fmt.Sprintf(" (and %d similar messages)", others)
	}
	return out
}

// truncateMiddle cuts the middle out of a text that is longer than limit bytes: the start of
// an error says what failed, and the end says what to do.
func truncateMiddle(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const gap = " … "
	half := (limit - len(gap)) / 2
	return strings.ToValidUTF8(text[:half], "") + gap + strings.ToValidUTF8(text[len(text)-half:], "")
}
