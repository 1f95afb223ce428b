package replay_test

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/deadletter"
	"github.com/joist-autoscaler/joist/services/cli/internal/replay"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// goneBody returns an instance.gone event of the n-th instance, sent some time ago.
func goneBody(t *testing.T, n int, ago time.Duration) []byte {
	t.Helper()
	e, err := event.Maker{Service: "interruption", Cluster: event.Cluster{Name: "prod"}}.New(now.Add(-ago), event.InstanceGone{InstanceID: "i-" + strconv.Itoa(n), Shown: now}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// newMessage returns a message that a host parked.
func newMessage(t *testing.T, id string, text []byte, more map[string]string) deadletter.DeadMessage {
	t.Helper()
	attributes := map[string]string{host.MovedAtAttribute: now.Format(time.RFC3339), host.KindAttribute: "bug", host.ReasonAttribute: "No such Instance"}
	maps.Copy(attributes, more)
	return deadletter.Reader{Service: "lifecycle", Cluster: event.Cluster{Name: "prod"}}.Read(queue.Message{ID: id, Body: text, Sent: now, Attributes: attributes}, now)
}

func TestParseMatchErrors(t *testing.T) {
	for _, text := range []string{"", "type", "type=", "colour=red", "type=[a", "=x"} {
		if _, err := replay.ParseMatch([]string{text}); !fault.Is(err, fault.Invalid) || fault.FindHint(err) == "" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestMatches: terms with the same key are alternatives, every key must match, and stale,
// truncated and forged messages need their own term or never match.
func TestMatches(t *testing.T) {
	good := newMessage(t, "m-1", goneBody(t, 1, time.Minute), nil)
	expired := newMessage(t, "m-2", goneBody(t, 2, 3*time.Hour), nil)
	poison := newMessage(t, "m-3", []byte("{"), nil)
	cut := newMessage(t, "m-4", goneBody(t, 4, time.Minute)[:30], map[string]string{host.BytesAttribute: "500"})
	stale := good
	stale.ID, stale.Predicted.Disposition = "m-5", deadletter.Stale
	forged := good
	forged.ID, forged.Predicted.Disposition = "m-6", deadletter.Forged
	for _, test := range []struct {
		name  string
		terms []string
		want  string
	}{
		{"no term", nil, "m-1 m-2"},
		{"a disposition", []string{"disposition=poison"}, "m-3"},
		{"two dispositions", []string{"disposition=poison", "disposition=handle"}, "m-1 m-3"},
		{"stale", []string{"disposition=stale"}, "m-5"},
		{"stale, and an ID", []string{"disposition=stale", "disposition=noop", "id=m-5"}, "m-5"},
		{"only the ID of a stale message", []string{"id=m-5"}, ""},
		{"a kind that a stale message has, too", []string{"kind=bug", "type=instance.*"}, "m-1 m-2"},
		{"truncated", []string{"disposition=truncated"}, ""},
		{"forged", []string{"disposition=forged", "id=m-6"}, ""},
		{"an id", []string{"id=m-2"}, "m-2"},
		{"an event's id", []string{"id=" + good.EventID}, "m-1"},
		{"a reason in another case", []string{"reason=no such"}, "m-1 m-2 m-3"},
		{"a type with a wildcard, and a disposition", []string{"type=instance.*", "disposition=noop"}, "m-2"},
		{"the beginning of a type", []string{"type=instance"}, ""},
		{"another kind", []string{"kind=poison"}, ""},
		{"an origin", []string{"origin=redriven"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, err := replay.ParseMatch(test.terms)
			if err != nil {
				t.Fatal(err)
			}
			var matched []string
			for _, l := range []deadletter.DeadMessage{good, expired, poison, cut, stale, forged} {
				if m.Matches(&l) {
					matched = append(matched, l.ID)
				}
			}
			if got := strings.Join(matched, " "); got != test.want {
				t.Errorf("matched %q, want %q", got, test.want)
			}
		})
	}
}

// TestChooseMessages: SQS moves a queue only if all messages are chosen and can be sent
// unchanged.
func TestChooseMessages(t *testing.T) {
	good, poison := newMessage(t, "m-1", goneBody(t, 1, time.Minute), nil), newMessage(t, "m-2", []byte("{"), nil)
	event1 := `{"detail-type":"instance.gone.v1","source":"joist/interruption","detail":` + string(goneBody(t, 3, time.Minute)) + `}`
	wrapped := newMessage(t, "m-3", []byte(event1), map[string]string{"RULE_ARN": "r"})
	for _, test := range []struct {
		name         string
		deadMessages []deadletter.DeadMessage
		all          bool
		method       replay.Method
		chosen       int
	}{
		{"all of it", []deadletter.DeadMessage{good}, true, replay.Move, 1},
		{"a part of it", []deadletter.DeadMessage{good}, false, replay.Resend, 1},
		{"one stays", []deadletter.DeadMessage{good, poison}, true, replay.Resend, 1},
		{"one is wrapped", []deadletter.DeadMessage{good, wrapped}, true, replay.Resend, 2},
		{"nothing", nil, true, replay.Move, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := replay.ChooseMessages(test.deadMessages, test.all, replay.Match{})
			if c.Method != test.method || len(c.Chosen) != test.chosen || len(c.Chosen)+len(c.Kept) != len(test.deadMessages) {
				t.Errorf("%+v", c)
			}
		})
	}
}

// TestChooseArchived: facts that may be missing in the archive are kept, and the time span is
// minimal.
func TestChooseArchived(t *testing.T) {
	audit := func(id string, ago time.Duration, detail []byte) deadletter.DeadMessage {
		at := `"time":"` + now.Add(-ago).Format(time.RFC3339) + `",`
		if ago == 0 {
			at = ""
		}
		text := `{"detail-type":"instance.gone.v1","source":"joist/interruption",` + at + `"detail":` + string(detail) + `}`
		return deadletter.Reader{Service: "audit", Cluster: event.Cluster{Name: "prod"}}.Read(queue.Message{ID: id, Body: []byte(text), Attributes: map[string]string{"RULE_ARN": "r"}}, now)
	}
	deadMessages := []deadletter.DeadMessage{
		audit("m-1", 3*time.Hour, goneBody(t, 1, 3*time.Hour)), audit("m-2", replay.ArchiveDelay, goneBody(t, 2, replay.ArchiveDelay)),
		audit("m-3", replay.ArchiveDelay-time.Second, goneBody(t, 3, time.Minute)), audit("m-4", time.Hour, []byte(`{}`)),
		audit("m-5", 3*time.Hour+time.Second, goneBody(t, 5, time.Minute)), audit("m-6", 0, goneBody(t, 6, time.Minute)),
	}
	c := replay.ChooseArchived(deadMessages, replay.Match{}, now.Add(-3*time.Hour), now)
	if len(c.Chosen) != 2 || c.Chosen[0].ID != "m-1" || c.Chosen[1].ID != "m-2" || len(c.Kept) != 4 || c.Method != replay.Archived {
		t.Fatalf("%+v", c)
	}
	for _, l := range c.Kept {
		if l.ID != "m-4" && !strings.Contains(l.Predicted.Reason, "may not have it") {
			t.Errorf("%s: %s", l.ID, l.Predicted.Reason)
		}
	}
	if c := replay.ChooseArchived(deadMessages, replay.Match{}, time.Time{}, now); len(c.Chosen) != 3 || c.Chosen[2].ID != "m-5" {
		t.Errorf("with an unlimited archive: %+v", c)
	}
	from, to := c.TimeSpan()
	if !from.Equal(now.Add(-3*time.Hour)) || !to.Equal(now.Add(-replay.ArchiveDelay+time.Second)) {
		t.Errorf("from %s to %s", from, to)
	}
}
