package market

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/catalog"
)

// Warnings say of each part that is not as fresh as it should be how old it is,
// why, and what a person can do.
func Warnings(s State, b Book, off Offline, p Policy, now time.Time) []string {
	var out []string
	for _, e := range schedule {
		why := p.why(e, s.Readings[e.Name], off.Region)
		if why == "" {
			continue
		}
		out = append(out, Short(e.carries+": "+stand(e, s.Readings[e.Name], b, off, now)+", because "+why))
	}
	return out
}

// why is empty for a part that was read as it should be, or is not wanted.
func (p Policy) why(e entry, r Reading, region string) string {
	switch {
	case e.Name == Shifts && !p.Shifts:
		return ""
	case !p.reads(e.Name) && p.Isolated:
		return "ISOLATED_VPC is set, so that " + e.action + " is not called"
	case !p.reads(e.Name):
		return "the AWS Price List has no endpoint in partition " + catalog.Partition(region)
	case r.Kind == "":
		return ""
	}
	return fmt.Sprintf("%s is %s (try: %s)", e.action, cmp.Or(failed[string(r.Kind)], "failing"), cmp.Or(r.Hint, "look at this: "+r.Error))
}

// failed says kinds of faults after "is".
var failed = map[string]string{"denied": "denied", "throttled": "throttled", "invalid": "refused", "retry": "out of reach"}

// stand says what stands in for a part.
func stand(e entry, r Reading, b Book, off Offline, now time.Time) string {
	switch {
	case e.Name == Shifts && r.At.IsZero():
		return "not known, and no zone is avoided for one"
	case !b.since(e.Name).IsZero() || e.Name == Shifts:
		return "those of " + r.At.UTC().Format(time.RFC3339) + ", " + old(now.Sub(r.At))
	case e.Name == Zones && len(b.Offerings.Items) > 0:
		return "those that the history of spot prices has"
	case e.Name == Spot && len(off.Spot) == 0:
		return "taken for the on-demand prices"
	case len(off.Offerings) == 0 && e.Name == Offerings:
		return "not known"
	}
	text := "the embedded ones of " + off.AsOf.Format(time.DateOnly) + ", " + old(now.Sub(off.AsOf))
	if off.Borrowed && e.Name == OnDemand {
		text += ", of another region"
	}
	return text
}

func old(age time.Duration) string {
	if age < 48*time.Hour {
		return age.Round(time.Minute).String() + " old"
	}
	return fmt.Sprintf("%d days old", int(age.Hours()/24))
}

// warningMax bounds a warning in bytes: six of them travel in one message.
const warningMax = 400

// Short cuts a text to what a warning may be.
func Short(text string) string {
	if len(text) <= warningMax {
		return text
	}
	return strings.ToValidUTF8(text[:warningMax], "") + "…"
}
