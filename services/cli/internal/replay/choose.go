// Package replay sends dead letters again, and replays a bus's archive.
//
// The invariants:
//
//   - A letter is sent before it is deleted, and one at a time: whoever stops a replay
//     between two letters loses none and doubles none. Only a process that is killed in
//     the middle of one leaves it in both places, and then every handler takes the second
//     for what it is, for ids are derived.
//   - What is not chosen, and what could not be dealt with, is given back as it was.
//   - To go on is the same command again.
//   - Old letters do no harm: an expired message is dropped and counted by its service.
package replay

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/services/cli/internal/deadletter"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Method is how letters are replayed.
type Method string

const (
	// Move is a task of SQS's own, which takes whole queues.
	Move Method = "move"
	// Resend sends each letter and deletes it.
	Resend Method = "resend"
)

// Match chooses letters. Terms of one key are alternatives, and every key has to fit.
type Match struct {
	terms map[string][]string
}

// keys are what a letter is matched by.
var keys = map[string]func(l *deadletter.DeadLetter, want string) bool{
	"type":    func(l *deadletter.DeadLetter, want string) bool { ok, _ := path.Match(want, l.Type); return ok },
	"kind":    func(l *deadletter.DeadLetter, want string) bool { return l.Kind == want },
	"origin":  func(l *deadletter.DeadLetter, want string) bool { return string(l.Origin) == want },
	"verdict": func(l *deadletter.DeadLetter, want string) bool { return string(l.Predicted.Verdict) == want },
	"id":      func(l *deadletter.DeadLetter, want string) bool { return l.ID == want || l.EventID == want },
	"reason": func(l *deadletter.DeadLetter, want string) bool {
		return strings.Contains(strings.ToLower(l.Reason), strings.ToLower(want))
	},
}

// ParseMatch reads terms such as type=launch.* or reason=denied. A type may have
// wildcards; a reason is searched for a part, whatever its case.
func ParseMatch(texts []string) (Match, error) {
	m := Match{terms: map[string][]string{}}
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		if !ok || value == "" || keys[key] == nil {
			return Match{}, invalidMatch("--match KEY=VALUE, with the key type, kind, origin, verdict, id or reason", "invalid --match %q", text)
		}
		if _, err := path.Match(value, ""); key == "type" && err != nil {
			return Match{}, invalidMatch("--match 'type=launch.*'", "invalid pattern %q: %w", value, err)
		}
		m.terms[key] = append(m.terms[key], value)
	}
	return m, nil
}

func invalidMatch(remedy, format string, args ...any) error {
	return fault.E(fmt.Errorf(format, args...).Error(), fault.Invalid, nil).WithHint("%s", remedy)
}

// Matches reports whether a letter is meant. Without a term those are that a replay gets
// rid of: what its service would act on or drop. What would die again is sent only if a
// term asks for it, for the service may know more by now than this command. What would be
// done and undone costs money, and is sent only by that name.
func (m Match) Matches(l *deadletter.DeadLetter) bool {
	switch l.Predicted.Verdict {
	case deadletter.Cut, deadletter.Forged:
		return false
	case deadletter.Stale:
		if !slices.Contains(m.terms["verdict"], string(deadletter.Stale)) {
			return false
		}
	case deadletter.Poison:
		if len(m.terms) == 0 {
			return false
		}
	case deadletter.Handle, deadletter.Noop:
	}
	for key, wants := range m.terms {
		if !slices.ContainsFunc(wants, func(want string) bool { return keys[key](l, want) }) {
			return false
		}
	}
	return true
}

// Choice is what of a queue is replayed, and how.
type Choice struct {
	Method Method
	// Chosen are replayed; Kept stay.
	Chosen, Kept []deadletter.DeadLetter
}

// Choose chooses among the letters of a queue. All says that those are all that it
// holds: SQS can move only a whole queue, and only as the letters lie there.
func Choose(letters []deadletter.DeadLetter, all bool, m Match) Choice {
	c := Choice{Method: Move}
	for i := range letters {
		l := letters[i]
		if !m.Matches(&l) {
			c.Kept = append(c.Kept, l)
			continue
		}
		c.Chosen = append(c.Chosen, l)
		if !l.Movable() {
			c.Method = Resend
		}
	}
	if !all || len(c.Kept) > 0 {
		c.Method = Resend
	}
	return c
}
