package launchresult

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/event"
)

// Limits of the refusals of one launch. A fleet has up to 300 overrides, and EC2 may
// return an error for each. The event bus accepts 256 KiB, and lifecycle writes codes and
// messages into annotations, conditions and Events.
const (
	maxRefusals     = 32
	maxCodeBytes    = 128
	maxMessageBytes = 1 << 10
)

// MergeRefusals merges refusals with the same code, subnet, placement group and reservation,
// truncates long texts, and keeps at most 32 refusals. Refusals that make something unavailable
// come first. The result does not depend on the order of EC2's errors.
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

// mergeKey returns a key that is equal for refusals to be merged.
func mergeKey(r event.Refusal) [4]string {
	return [4]string{r.Code, r.Subnet, r.PlacementGroup, r.Reservation}
}

func compareRefusals(a, b event.Refusal) int {
	keyA, keyB := mergeKey(a), mergeKey(b)
	return cmp.Or(slices.Compare(keyA[:], keyB[:]), strings.Compare(a.Message, b.Message))
}

// refusalRank sorts refusals that make something unavailable before the others.
func refusalRank(r event.Refusal) int {
	if len(r.Blamed) > 0 || r.Subnet != "" || r.Reservation != "" {
		return 0
	}
	return 1
}

// joinRefusals merges refusals with the same key. The message is the first one, followed
// by the number of other messages.
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

// truncateMiddle removes the middle of a text that is longer than limit bytes: the start of an
// error names the failure, and the end the fix.
func truncateMiddle(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const gap = " … "
	half := (limit - len(gap)) / 2
	return strings.ToValidUTF8(text[:half], "") + gap + strings.ToValidUTF8(text[len(text)-half:], "")
}
