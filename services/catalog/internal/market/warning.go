package market

import (
	"cmp"
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// ListWarnings returns a warning for each part that is outdated or replaced. It has the
// part's age, the reason and a fix.
func ListWarnings(s State, b CachedParts, off Offline, p Policy, now time.Time) []string {
	var out []string
	for _, e := range schedule {
		why := p.explainStale(e, s.Readings[e.PartName], off.Region)
		if why == "" {
			continue
		}
		out = append(out, TruncateWarning(e.content+": "+describeFallback(e, s.Readings[e.PartName], b, off, now)+", because "+why))
	}
	return out
}

// explainStale returns why a part was not read; empty if it was read or is not needed.
func (p Policy) explainStale(e partSchedule, r Reading, region string) string {
	switch {
	case e.PartName == Shifts && !p.Shifts:
		return ""
	case !p.canRead(e.PartName) && p.Isolated:
		return "ISOLATED_VPC is set and Joist does not call " + e.action
	case !p.canRead(e.PartName):
		return "the AWS Price List has no endpoint in partition " + catalog.Partition(region)
	case r.Kind == "":
		return ""
	}
	detail := r.Error
	if r.Hint != "" {
		detail = "try: " + r.Hint
	}
	return fmt.Sprintf("%s is %s (%s)", e.action, cmp.Or(failureWords[string(r.Kind)], "failing"), detail)
}

// failureWords has a word for each kind of error, to follow "is".
var failureWords = map[string]string{"denied": "denied", "throttled": "throttled", "invalid": "rejected", "retry": "out of reach"}

// describeFallback describes the data that replaces a part.
func describeFallback(e partSchedule, r Reading, b CachedParts, off Offline, now time.Time) string {
	switch {
	case e.PartName == Shifts && r.At.IsZero():
		return "unknown, and no zone is avoided"
	case !b.changedAt(e.PartName).IsZero() || e.PartName == Shifts:
		return "using data of " + r.At.UTC().Format(time.RFC3339) + ", " + formatAge(now.Sub(r.At))
	case e.PartName == Zones && len(b.Offerings.Items) > 0:
		return "using those in the spot price history"
	case e.PartName == Spot && len(off.Spot) == 0:
		return "using on-demand prices"
	case len(off.Offerings) == 0 && e.PartName == Offerings:
		return "unknown"
	}
	text := "using the embedded ones of " + off.AsOf.Format(time.DateOnly) + ", " + formatAge(now.Sub(off.AsOf))
	if off.FromOtherRegion && e.PartName == OnDemand {
		text += ", of another region"
	}
	return text
}

func formatAge(age time.Duration) string {
	if age < 48*time.Hour {
		return age.Round(time.Minute).String() + " old"
	}
	return fmt.Sprintf("%d days old", int(age.Hours()/24))
}

// warningMax is the maximum size of a warning in bytes. One message may have six warnings.
const warningMax = 400

// TruncateWarning cuts a text to warningMax bytes.
func TruncateWarning(text string) string { return fault.Truncate(text, warningMax) }
