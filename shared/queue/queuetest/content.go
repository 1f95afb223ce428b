package queuetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// numbered returns n different bodies.
func numbered(n int) []string {
	out := make([]string, 0, n)
	for i := range n {
		out = append(out, fmt.Sprintf("body %02d", i))
	}
	return out
}

// countBodies counts the deliveries of each body.
func countBodies(messages []queue.Message) map[string]int {
	out := map[string]int{}
	for _, m := range messages {
		out[string(m.Body)]++
	}
	return out
}

func splitsSends(t *testing.T, s Subject) {
	bodies := numbered(2*queue.MaxBatch + 5)
	send(t, s.Queue, text(bodies...)...)
	send(t, s.Queue)
	got := countBodies(gather(t, s.Queue, len(bodies), long))
	for _, body := range bodies {
		if got[body] != 1 {
			t.Errorf("%q was received %d times", body, got[body])
		}
	}
	// Five bodies of nearly the maximum size do not fit into one call either.
	large := strings.Repeat("x", queue.MaxBody-1024)
	send(t, s.Queue, text(large, large, large, large, large)...)
	if got := countBodies(gather(t, s.Queue, 5, long)); got[large] != 5 {
		t.Errorf("received %d of 5 large bodies unchanged", got[large])
	}
}

func deletesMany(t *testing.T, s Subject) {
	n := 2*queue.MaxBatch + 5
	send(t, s.Queue, text(numbered(n)...)...)
	var receipts []string
	for _, m := range gather(t, s.Queue, n, short) {
		receipts = append(receipts, m.Receipt)
	}
	remove(t, s.Queue, receipts...)
	s.Advance(short + time.Second)
	nothing(t, s.Queue)
}

func limitsReceive(t *testing.T, s Subject) {
	send(t, s.Queue, text(numbered(queue.MaxBatch+2)...)...)
	for _, limit := range []int{1, 3, queue.MaxBatch} {
		got, err := s.Queue.Receive(t.Context(), limit, 0, 0)
		if err != nil || len(got) > limit {
			t.Errorf("receive with limit %d returned %d messages, %v", limit, len(got), err)
		}
	}
	for _, limit := range []int{0, queue.MaxBatch + 1} {
		_, err := s.Queue.Receive(t.Context(), limit, 0, 0)
		wantKind(t, err, fault.Invalid)
	}
}

func keepsBodies(t *testing.T, s Subject) {
	for _, body := range []string{
		`{"a": 1.0,  "b":[null]}`, " spaces \t\r\n", `<a href="x">&amp;</a>`, `"quoted" \ back \u0041 \\n`,
		"żółć 節点 🏗️ e\u0301", "\u0085\u2028\u2029\uFEFF\uFFFD\U0010FFFD", "\x7f", strings.Repeat("é", queue.MaxBody/2),
	} {
		send(t, s.Queue, text(body)...)
		m := one(t, s.Queue, long)
		if got := string(m.Body); got != body {
			t.Errorf("body of %d bytes %.40q was received as %d bytes %.40q", len(body), body, len(got), got)
		}
	}
}

func keepsAttributes(t *testing.T, s Subject) {
	send(t, s.Queue, queue.Outgoing{
		Source: "joist/planner", Type: "plan.made.v1", Body: []byte("a"),
		Attributes: map[string]string{"reason": "byte 7: \"x\" <is> not & 節点\n", "kind": "poison", "none": ""},
	})
	m := one(t, s.Queue, long)
	want := map[string]string{
		queue.SourceAttribute: "joist/planner", queue.TypeAttribute: "plan.made.v1",
		"reason": "byte 7: \"x\" <is> not & 節点\n", "kind": "poison",
	}
	if diff := cmp.Diff(want, m.Attributes); diff != "" {
		t.Error(diff)
	}
}

// refusesBodies also requires that a rejected send accepts no message, not even the valid ones.
func refusesBodies(t *testing.T, s Subject) {
	for name, body := range map[string]string{
		"too large": strings.Repeat("x", queue.MaxBody+1), "empty": "", "not UTF-8": "a\xff", "a control character": "a\x00",
	} {
		err := s.Queue.Send(t.Context(), text("in order", body)...)
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	nothing(t, s.Queue)
}

func reportsDepth(t *testing.T, s Subject) {
	send(t, s.Queue, text("a", "b", "c")...)
	got, err := s.Queue.Receive(t.Context(), 1, time.Second, long)
	if err != nil || len(got) != 1 {
		t.Fatalf("received %d messages, %v", len(got), err)
	}
	visible, hidden, err := s.Queue.Depth(t.Context())
	if err != nil || visible != 2 || hidden != 1 {
		t.Errorf("%d visible, %d hidden, %v; want 2 and 1", visible, hidden, err)
	}
	visible, hidden, err = s.Dead.Depth(t.Context())
	if err != nil || visible != 0 || hidden != 0 {
		t.Errorf("DLQ: %d visible, %d hidden, %v; want none", visible, hidden, err)
	}
}

// queuesDoNotMix sends to one queue and uses its receipt on the other.
func queuesDoNotMix(t *testing.T, s Subject) {
	send(t, s.Dead, text("a")...)
	nothing(t, s.Queue)
	m := one(t, s.Dead, long)
	_ = s.Queue.Delete(t.Context(), m.Receipt)
	hide(t, s.Dead, m.Receipt, 0)
	one(t, s.Dead, long)
}

// receivesFromBus compares JSON values, because the bus does not preserve whitespace.
func receivesFromBus(t *testing.T, s Subject) {
	body := `{"specversion": "1.0", "n": 12345678901, "text": "節点 <&>", "list": [1, 2.50]}`
	var messages []queue.Outgoing
	for range queue.MaxBatch + 2 {
		messages = append(messages, queue.Outgoing{Source: BusSource, Type: "test.v1", Body: []byte(body)})
	}
	send(t, s.Bus, messages...)
	send(t, s.Bus, queue.Outgoing{Source: "queuetest/other", Type: "test.v1", Body: []byte(body)})
	send(t, s.Bus)
	for _, m := range gather(t, s.Queue, len(messages), long) {
		var got, want any
		if err := json.Unmarshal(m.Body, &got); err != nil {
			t.Fatalf("%s: %v", m.Body, err)
		}
		if err := json.Unmarshal([]byte(body), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	nothing(t, s.Queue)
	for name, bad := range map[string]queue.Outgoing{
		"not JSON":  {Source: BusSource, Type: "test.v1", Body: []byte("a")},
		"too large": {Source: BusSource, Type: "test.v1", Body: []byte(`{"a":"` + strings.Repeat("x", queue.MaxBody) + `"}`)},
	} {
		if err := s.Bus.Send(t.Context(), bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
