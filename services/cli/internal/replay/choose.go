// Package replay resends messages of DLQs, and replays the archive of a bus.
//   - Messages are resent one at a time, and each is sent before it is deleted. An interrupt between
//     two messages loses and duplicates none. If the process is killed between sending and deleting,
//     the message is in both queues, and handlers drop the duplicate because IDs are derived.
//   - Messages that are not chosen, or whose sending failed, are made visible again.
//   - Running the command again resumes a replay.
//   - Services drop and count expired messages.
package replay

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/services/cli/internal/deadletter"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Method is how messages are replayed.
type Method string

const (
	// Move uses a message move task of SQS, which moves a whole queue.
	Move Method = "move"
	// Resend sends and then deletes each message.
	Resend Method = "resend"
)

// Match selects messages. Terms with the same key are alternatives; every key must match.
type Match struct {
	terms map[string][]string
}

// matchers compare a message with the value of a term, by key.
var matchers = map[string]func(l *deadletter.DeadMessage, want string) bool{
	"type":        func(l *deadletter.DeadMessage, want string) bool { ok, _ := path.Match(want, l.Type); return ok },
	"kind":        func(l *deadletter.DeadMessage, want string) bool { return l.Kind == want },
	"origin":      func(l *deadletter.DeadMessage, want string) bool { return string(l.Origin) == want },
	"disposition": func(l *deadletter.DeadMessage, want string) bool { return string(l.Predicted.Disposition) == want },
	"id":          func(l *deadletter.DeadMessage, want string) bool { return l.ID == want || l.EventID == want },
	"reason": func(l *deadletter.DeadMessage, want string) bool {
		return strings.Contains(strings.ToLower(l.Reason), strings.ToLower(want))
	},
}

// ParseMatch parses terms such as type=launch.* or reason=timeout. A type may have wildcards. A
// reason matches as a substring without regard to case.
func ParseMatch(texts []string) (Match, error) {
	m := Match{terms: map[string][]string{}}
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		if !ok || value == "" || matchers[key] == nil {
			return Match{}, invalidMatch("--match KEY=VALUE, with the key type, kind, origin, disposition, id or reason", "invalid --match %q", text)
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

// Matches reports whether a message is selected. Without terms it selects messages that the service
// would handle or drop. Poison messages need a term, because the service may be newer than this
// command. Stale messages may launch instances and need the term disposition=stale.
func (m Match) Matches(l *deadletter.DeadMessage) bool {
	switch l.Predicted.Disposition {
	case deadletter.Truncated, deadletter.Forged:
		return false
	case deadletter.Stale:
		if !slices.Contains(m.terms["disposition"], string(deadletter.Stale)) {
			return false
		}
	case deadletter.Poison:
		if len(m.terms) == 0 {
			return false
		}
	case deadletter.Handle, deadletter.Noop:
	}
	for key, wants := range m.terms {
		if !slices.ContainsFunc(wants, func(want string) bool { return matchers[key](l, want) }) {
			return false
		}
	}
	return true
}

// Choice is the set of messages to replay, and the method.
type Choice struct {
	Method Method
	// Chosen are the messages to replay; Kept stay in the queue.
	Chosen, Kept []deadletter.DeadMessage
}

// ChooseMessages chooses among the messages of a queue. If all is true, these are all of its
// messages: SQS can move only a whole queue, with its messages unchanged.
func ChooseMessages(deadMessages []deadletter.DeadMessage, all bool, m Match) Choice {
	c := Choice{Method: Move}
	for i := range deadMessages {
		l := deadMessages[i]
		if !m.Matches(&l) {
			c.Kept = append(c.Kept, l)
			continue
		}
		c.Chosen = append(c.Chosen, l)
		if !l.IsMovable() {
			c.Method = Resend
		}
	}
	if !all || len(c.Kept) > 0 {
		c.Method = Resend
	}
	return c
}
