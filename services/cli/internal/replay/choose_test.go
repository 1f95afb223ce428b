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

// body is an instance.gone of the n-th instance, said some time ago.
func body(t *testing.T, n int, ago time.Duration) []byte {
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

// letter is one that a host parked.
func letter(t *testing.T, id string, text []byte, more map[string]string) deadletter.DeadLetter {
	t.Helper()
	attributes := map[string]string{host.MovedAtAttribute: now.Format(time.RFC3339), host.KindAttribute: "bug", host.ReasonAttribute: "No such Instance"}
	maps.Copy(attributes, more)
	return deadletter.Reader{Service: "lifecycle", Cluster: event.Cluster{Name: "prod"}}.Read(queue.Message{ID: id, Body: text, Sent: now, Attributes: attributes}, now)
}

func TestParseMatchRefuses(t *testing.T) {
	for _, text := range []string{"", "type", "type=", "colour=red", "type=[a", "=x"} {
		if _, err := replay.ParseMatch([]string{text}); !fault.Is(err, fault.Invalid) || fault.HintOf(err) == "" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestTakes: terms of one key are alternatives, keys narrow, and what would come to
// nothing good is taken only by name.
func TestTakes(t *testing.T) {
	good := letter(t, "m-1", body(t, 1, time.Minute), nil)
	expired := letter(t, "m-2", body(t, 2, 3*time.Hour), nil)
	poison := letter(t, "m-3", []byte("{"), nil)
	cut := letter(t, "m-4", body(t, 4, time.Minute)[:30], map[string]string{host.BytesAttribute: "500"})
	stale := good
	stale.ID, stale.Predicted.Verdict = "m-5", deadletter.Stale
	forged := good
	forged.ID, forged.Predicted.Verdict = "m-6", deadletter.Forged
	for _, test := range []struct {
		name  string
		terms []string
		takes string
	}{
		{"no term", nil, "m-1 m-2"},
		{"a verdict", []string{"verdict=poison"}, "m-3"},
		{"two verdicts", []string{"verdict=poison", "verdict=handle"}, "m-1 m-3"},
		{"what would be undone", []string{"verdict=stale"}, "m-5"},
		{"what would be undone, and an id", []string{"verdict=stale", "verdict=noop", "id=m-5"}, "m-5"},
		{"an id of what would be undone", []string{"id=m-5"}, ""},
		{"a kind of what would be undone, too", []string{"kind=bug", "type=instance.*"}, "m-1 m-2"},
		{"never what is cut off", []string{"verdict=cut"}, ""},
		{"never what is forged", []string{"verdict=forged", "id=m-6"}, ""},
		{"an id", []string{"id=m-2"}, "m-2"},
		{"an event's id", []string{"id=" + good.EventID}, "m-1"},
		{"a reason, whatever its case", []string{"reason=no such"}, "m-1 m-2 m-3"},
		{"a type with a wildcard, and a verdict", []string{"type=instance.*", "verdict=noop"}, "m-2"},
		{"a type's beginning is not the type", []string{"type=instance"}, ""},
		{"another kind", []string{"kind=poison"}, ""},
		{"an origin", []string{"origin=redriven"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, err := replay.ParseMatch(test.terms)
			if err != nil {
				t.Fatal(err)
			}
			var taken []string
			for _, l := range []deadletter.DeadLetter{good, expired, poison, cut, stale, forged} {
				if m.Matches(&l) {
					taken = append(taken, l.ID)
				}
			}
			if got := strings.Join(taken, " "); got != test.takes {
				t.Errorf("it takes %q, want %q", got, test.takes)
			}
		})
	}
}

// TestChoose: SQS moves a queue only if all of it is meant and lies there as it is to go.
func TestChoose(t *testing.T) {
	good, poison := letter(t, "m-1", body(t, 1, time.Minute), nil), letter(t, "m-2", []byte("{"), nil)
	event1 := `{"detail-type":"instance.gone.v1","source":"joist/interruption","detail":` + string(body(t, 3, time.Minute)) + `}`
	wrapped := letter(t, "m-3", []byte(event1), map[string]string{"RULE_ARN": "r"})
	for _, test := range []struct {
		name    string
		letters []deadletter.DeadLetter
		all     bool
		method  replay.Method
		chosen  int
	}{
		{"all of it", []deadletter.DeadLetter{good}, true, replay.Move, 1},
		{"a part of it", []deadletter.DeadLetter{good}, false, replay.Resend, 1},
		{"one stays", []deadletter.DeadLetter{good, poison}, true, replay.Resend, 1},
		{"one is wrapped", []deadletter.DeadLetter{good, wrapped}, true, replay.Resend, 2},
		{"nothing", nil, true, replay.Move, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := replay.Choose(test.letters, test.all, replay.Match{})
			if c.Method != test.method || len(c.Chosen) != test.chosen || len(c.Chosen)+len(c.Kept) != len(test.letters) {
				t.Errorf("%+v", c)
			}
		})
	}
}

// TestChooseLogged: what the archive may not have yet, or may not have any more, stays, and
// the span is as small as can be.
func TestChooseLogged(t *testing.T) {
	audit := func(id string, ago time.Duration, detail []byte) deadletter.DeadLetter {
		at := `"time":"` + now.Add(-ago).Format(time.RFC3339) + `",`
		if ago == 0 {
			at = ""
		}
		text := `{"detail-type":"instance.gone.v1","source":"joist/interruption",` + at + `"detail":` + string(detail) + `}`
		return deadletter.Reader{Service: "audit", Cluster: event.Cluster{Name: "prod"}}.Read(queue.Message{ID: id, Body: []byte(text), Attributes: map[string]string{"RULE_ARN": "r"}}, now)
	}
	letters := []deadletter.DeadLetter{
		audit("m-1", 3*time.Hour, body(t, 1, 3*time.Hour)), audit("m-2", replay.ArchiveDelay, body(t, 2, replay.ArchiveDelay)),
		audit("m-3", replay.ArchiveDelay-time.Second, body(t, 3, time.Minute)), audit("m-4", time.Hour, []byte(`{}`)),
		audit("m-5", 3*time.Hour+time.Second, body(t, 5, time.Minute)), audit("m-6", 0, body(t, 6, time.Minute)),
	}
	c := replay.ChooseLogged(letters, replay.Match{}, now.Add(-3*time.Hour), now)
	if len(c.Chosen) != 2 || c.Chosen[0].ID != "m-1" || c.Chosen[1].ID != "m-2" || len(c.Kept) != 4 || c.Method != replay.Archived {
		t.Fatalf("%+v", c)
	}
	for _, l := range c.Kept {
		if l.ID != "m-4" && !strings.Contains(l.Predicted.Why, "may not have it") {
			t.Errorf("%s: %s", l.ID, l.Predicted.Why)
		}
	}
	if c := replay.ChooseLogged(letters, replay.Match{}, time.Time{}, now); len(c.Chosen) != 3 || c.Chosen[2].ID != "m-5" {
		t.Errorf("of an archive that keeps all: %+v", c)
	}
	from, to := c.Span()
	if !from.Equal(now.Add(-3*time.Hour)) || !to.Equal(now.Add(-replay.ArchiveDelay+time.Second)) {
		t.Errorf("from %s to %s", from, to)
	}
}
