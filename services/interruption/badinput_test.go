package interruption

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/event/noticetest"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// corpusEntries returns the entries of the corpus whose names contain the text.
func corpusEntries(t *testing.T, text string) []noticetest.Entry {
	t.Helper()
	var out []noticetest.Entry
	for _, e := range noticetest.Corpus(start) {
		if strings.Contains(e.Name, text) {
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		t.Fatalf("no entry of the corpus contains %q", text)
	}
	return out
}

// spotWarning returns a valid spot warning about an owned instance.
func spotWarning(t *testing.T) []byte { return corpusEntries(t, "spot: as AWS writes it")[0].Body }

// requireRefused delivers a body and requires an error of one of the kinds and no facts.
func requireRefused(t *testing.T, name string, body []byte, want ...fault.Kind) {
	t.Helper()
	b := newCorpusFixture()
	err := b.deliverEntry(t, noticetest.Entry{Body: body})
	if !fault.Is(err, want...) || len(b.published) > 0 {
		t.Errorf("%s: got %v and %d facts, want %v and none", name, err, len(b.published), want)
	}
}

// TestForgedEvents delivers events of another source about an owned instance, and Joist
// envelopes that interruption does not consume.
func TestForgedEvents(t *testing.T) {
	warning := string(spotWarning(t))
	requireRefused(t, "another source", []byte(strings.Replace(warning, `"aws.ec2"`, `"com.example"`, 1)), fault.Foreign)
	requireRefused(t, "a source in capitals", []byte(strings.Replace(warning, `"aws.ec2"`, `"AWS.EC2"`, 1)), fault.Poison)
	requireRefused(t, "two instances", []byte(strings.Replace(warning, noticetest.Ours[0], noticetest.Ours[1], 1)), fault.Poison)
	requireRefused(t, "only a detail", []byte(`{"detail":`+warning+`}`), fault.Poison)
	for _, b := range []event.Body{
		event.NodeNoticed{Kind: event.SpotInterruption, InstanceID: noticetest.Ours[0], Noticed: start, Deadline: start.Add(time.Minute)},
		event.InstanceGone{InstanceID: noticetest.Ours[0], Shown: start},
	} {
		for _, of := range []event.Cluster{web, {Name: "other"}} {
			e, err := event.Maker{Service: "interruption", Cluster: of}.New(start, b, nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := e.Encode()
			if err != nil {
				t.Fatal(err)
			}
			bench := newCorpusFixture()
			if err := bench.deliverEntry(t, noticetest.Entry{Body: body}); err == nil || len(bench.published) > 0 || bench.describeCalls > 0 {
				t.Errorf("envelope %s of cluster %s: got %v, %d facts, %d calls", e.Type, of.Name, err, len(bench.published), bench.describeCalls)
			}
		}
	}
}

func TestForeignAccountAndRegion(t *testing.T) {
	for _, e := range append(corpusEntries(t, "of another account"), corpusEntries(t, "of another region")...) {
		requireRefused(t, e.Name, e.Body, fault.Foreign, fault.Poison)
	}
}

// TestDuplicatedEvents delivers one warning ten times: each publishes the same fact with
// the same ID, and EC2 is called once.
func TestDuplicatedEvents(t *testing.T) {
	b := newCorpusFixture()
	for range 10 {
		if err := b.deliverEntry(t, noticetest.Entry{Body: spotWarning(t)}); err != nil {
			t.Fatal(err)
		}
		b.now = b.now.Add(time.Second)
	}
	for _, fact := range b.published[1:] {
		if fact.ID != b.published[0].ID {
			t.Errorf("the facts of one warning have the ids %s and %s", b.published[0].ID, fact.ID)
		}
	}
	if len(b.published) != 10 || b.describeCalls != 1 {
		t.Errorf("%d facts and %d calls, want 10 and 1", len(b.published), b.describeCalls)
	}
}

// TestStaleEvents delivers old events: EC2 is not called for them.
func TestStaleEvents(t *testing.T) {
	for _, ago := range []time.Duration{11 * time.Minute, 6 * time.Hour, 14 * 24 * time.Hour} {
		b := newCorpusFixture()
		b.now = start.Add(ago)
		err := b.deliverEntry(t, noticetest.Entry{Body: spotWarning(t)})
		if !fault.Is(err, fault.Stale) || len(b.published) > 0 || b.describeCalls > 0 {
			t.Errorf("%s later: %v, %d facts, %d calls", ago, err, len(b.published), b.describeCalls)
		}
	}
}

// TestEventsFromTheFuture delivers events with a later time than the queue's: no deadline
// is later than the queue's time plus the warning period.
func TestEventsFromTheFuture(t *testing.T) {
	for _, e := range append(corpusEntries(t, "after the queue's stamp"), corpusEntries(t, "said in the year 9999")...) {
		b := newCorpusFixture()
		if err := b.deliverEntry(t, e); err != nil {
			t.Errorf("%s: %v", e.Name, err)
		}
		for _, f := range b.publishedFacts(t) {
			if f.Deadline.After(start.Add(120 * time.Second)) {
				t.Errorf("%s: the deadline is %s after the SentTimestamp", e.Name, f.Deadline.Sub(start))
			}
		}
	}
}

// TestTruncatedEvents cuts a valid warning at every byte.
func TestTruncatedEvents(t *testing.T) {
	whole := spotWarning(t)
	for i := range whole {
		requireRefused(t, fmt.Sprintf("cut after %d bytes", i), whole[:i], fault.Poison)
	}
}

// TestOversizedMessages requires that messages above the limit go to the DLQ with their bytes and
// do not delay later messages.
func TestOversizedMessages(t *testing.T) {
	var bodies [][]byte
	want := 0
	for _, e := range corpusEntries(t, "1048576 bytes") {
		bodies = append(bodies, e.Body)
		want += len(e.Body)
	}
	good := validWarnings(1)
	c := runQueue(t, append(bodies, good...))
	got := 0
	for _, m := range c.deadLetters {
		got += len(m.Body)
	}
	// The attributes count towards the limit of a message, so the largest body is truncated.
	if count := len(c.deadLetters); count != len(bodies) || got < want*99/100 {
		t.Errorf("%d DLQ messages with %d bytes, want %d with %d", count, got, len(bodies), want)
	}
	if at, ok := c.handled[string(good[0])]; !ok || at > time.Second {
		t.Errorf("a valid message behind them was handled after %s (%t)", at, ok)
	}
}

func TestDeeplyNested(t *testing.T) {
	for _, levels := range []int{33, 1000, 100_000} {
		for _, brackets := range [][2]string{{"[", "]"}, {`{"a":`, "}"}} {
			text := strings.Repeat(brackets[0], levels) + "1" + strings.Repeat(brackets[1], levels)
			requireRefused(t, fmt.Sprintf("%d levels of %s", levels, brackets[0]), []byte(`{"source":"aws.ec2","x":`+text+`}`), fault.Poison)
			requireRefused(t, fmt.Sprintf("%d open levels of %s", levels, brackets[0]), []byte(strings.Repeat(brackets[0], levels)), fault.Poison)
		}
	}
}

// sharedAccount is an account in which all instances belong to another cluster.
type sharedAccount struct {
	*fixture
	mu         sync.Mutex
	calls, ids int
}

func (a *sharedAccount) DescribeInstances(_ context.Context, f cloud.InstanceFilter) ([]cloud.Instance, error) {
	time.Sleep(5 * time.Millisecond)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
	a.ids += len(f.IDs)
	var out []cloud.Instance
	for _, id := range f.IDs {
		out = append(out, cloud.Instance{ID: id, State: cloud.Running, Tags: map[string]string{"kubernetes.io/cluster/other": "owned", "karpenter.sh/nodepool": "default"}})
	}
	return out, nil
}

func (a *sharedAccount) Send(ctx context.Context, messages ...queue.Outgoing) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fixture.Send(ctx, messages...)
}

// TestForeignEventsPublishNothing delivers a hundred thousand events about five thousand
// instances of another cluster in the account: no fact is published, and each instance is
// described once, in batches.
func TestForeignEventsPublishNothing(t *testing.T) {
	const instances, repeats = 5_000, 20
	synctest.Test(t, func(t *testing.T) {
		a := &sharedAccount{fixture: newCorpusFixture()}
		a.EC2, a.Bus = a, a
		for range repeats {
			work := make(chan int)
			var all sync.WaitGroup
			for range Options().MaxConcurrent {
				all.Go(func() {
					for i := range work {
						body := fmt.Appendf(nil, `{"version":"0","id":"e","detail-type":%q,"source":"aws.ec2","account":%q,"time":%q,"region":%q,"resources":[],"detail":{"instance-id":"i-%017x"}}`,
							spotType, noticetest.Account, start.Format(time.RFC3339), noticetest.Region, i+1)
						if err := a.Handle(t.Context(), queue.Message{ID: "m", Body: body, Sent: start, Receives: 1}); !fault.Is(err, fault.Foreign) {
							t.Errorf("instance %d: %v", i, err)
						}
					}
				})
			}
			for i := range instances {
				work <- i
			}
			close(work)
			all.Wait()
		}
		t.Logf("%d events: %d calls for %d ids", instances*repeats, a.calls, a.ids)
		if len(a.published) > 0 || a.ids != instances || a.calls > instances/50 {
			t.Errorf("%d facts, %d calls for %d ids", len(a.published), a.calls, a.ids)
		}
	})
}
