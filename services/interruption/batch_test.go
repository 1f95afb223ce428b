package interruption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// recordingFixture is a fixture that records its calls and rejects some.
type recordingFixture struct {
	*fixture
	calls []string
	// refuse has the errors of calls, by their records.
	refuse map[string]error
}

func newRecordingFixture() *recordingFixture {
	w := &recordingFixture{fixture: newFixture(), refuse: map[string]error{}}
	w.EC2, w.Bus = w, w
	return w
}

func (w *recordingFixture) recordCall(format string, args ...any) error {
	call := fmt.Sprintf(format, args...)
	w.calls = append(w.calls, call)
	return w.refuse[call]
}

func (w *recordingFixture) DescribeInstances(ctx context.Context, f cloud.InstanceFilter) ([]cloud.Instance, error) {
	if err := w.recordCall("describe %d", len(f.IDs)); err != nil {
		return nil, err
	}
	return w.fixture.DescribeInstances(ctx, f)
}

func (w *recordingFixture) Send(ctx context.Context, messages ...queue.Outgoing) error {
	if err := w.recordCall("publish %d", len(messages)); err != nil {
		return err
	}
	return w.fixture.Send(ctx, messages...)
}

// deliverBatch delivers bodies as one batch and returns the kind of each error: "" means success,
// and "alone" that the message is left to Handle.
func (w *recordingFixture) deliverBatch(t *testing.T, bodies ...[]byte) (kinds []string) {
	t.Helper()
	batch := make([]host.Delivery, len(bodies))
	for i, body := range bodies {
		batch[i] = host.Delivery{Message: queue.Message{ID: "m", Body: body, Receives: 1}, Err: host.ErrNotBatched}
	}
	w.Batch(t.Context(), batch)
	for _, d := range batch {
		kind := string(fault.KindOf(d.Err))
		if errors.Is(d.Err, host.ErrNotBatched) {
			kind = "alone"
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

// secondOwnedID is another instance of the cluster.
const secondOwnedID = "i-0000000000000000d"

// tick is an envelope of Joist.
var tick = []byte(`{"specversion":"1.0","type":"tick.v1"}`)

func TestBatch(t *testing.T) {
	owned, foreign, poison := warningBody(ownedID, start), warningBody(foreignID, start), warningBody("i-*", start)
	hidden, second := warningBody(missingID, start), warningBody(secondOwnedID, start)
	invalid, away := fault.F("calling", fault.Invalid, "no"), fault.F("calling", fault.Retry, "away")
	for _, c := range []struct {
		name string
		// cached bodies are delivered before.
		cached [][]byte
		bodies [][]byte
		refuse map[string]error
		kinds  []string
		calls  []string
		facts  int
	}{
		{"one describe and one publish call", nil, [][]byte{owned, foreign, poison, second, hidden}, nil,
			[]string{"", "foreign", "poison", "", "retry"}, []string{"describe 4", "publish 2"}, 2},
		{"cached owners are published before the describe call", [][]byte{owned}, [][]byte{second, owned}, nil,
			[]string{"", ""}, []string{"publish 1", "describe 1", "publish 1"}, 2},
		{"cached owners need no describe call", [][]byte{owned, foreign}, [][]byte{second, owned, foreign}, map[string]error{"describe 1": away},
			[]string{"retry", "", "foreign"}, []string{"publish 1", "describe 1"}, 1},
		{"one instance twice", nil, [][]byte{owned, owned}, nil, []string{"", ""}, []string{"describe 1", "publish 2"}, 2},
		{"an envelope is left to Handle", nil, [][]byte{tick, owned}, nil, []string{"alone", ""}, []string{"describe 1", "publish 1"}, 1},
		{"an unavailable bus", nil, [][]byte{owned, foreign, second}, map[string]error{"publish 2": away},
			[]string{"retry", "foreign", "retry"}, []string{"describe 3", "publish 2"}, 0},
		{"an invalid batch of facts", nil, [][]byte{owned, second}, map[string]error{"publish 2": invalid},
			[]string{"alone", "alone"}, []string{"describe 2", "publish 2"}, 0},
		{"an invalid fact", nil, [][]byte{owned}, map[string]error{"publish 1": invalid}, []string{"invalid"}, []string{"describe 1", "publish 1"}, 0},
		{"an invalid describe call", nil, [][]byte{owned, foreign}, map[string]error{"describe 2": invalid},
			[]string{"alone", "alone"}, []string{"describe 2"}, 0},
		{"nothing", nil, nil, nil, nil, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newRecordingFixture()
			also := w.instances[0]
			also.ID = secondOwnedID
			w.instances = append(w.instances, also)
			for _, body := range c.cached {
				w.deliverBatch(t, body)
			}
			w.published, w.calls, w.refuse = nil, nil, c.refuse
			kinds := w.deliverBatch(t, c.bodies...)
			if diff := cmp.Diff(c.kinds, kinds) + cmp.Diff(c.calls, w.calls); diff != "" {
				t.Error(diff)
			}
			if len(w.published) != c.facts {
				t.Errorf("%d facts were published: %v", len(w.published), w.publishedTypes())
			}
		})
	}
}

// A batch has the same results as its messages handled one by one.
func TestBatchEqualsSingleMessages(t *testing.T) {
	withoutState := func(id string) []byte {
		return []byte(strings.Replace(string(warningBody(id, start)), spotType+`"`, stateType+`"`, 1))
	}
	state := func(id, state string) []byte {
		return []byte(strings.Replace(string(withoutState(id)), `"instance-action":"terminate"`, fmt.Sprintf(`"state":%q`, state), 1))
	}
	bodies := [][]byte{
		warningBody(ownedID, start), state(ownedID, "terminated"), warningBody(foreignID, start), state(missingID, "terminated"), []byte("{"), state(ownedID, "stopping"),
		warningBody(ownedID, start.Add(-time.Hour)), state(foreignID, "terminated"), withoutState(ownedID),
	}
	for _, later := range []time.Duration{0, 3 * time.Minute} {
		together := newRecordingFixture()
		together.now = start.Add(later)
		together.instances[0].State = cloud.Terminated
		var want []string
		var facts []event.Envelope
		for _, body := range bodies {
			alone := newRecordingFixture()
			alone.now, alone.instances = together.now, together.instances
			want = append(want, alone.deliverBatch(t, body)...)
			facts = append(facts, alone.published...)
		}
		if diff := cmp.Diff(want, together.deliverBatch(t, bodies...)); diff != "" {
			t.Errorf("after %s: %s", later, diff)
		}
		ids := func(all []event.Envelope) (ids []string) {
			for _, e := range all {
				ids = append(ids, e.ID)
			}
			slices.Sort(ids)
			return ids
		}
		if diff := cmp.Diff(ids(facts), ids(together.published)); diff != "" || len(facts) < 2 {
			t.Errorf("after %s, of %d: %s", later, len(facts), diff)
		}
	}
}

// A log line of an AWS event names the event's type and ID, the instance and the detail. The metrics use the type and the detail.
func TestLogFieldsOfEvents(t *testing.T) {
	w := newRecordingFixture()
	batch := []host.Delivery{
		{Message: queue.Message{ID: "1", Body: warningBody(ownedID, start)}},
		{Message: queue.Message{ID: "2", Body: []byte(`{"source":"aws.ec2","detail-type":"EBS Volume Notification"}`)}},
		{Message: queue.Message{ID: "3", Body: []byte(strings.Replace(string(warningBody(ownedID, start)), `,"instance-action":"terminate"`, "", 1))}},
	}
	w.Batch(t.Context(), batch)
	for i, want := range []struct{ typ, id, subject, fields string }{
		{"aws.spot-interruption", "11111111-2222-3333-4444-555555555555", "instance/" + ownedID, "[detail terminate instances 1 owned 1 unresolved 0]"},
		{"aws.other", "", "", "[]"},
		{"aws.spot-interruption", "11111111-2222-3333-4444-555555555555", "instance/" + ownedID, "[instances 1 owned 1 unresolved 0]"},
	} {
		got := batch[i].LogFields
		if got.Type != want.typ || got.ID != want.id || got.Subject != want.subject || fmt.Sprint(got.Pairs) != want.fields {
			t.Errorf("message %d has the fields %s %s %s %v, want %+v", i, got.Type, got.ID, got.Subject, got.Pairs, want)
		}
	}
}

// After a panic the worker handles each message alone. An event that is not yet published must not look handled, because it would be
// deleted.
func TestPanicLosesNoEvent(t *testing.T) {
	for name, fail := range map[string]func(*fixture){
		"while EC2 is asked":       func(b *fixture) { b.EC2 = nil },
		"while the facts are sent": func(b *fixture) { b.Bus = nil },
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture()
			fail(b)
			batch := []host.Delivery{{Message: queue.Message{ID: "1", Body: warningBody(ownedID, start)}}}
			func() {
				defer func() {
					if recover() == nil {
						t.Error("it does not panic")
					}
				}()
				b.Batch(t.Context(), batch)
			}()
			if !errors.Is(batch[0].Err, host.ErrNotBatched) {
				t.Errorf("the event has the error %v, want %v", batch[0].Err, host.ErrNotBatched)
			}
		})
	}
}
