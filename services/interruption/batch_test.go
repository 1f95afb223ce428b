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

// recordingFixture is a bench that notes its calls, and refuses some.
type recordingFixture struct {
	*fixture
	calls []string
	// refuse is what a call gives, by its note.
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

// deliverBatch hands the service bodies that were received together, and gives the kind
// of what each came to: "" is dealt with, and "alone" is left to Handle.
func (w *recordingFixture) deliverBatch(t *testing.T, bodies ...[]byte) (fates []string) {
	t.Helper()
	batch := make([]host.Delivery, len(bodies))
	for i, body := range bodies {
		batch[i] = host.Delivery{Message: queue.Message{ID: "m", Body: body, Receives: 1}, Err: host.ErrAlone}
	}
	w.Batch(t.Context(), batch)
	for _, d := range batch {
		fate := string(fault.KindOf(d.Err))
		if errors.Is(d.Err, host.ErrAlone) {
			fate = "alone"
		}
		fates = append(fates, fate)
	}
	return fates
}

// secondOwnedID is another instance of ours.
const secondOwnedID = "i-0000000000000000d"

// tick is an envelope of our own.
var tick = []byte(`{"specversion":"1.0","type":"tick.v1"}`)

func TestBatch(t *testing.T) {
	ours, others, poison := warningBody(ownedID, start), warningBody(foreignID, start), warningBody("i-*", start)
	hidden, second := warningBody(missingID, start), warningBody(secondOwnedID, start)
	invalid, away := fault.F("calling", fault.Invalid, "no"), fault.F("calling", fault.Retry, "away")
	for _, c := range []struct {
		name string
		// known are asked for before.
		known  [][]byte
		bodies [][]byte
		refuse map[string]error
		fates  []string
		calls  []string
		said   int
	}{
		{"one question and one publication", nil, [][]byte{ours, others, poison, second, hidden}, nil,
			[]string{"", "foreign", "poison", "", "retry"}, []string{"describe 4", "publish 2"}, 2},
		{"what is known is said before the question", [][]byte{ours}, [][]byte{second, ours}, nil,
			[]string{"", ""}, []string{"publish 1", "describe 1", "publish 1"}, 2},
		{"what is known needs no EC2", [][]byte{ours, others}, [][]byte{second, ours, others}, map[string]error{"describe 1": away},
			[]string{"retry", "", "foreign"}, []string{"publish 1", "describe 1"}, 1},
		{"one instance twice", nil, [][]byte{ours, ours}, nil, []string{"", ""}, []string{"describe 1", "publish 2"}, 2},
		{"an envelope is left alone", nil, [][]byte{tick, ours}, nil, []string{"alone", ""}, []string{"describe 1", "publish 1"}, 1},
		{"a bus that is away", nil, [][]byte{ours, others, second}, map[string]error{"publish 2": away},
			[]string{"retry", "foreign", "retry"}, []string{"describe 3", "publish 2"}, 0},
		{"facts that are not valid together", nil, [][]byte{ours, second}, map[string]error{"publish 2": invalid},
			[]string{"alone", "alone"}, []string{"describe 2", "publish 2"}, 0},
		{"a fact that is not valid", nil, [][]byte{ours}, map[string]error{"publish 1": invalid}, []string{"invalid"}, []string{"describe 1", "publish 1"}, 0},
		{"a question that is not valid", nil, [][]byte{ours, others}, map[string]error{"describe 2": invalid},
			[]string{"alone", "alone"}, []string{"describe 2"}, 0},
		{"nothing", nil, nil, nil, nil, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newRecordingFixture()
			also := w.instances[0]
			also.ID = secondOwnedID
			w.instances = append(w.instances, also)
			for _, body := range c.known {
				w.deliverBatch(t, body)
			}
			w.published, w.calls, w.refuse = nil, nil, c.refuse
			fates := w.deliverBatch(t, c.bodies...)
			if diff := cmp.Diff(c.fates, fates) + cmp.Diff(c.calls, w.calls); diff != "" {
				t.Error(diff)
			}
			if len(w.published) != c.said {
				t.Errorf("%d facts were said: %v", len(w.published), w.publishedTypes())
			}
		})
	}
}

// A batch says of each message what it says of it alone, whatever else is in it.
func TestBatchEqualsSingleMessages(t *testing.T) {
	ended := func(id string) []byte {
		return []byte(strings.Replace(string(warningBody(id, start)), spotType+`"`, stateType+`"`, 1))
	}
	state := func(id, state string) []byte {
		return []byte(strings.Replace(string(ended(id)), `"instance-action":"terminate"`, fmt.Sprintf(`"state":%q`, state), 1))
	}
	bodies := [][]byte{
		warningBody(ownedID, start), state(ownedID, "terminated"), warningBody(foreignID, start), state(missingID, "terminated"), []byte("{"), state(ownedID, "stopping"),
		warningBody(ownedID, start.Add(-time.Hour)), state(foreignID, "terminated"), ended(ownedID),
	}
	for _, later := range []time.Duration{0, 3 * time.Minute} {
		together := newRecordingFixture()
		together.now = start.Add(later)
		together.instances[0].State = cloud.Terminated
		var want []string
		var said []event.Envelope
		for _, body := range bodies {
			alone := newRecordingFixture()
			alone.now, alone.instances = together.now, together.instances
			want = append(want, alone.deliverBatch(t, body)...)
			said = append(said, alone.published...)
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
		if diff := cmp.Diff(ids(said), ids(together.published)); diff != "" || len(said) < 2 {
			t.Errorf("after %s, of %d: %s", later, len(said), diff)
		}
	}
}
