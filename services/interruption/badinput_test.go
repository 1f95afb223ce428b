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

// entries are those of the corpus whose name has the text.
func entries(t *testing.T, text string) []noticetest.Entry {
	t.Helper()
	var out []noticetest.Entry
	for _, e := range noticetest.Corpus(start) {
		if strings.Contains(e.Name, text) {
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		t.Fatalf("the corpus has nothing of %q", text)
	}
	return out
}

// trueWarning is a true spot warning of ours.
func trueWarning(t *testing.T) []byte { return entries(t, "spot: as AWS writes it")[0].Body }

// refused hands over a body, of which nothing may come.
func refused(t *testing.T, name string, body []byte, want ...fault.Kind) {
	t.Helper()
	b := corpusBench()
	err := b.deliver(t, noticetest.Entry{Body: body})
	if !fault.Is(err, want...) || len(b.said) > 0 {
		t.Errorf("%s: %v, and %d facts; want %v and none", name, err, len(b.said), want)
	}
}

// TestForgedEvents are those that somebody else made up: of our instance in
// another's name, and envelopes of our own that interruption does not take.
func TestForgedEvents(t *testing.T) {
	true1 := string(trueWarning(t))
	refused(t, "of our own source", []byte(strings.Replace(true1, `"aws.ec2"`, `"com.example"`, 1)), fault.Foreign)
	refused(t, "of a source in capitals", []byte(strings.Replace(true1, `"aws.ec2"`, `"AWS.EC2"`, 1)), fault.Poison)
	refused(t, "of two instances", []byte(strings.Replace(true1, noticetest.Ours[0], noticetest.Ours[1], 1)), fault.Poison)
	refused(t, "in a detail alone", []byte(`{"detail":`+true1+`}`), fault.Poison)
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
			bench := corpusBench()
			if err := bench.deliver(t, noticetest.Entry{Body: body}); err == nil || len(bench.said) > 0 || bench.asked > 0 {
				t.Errorf("an envelope %s of cluster %s: %v, %d facts, %d calls", e.Type, of.Name, err, len(bench.said), bench.asked)
			}
		}
	}
}

func TestForeignAccountAndRegion(t *testing.T) {
	for _, e := range append(entries(t, "of another account"), entries(t, "of another region")...) {
		refused(t, e.Name, e.Body, fault.Foreign, fault.Poison)
	}
}

// TestDuplicatedEvents delivers one warning ten times: each says the same fact with
// the same id, so that whoever hears it can tell, and EC2 is asked once.
func TestDuplicatedEvents(t *testing.T) {
	b := corpusBench()
	for range 10 {
		if err := b.deliver(t, noticetest.Entry{Body: trueWarning(t)}); err != nil {
			t.Fatal(err)
		}
		b.now = b.now.Add(time.Second)
	}
	for _, said := range b.said[1:] {
		if said.ID != b.said[0].ID {
			t.Errorf("%s and %s are ids of the same warning", b.said[0].ID, said.ID)
		}
	}
	if len(b.said) != 10 || b.asked != 1 {
		t.Errorf("%d facts and %d calls, want 10 and 1", len(b.said), b.asked)
	}
}

// TestHoursOldEvents asks nobody about what no longer means anything.
func TestHoursOldEvents(t *testing.T) {
	for _, ago := range []time.Duration{11 * time.Minute, 6 * time.Hour, 14 * 24 * time.Hour} {
		b := corpusBench()
		b.now = start.Add(ago)
		err := b.deliver(t, noticetest.Entry{Body: trueWarning(t)})
		if !fault.Is(err, fault.Stale) || len(b.said) > 0 || b.asked > 0 {
			t.Errorf("%s later: %v, %d facts, %d calls", ago, err, len(b.said), b.asked)
		}
	}
}

// TestEventsFromTheFuture are acted on, and by the queue's clock: no deadline is
// later than what AWS gives from the moment that the queue took the event.
func TestEventsFromTheFuture(t *testing.T) {
	for _, e := range append(entries(t, "after the queue's stamp"), entries(t, "said in the year 9999")...) {
		b := corpusBench()
		if err := b.deliver(t, e); err != nil {
			t.Errorf("%s: %v", e.Name, err)
		}
		for _, f := range b.facts(t) {
			if f.Deadline.After(start.Add(120 * time.Second)) {
				t.Errorf("%s: its deadline is %s after the queue's stamp", e.Name, f.Deadline.Sub(start))
			}
		}
	}
}

// TestHalfTruncatedEvents cuts a true warning at every byte.
func TestHalfTruncatedEvents(t *testing.T) {
	whole := trueWarning(t)
	for i := range whole {
		refused(t, fmt.Sprintf("cut after %d bytes", i), whole[:i], fault.Poison)
	}
}

// TestAMebibyte parks what is too large with all of its bytes, and what follows it
// is not held up.
func TestAMebibyte(t *testing.T) {
	var bodies [][]byte
	want := 0
	for _, e := range entries(t, "1048576 bytes") {
		bodies = append(bodies, e.Body)
		want += len(e.Body)
	}
	good := goodOnes(1)
	c := serve(t, append(bodies, good...))
	got := 0
	for _, letter := range c.letters {
		got += len(letter.Body)
	}
	// A letter's attributes share the limit with its body, and the largest is cut.
	if count := len(c.letters); count != len(bodies) || got < want*99/100 {
		t.Errorf("%d dead letters of %d bytes in all, want %d of %d", count, got, len(bodies), want)
	}
	if at, known := c.handled[string(good[0])]; !known || at > time.Second {
		t.Errorf("a good message behind them was dealt with after %s (%t)", at, known)
	}
}

func TestDeeplyNested(t *testing.T) {
	for _, levels := range []int{33, 1000, 100_000} {
		for _, brackets := range [][2]string{{"[", "]"}, {`{"a":`, "}"}} {
			text := strings.Repeat(brackets[0], levels) + "1" + strings.Repeat(brackets[1], levels)
			refused(t, fmt.Sprintf("%d levels of %s", levels, brackets[0]), []byte(`{"source":"aws.ec2","x":`+text+`}`), fault.Poison)
			refused(t, fmt.Sprintf("%d open levels of %s", levels, brackets[0]), []byte(strings.Repeat(brackets[0], levels)), fault.Poison)
		}
	}
}

// account is one that two clusters and others share.
type account struct {
	*bench
	mu         sync.Mutex
	calls, ids int
}

func (a *account) DescribeInstances(_ context.Context, f cloud.InstanceFilter) ([]cloud.Instance, error) {
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

func (a *account) Send(ctx context.Context, messages ...queue.Outgoing) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bench.Send(ctx, messages...)
}

// TestNothingForeignIsTouched lets a hundred thousand events of another cluster of
// the account come, about five thousand of its instances: nothing is said of any,
// and each is asked for once, in company.
func TestNothingForeignIsTouched(t *testing.T) {
	const instances, repeats = 5_000, 20
	synctest.Test(t, func(t *testing.T) {
		a := &account{bench: corpusBench()}
		a.EC2, a.Bus = a, a
		for range repeats {
			work := make(chan int)
			var all sync.WaitGroup
			for range Options().Parallel {
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
		if len(a.said) > 0 || a.ids != instances || a.calls > instances/50 {
			t.Errorf("%d facts, %d calls for %d ids", len(a.said), a.calls, a.ids)
		}
	})
}
