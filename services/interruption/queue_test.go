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

// queueLatency is the duration of a call to the queue.
const queueLatency = 10 * time.Millisecond

// remoteQueue is a queue with latency.
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

// queueRun is the service with its queue in virtual time.
type queueRun struct {
	*fixture
	mu          sync.Mutex
	queue, dead *memqueue.Queue
	began       time.Time
	// handled has the time at which each message was last handled, by its body.
	handled map[string]time.Duration
	// stats and deadLetters are the values at the end, read before the bubble ends.
	stats       memqueue.Stats
	deadLetters []queue.Message
}

// Send acts as the bus, for concurrent callers.
func (c *queueRun) Send(ctx context.Context, messages ...queue.Outgoing) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fixture.Send(ctx, messages...)
}

// runQueue lets the service handle the bodies for four minutes: twice as long as messages are
// retried.
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
		// The fixture's clock follows the bubble's.
		c.Now = func() time.Time { return start.Add(time.Since(c.began)) }
		c.Bus = c
		for _, body := range bodies {
			c.queue.PutRaw(body)
		}
		worker := host.Worker{
			Service: "interruption", Queue: remoteQueue{c.queue}, Dead: remoteQueue{c.dead}, Now: time.Now,
			Handle: func(ctx context.Context, m queue.Message) error {
				m.Sent = start
				return c.Handle(ctx, m)
			},
			HandleBatch: func(ctx context.Context, batch []host.Delivery) {
				for i := range batch {
					batch[i].Message.Sent = start
				}
				c.Batch(ctx, batch)
			},
			Log: func(l host.LogLine) {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.handled[string(l.Message.Body)] = time.Since(c.began)
				if l.DispositionErr != nil {
					t.Errorf("%.100q: %v", l.Message.Body, l.DispositionErr)
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
		if err := broker.CheckConservation(); err != nil {
			t.Error(err)
		}
		c.stats, c.deadLetters = c.queue.Stats(), receiveAll(t, c.dead)
	})
	return c
}

// validWarnings returns n valid warnings with different ids.
func validWarnings(n int) [][]byte {
	var out [][]byte
	for i := range n {
		out = append(out, fmt.Appendf(nil, `{"version":"0","id":"good-%d","detail-type":%q,"source":"aws.ec2","account":%q,"time":%q,"region":%q,`+
			`"resources":[],"detail":{"instance-id":%q,"instance-action":"terminate"}}`,
			i, spotType, noticetest.Account, start.Add(-time.Second).Format(time.RFC3339), noticetest.Region, noticetest.Ours[0]))
	}
	return out
}

// TestCorpusThroughQueue puts the whole corpus into one queue before valid messages. Each message
// is deleted, or moved to the DLQ with a reason and its bytes, and delays the valid ones at most as
// much as two valid ones would.
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
	wantDead := 0
	for _, n := range poison {
		wantDead += n
	}
	if stats.Deleted != len(bodies)+len(good) || stats.Visible+stats.Hidden+stats.Dead+stats.Expired != 0 {
		t.Errorf("of %d messages: %+v", len(bodies)+len(good), stats)
	}
	if len(crowded.deadLetters) != wantDead {
		t.Errorf("%d DLQ messages, want %d", len(crowded.deadLetters), wantDead)
	}
	for _, m := range crowded.deadLetters {
		body := string(m.Body)
		if m.Attributes[host.EncodingAttribute] == "base64" {
			decoded, err := base64.StdEncoding.DecodeString(body)
			if err != nil {
				t.Errorf("%.80q: %v", body, err)
			}
			body = string(decoded)
		}
		if digest := m.Attributes[host.DigestAttribute]; digest != "" {
			// If the message with its attributes is too large, it has the start of the body and
			// the digest of the whole.
			whole := bySum[digest]
			if !strings.HasPrefix(whole, body) || len(body) < len(whole)*99/100 {
				t.Errorf("the body has %d of %d bytes", len(body), len(whole))
			}
			body = whole
		}
		if poison[body]--; poison[body] < 0 {
			t.Errorf("%.200q is in the DLQ, but is not poison or was changed", body)
		}
		if strings.TrimSpace(m.Attributes["reason"]) == "" || m.Attributes["kind"] != "poison" {
			t.Errorf("%.80q is in the DLQ without a reason: %v", body, m.Attributes)
		}
	}
	checkDelay(t, alone, crowded, good, len(bodies))
}

// checkDelay limits the delay of the valid messages: the messages before them may take twice as
// long as valid messages.
func checkDelay(t *testing.T, alone, crowded *queueRun, good [][]byte, before int) {
	t.Helper()
	worst := func(c *queueRun) (last time.Duration) {
		for _, body := range good {
			at, ok := c.handled[string(body)]
			if !ok {
				t.Fatalf("%.80q was not handled", body)
			}
			last = max(last, at)
		}
		return last
	}
	share := float64(before+len(good)) / float64(len(good))
	allowed := time.Duration(2 * share * float64(worst(alone)))
	t.Logf("%d valid messages: the last after %s; behind %d others: after %s", len(good), worst(alone), before, worst(crowded))
	if worst(crowded) > allowed {
		t.Errorf("the last valid message was handled after %s, want at most %s", worst(crowded), allowed)
	}
}

// receiveAll receives all messages of a queue.
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
