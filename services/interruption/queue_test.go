package interruption

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joist-autoscaler/joist/shared/event/noticetest"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// queueLatency is what a call to the queue takes in the tests below.
const queueLatency = 10 * time.Millisecond

// remoteQueue is a queue at the end of a wire.
type remoteQueue struct{ *memqueue.Queue }

func (f remoteQueue) Receive(ctx context.Context, limit int, wait, visibility time.Duration) ([]queue.Message, error) {
	time.Sleep(queueLatency)
	return f.Queue.Receive(ctx, limit, wait, visibility)
}

func (f remoteQueue) Delete(ctx context.Context, receipts ...string) error {
	time.Sleep(queueLatency)
	return f.Queue.Delete(ctx, receipts...)
}

func (f remoteQueue) Hide(ctx context.Context, receipt string, visibility time.Duration) error {
	time.Sleep(queueLatency)
	return f.Queue.Hide(ctx, receipt, visibility)
}

func (f remoteQueue) Send(ctx context.Context, messages ...queue.Outgoing) error {
	time.Sleep(queueLatency)
	return f.Queue.Send(ctx, messages...)
}

// queueRun is the service behind its queue, in virtual time.
type queueRun struct {
	*fixture
	mu          sync.Mutex
	queue, dead *memqueue.Queue
	began       time.Time
	// handled says when each message was dealt with for the last time, by its body.
	handled map[string]time.Duration
	// stats are the queue's, and letters are the dead letters, at the end: the
	// bubble's time ends with it.
	stats       memqueue.Stats
	deadLetters []queue.Message
}

// Send is the bus, for many callers.
func (c *queueRun) Send(ctx context.Context, messages ...queue.Outgoing) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fixture.Send(ctx, messages...)
}

// runQueue lets the service deal with bodies for four minutes: twice as long as
// anything is tried again.
func runQueue(t *testing.T, bodies [][]byte) *queueRun {
	t.Helper()
	c := &queueRun{fixture: newCorpusFixture(), handled: map[string]time.Duration{}}
	synctest.Test(t, func(t *testing.T) {
		broker := memqueue.New(memqueue.Options{Now: time.Now, Idle: func(ctx context.Context, until time.Time) error {
			select {
			case <-time.After(min(time.Until(until), 100*time.Millisecond)):
			case <-ctx.Done():
			}
			return ctx.Err()
		}})
		c.dead = broker.Queue("dead", memqueue.QueueOptions{})
		c.queue = broker.Queue("notices", memqueue.QueueOptions{MaxReceives: 200, DeadLetter: "dead"})
		c.began = time.Now()
		// The bench's time runs as the bubble's does.
		c.Now = func() time.Time { return start.Add(time.Since(c.began)) }
		c.Bus = c
		for _, body := range bodies {
			c.queue.Put(body)
		}
		worker := host.Worker{
			Service: "interruption", Queue: remoteQueue{c.queue}, Dead: remoteQueue{c.dead}, Now: time.Now,
			Handle: func(ctx context.Context, m queue.Message) error {
				m.Sent = start
				return c.Handle(ctx, m)
			},
			Batch: func(ctx context.Context, batch []host.Delivery) {
				for i := range batch {
					batch[i].Message.Sent = start
				}
				c.Batch(ctx, batch)
			},
			Log: func(l host.Line) {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.handled[string(l.Message.Body)] = time.Since(c.began)
				if l.Err != nil {
					t.Errorf("%.100q: %v", l.Message.Body, l.Err)
				}
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- host.Poll(ctx, worker, Options()) }()
		time.Sleep(4 * time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := broker.Conserved(); err != nil {
			t.Error(err)
		}
		c.stats, c.deadLetters = c.queue.Stats(), receiveAll(t, c.dead)
	})
	return c
}

// validWarnings are true warnings, each with an id of its own.
func validWarnings(n int) [][]byte {
	var out [][]byte
	for i := range n {
		out = append(out, fmt.Appendf(nil, `{"version":"0","id":"good-%d","detail-type":%q,"source":"aws.ec2","account":%q,"time":%q,"region":%q,`+
			`"resources":[],"detail":{"instance-id":%q,"instance-action":"terminate"}}`,
			i, spotType, noticetest.Account, start.Add(-time.Second).Format(time.RFC3339), noticetest.Region, noticetest.Ours[0]))
	}
	return out
}

// TestCorpusThroughQueue puts the whole corpus into one queue, in front of good
// messages: nothing is lost, everything is either deleted or parked with a reason
// and its bytes, and no odd one costs the good ones more than two good ones.
func TestCorpusThroughQueue(t *testing.T) {
	good := validWarnings(200)
	alone := runQueue(t, good)
	var bodies [][]byte
	poison, bySum := map[string]int{}, map[string]string{}
	for _, e := range noticetest.Corpus(start) {
		bodies = append(bodies, e.Body)
		if e.Want == noticetest.Poison {
			poison[string(e.Body)]++
			sum := sha256.Sum256(e.Body)
			bySum[hex.EncodeToString(sum[:])] = string(e.Body)
		}
	}
	crowded := runQueue(t, slices.Concat(bodies, good))
	stats := crowded.stats
	parked := 0
	for _, n := range poison {
		parked += n
	}
	if stats.Deleted != len(bodies)+len(good) || stats.Visible+stats.Hidden+stats.Dead+stats.Expired != 0 {
		t.Errorf("of %d messages: %+v", len(bodies)+len(good), stats)
	}
	if len(crowded.deadLetters) != parked {
		t.Errorf("%d dead letters, want %d", len(crowded.deadLetters), parked)
	}
	for _, letter := range crowded.deadLetters {
		body := string(letter.Body)
		if letter.Attributes[host.EncodingAttribute] == "base64" {
			decoded, err := base64.StdEncoding.DecodeString(body)
			if err != nil {
				t.Errorf("%.80q: %v", body, err)
			}
			body = string(decoded)
		}
		if digest := letter.Attributes[host.DigestAttribute]; digest != "" {
			// Where body and attributes exceed what a queue takes, the letter says whose
			// beginning it is.
			whole := bySum[digest]
			if !strings.HasPrefix(whole, body) || len(body) < len(whole)*99/100 {
				t.Errorf("%d of %d bytes were kept", len(body), len(whole))
			}
			body = whole
		}
		if poison[body]--; poison[body] < 0 {
			t.Errorf("%.200q was parked, and is no poison, or not as it came", body)
		}
		if strings.TrimSpace(letter.Attributes["reason"]) == "" || letter.Attributes["kind"] != "poison" {
			t.Errorf("%.80q was parked without a reason: %v", body, letter.Attributes)
		}
	}
	checkDelay(t, alone, crowded, good, len(bodies))
}

// checkDelay compares when the good messages were dealt with: each may wait for what is
// in front of it, at the pace at which good messages alone are dealt with.
func checkDelay(t *testing.T, alone, crowded *queueRun, good [][]byte, before int) {
	t.Helper()
	worst := func(c *queueRun) (last time.Duration) {
		for _, body := range good {
			at, known := c.handled[string(body)]
			if !known {
				t.Fatalf("%.80q was never dealt with", body)
			}
			last = max(last, at)
		}
		return last
	}
	share := float64(before+len(good)) / float64(len(good))
	free := time.Duration(2 * share * float64(worst(alone)))
	t.Logf("%d good messages alone: the last after %s; behind %d odd ones: after %s", len(good), worst(alone), before, worst(crowded))
	if worst(crowded) > free {
		t.Errorf("the last good message was dealt with after %s, want at most %s", worst(crowded), free)
	}
}

// receiveAll are all dead letters.
func receiveAll(t *testing.T, q *memqueue.Queue) (all []queue.Message) {
	t.Helper()
	for {
		messages, err := q.Receive(t.Context(), queue.MaxBatch, 0, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if len(messages) == 0 {
			return all
		}
		all = append(all, messages...)
	}
}
