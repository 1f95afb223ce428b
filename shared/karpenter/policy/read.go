package policy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	// A time zone means the same wherever the services run: the database is built in.
	_ "time/tzdata"
)

// reader reads annotations and collects what is wrong with them. What is not there
// is the zero value.
type reader struct {
	annotations map[string]string
	// known are the names that were looked for.
	known []string
	// asked says that one of them was there.
	asked    bool
	problems []error
}

// text is what an annotation says, if it is there.
func (r *reader) text(name string) (string, bool) {
	text, ok := r.annotations[name]
	r.known = append(r.known, name)
	r.asked = r.asked || ok
	return text, ok
}

// quotedMost is how much of a text is told again, in bytes: conditions and Events are
// of bounded size, and annotations nearly are not.
const quotedMost = 64

func (r *reader) wrong(name, want string) {
	r.problems = append(r.problems, fmt.Errorf("annotation %s is %q: write %s, or take it off", name, cut(r.annotations[name]), want))
}

func cut(text string) string {
	if len(text) <= quotedMost {
		return text
	}
	return strings.ToValidUTF8(text[:quotedMost], "") + "…"
}

func (r *reader) dollars(name string) float64 {
	text, ok := r.text(name)
	if !ok {
		return 0
	}
	v, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	if err != nil || v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		r.wrong(name, `US dollars such as "0.05"`)
		return 0
	}
	return v
}

func (r *reader) percent(name string) float64 {
	text, ok := r.text(name)
	if !ok {
		return 0
	}
	v, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || math.IsNaN(v) || v < 0 || v > 100 {
		r.wrong(name, `a percentage such as "10%"`)
		return 0
	}
	return v / 100
}

func (r *reader) duration(name string) time.Duration {
	text, ok := r.text(name)
	if !ok {
		return 0
	}
	v, err := time.ParseDuration(text)
	if err != nil || v < 0 {
		r.wrong(name, `a duration such as "30m" or "2h"`)
		return 0
	}
	return v
}

func (r *reader) time(name string) time.Time {
	text, ok := r.text(name)
	if !ok {
		return time.Time{}
	}
	v, err := time.Parse(time.RFC3339, text)
	if err != nil {
		r.wrong(name, `a time such as "2026-01-31T12:00:00Z"`)
	}
	return v.UTC()
}

func (r *reader) word(name string, words ...string) string {
	text, ok := r.text(name)
	if ok && !slices.Contains(words, text) {
		r.wrong(name, strings.Join(words, " or "))
		return ""
	}
	return text
}

func (r *reader) zone(name string) *time.Location {
	text, ok := r.text(name)
	if !ok {
		return nil
	}
	zone, err := time.LoadLocation(text)
	if err != nil || text == "" || text == "Local" {
		r.wrong(name, `an IANA time zone such as "Europe/Berlin"`)
		return nil
	}
	return zone
}

func (r *reader) share(name string) Share {
	text, ok := r.text(name)
	if !ok {
		return Share{}
	}
	if digits, percent := strings.CutSuffix(text, "%"); percent {
		if v, err := strconv.Atoi(digits); err == nil && v >= 0 && v <= 100 {
			return Share{set: true, percent: v}
		}
	} else if v, err := strconv.Atoi(text); err == nil && v >= 0 {
		return Share{set: true, number: v}
	}
	r.wrong(name, `a number or a percentage such as "2" or "10%"`)
	return Share{}
}

// Share is a number, or a part of one that is known later.
type Share struct {
	set             bool
	number, percent int
}

// Set reports whether anybody asked for it.
func (s Share) Set() bool { return s.set }

// Text is the share as it is written; "" where nobody asked for it.
func (s Share) Text() string {
	switch {
	case !s.set:
		return ""
	case s.percent > 0:
		return strconv.Itoa(s.percent) + "%"
	default:
		return strconv.Itoa(s.number)
	}
}

// Of is the number that the share is of all; parts are rounded up, as those of
// budgets are, so that something may happen where there is little.
func (s Share) Of(all int) int {
	if s.percent > 0 {
		return (all*s.percent + 99) / 100
	}
	return s.number
}
