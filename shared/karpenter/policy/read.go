package policy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	// The time zone database is embedded, so that zones do not depend on where the services run.
	_ "time/tzdata"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// reader reads annotations and collects problems. An absent annotation gives the zero value.
type reader struct {
	annotations map[string]string
	// names are the names that were looked up.
	names []string
	// hasPolicy means that one of them was present.
	hasPolicy bool
	problems  []error
}

// lookup returns the value of an annotation, and whether it is present.
func (r *reader) lookup(name string) (string, bool) {
	text, ok := r.annotations[name]
	r.names = append(r.names, name)
	r.hasPolicy = r.hasPolicy || ok
	return text, ok
}

// quotedMax is the maximum number of bytes of a quoted value: conditions and Events are limited in size, and
// annotations may be large.
const quotedMax = 64

func (r *reader) reportInvalid(name, want string) {
	r.problems = append(r.problems, fmt.Errorf("annotation %s is %q: use %s, or remove it", name, fault.Truncate(r.annotations[name], quotedMax), want))
}

func (r *reader) readDollars(name string) float64 {
	text, ok := r.lookup(name)
	if !ok {
		return 0
	}
	v, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	if err != nil || v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		r.reportInvalid(name, `US dollars such as "0.05"`)
		return 0
	}
	return v
}

func (r *reader) readPercent(name string) float64 {
	text, ok := r.lookup(name)
	if !ok {
		return 0
	}
	v, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || math.IsNaN(v) || v < 0 || v > 100 {
		r.reportInvalid(name, `a percentage such as "10%"`)
		return 0
	}
	return v / 100
}

func (r *reader) readDuration(name string) time.Duration {
	text, ok := r.lookup(name)
	if !ok {
		return 0
	}
	v, err := time.ParseDuration(text)
	if err != nil || v < 0 {
		r.reportInvalid(name, `a duration such as "30m" or "2h"`)
		return 0
	}
	return v
}

func (r *reader) readTime(name string) time.Time {
	text, ok := r.lookup(name)
	if !ok {
		return time.Time{}
	}
	v, err := time.Parse(time.RFC3339, text)
	if err != nil {
		r.reportInvalid(name, `a time such as "2026-01-31T12:00:00Z"`)
	}
	return v.UTC()
}

func (r *reader) readWord(name string, words ...string) string {
	text, ok := r.lookup(name)
	if ok && !slices.Contains(words, text) {
		r.reportInvalid(name, strings.Join(words, " or "))
		return ""
	}
	return text
}

func (r *reader) readZone(name string) *time.Location {
	text, ok := r.lookup(name)
	if !ok {
		return nil
	}
	zone, err := time.LoadLocation(text)
	if err != nil || text == "" || text == "Local" {
		r.reportInvalid(name, `an IANA time zone such as "Europe/Berlin"`)
		return nil
	}
	return zone
}

func (r *reader) readShare(name string) Share {
	text, ok := r.lookup(name)
	if !ok {
		return Share{}
	}
	if digits, percent := strings.CutSuffix(text, "%"); percent {
		if v, err := strconv.Atoi(digits); err == nil && v >= 0 && v <= 100 {
			return Share{isSet: true, percent: v}
		}
	} else if v, err := strconv.Atoi(text); err == nil && v >= 0 {
		return Share{isSet: true, number: v}
	}
	r.reportInvalid(name, `a number or a percentage such as "2" or "10%"`)
	return Share{}
}

// Share is a number, or a percentage of a number that is known later.
type Share struct {
	isSet           bool
	number, percent int
}

// IsSet reports whether the annotation is present.
func (s Share) IsSet() bool { return s.isSet }

// Text returns the share as it is written; "" if it is not set.
func (s Share) Text() string {
	switch {
	case !s.isSet:
		return ""
	case s.percent > 0:
		return strconv.Itoa(s.percent) + "%"
	default:
		return strconv.Itoa(s.number)
	}
}

// CountOf returns the share of all as a number. Percentages are rounded up, like those of budgets, so that small
// pools can be disrupted at all.
func (s Share) CountOf(all int) int {
	if s.percent > 0 {
		return (all*s.percent + 99) / 100
	}
	return s.number
}
