package replay_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/deadletter"
	"github.com/joist-autoscaler/joist/services/cli/internal/replay"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// desk has a queue, its dead letters, and a clock that only pauses move.
type desk struct {
	at       time.Time
	to, dead *memqueue.Queue
	letters  []deadletter.DeadLetter
	pauses   []time.Duration
	// paused is called at each pause.
	paused func(n int)
}

func newDesk(t *testing.T, letters int) *desk {
	t.Helper()
	var all [][]byte
	for i := range letters {
		all = append(all, body(t, i, time.Minute))
	}
	return deskOf(t, all...)
}

// deskOf has dead letters of these bodies.
func deskOf(t *testing.T, letters ...[]byte) *desk {
	t.Helper()
	d := &desk{at: now}
	broker := memqueue.New(memqueue.Options{Now: func() time.Time { return d.at }, Seed: 1})
	d.to, d.dead = broker.Queue("to", memqueue.QueueOptions{}), broker.Queue("dead", memqueue.QueueOptions{})
	for _, text := range letters {
		if err := d.dead.Send(t.Context(), queue.Outgoing{Body: text}); err != nil {
			t.Fatal(err)
		}
	}
	messages, _, err := deadletter.Peek(t.Context(), d.dead, 1000, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		d.letters = append(d.letters, d.reader().Read(m, now))
	}
	return d
}

func (d *desk) reader() deadletter.Reader {
	return deadletter.Reader{Service: "lifecycle", Cluster: event.Cluster{Name: "prod"}}
}

func (d *desk) runner() replay.Runner {
	return replay.Runner{
		Dead: d.dead, To: d.to, Reader: d.reader(), Rate: 10, CanaryWait: 3 * time.Second, Limit: 100, Now: func() time.Time { return d.at },
		Pause: func(ctx context.Context, wait time.Duration) error {
			d.pauses = append(d.pauses, wait)
			d.at = d.at.Add(wait)
			if d.paused != nil {
				d.paused(len(d.pauses))
			}
			return ctx.Err()
		},
	}
}

func (d *desk) left() (there, here int) {
	return d.dead.Stats().Visible, d.to.Stats().Visible
}

// TestRate: between two letters it waits as long as the rate says, and not before the
// first.
func TestRate(t *testing.T) {
	d := newDesk(t, 25)
	out, err := d.runner().Resend(t.Context(), d.letters, d.letters, 0)
	if there, here := d.left(); err != nil || out.Replayed != 25 || !out.Complete(25) || there != 0 || here != 25 {
		t.Fatalf("%+v, %v: %d there and %d here", out, err, there, here)
	}
	if len(d.pauses) != 24 || d.at.Sub(now) != 2400*time.Millisecond {
		t.Errorf("it paused %d times, for %s", len(d.pauses), d.at.Sub(now))
	}
}

// TestOnlyWhatIsChosenGoes: the others are there again at once.
func TestOnlyWhatIsChosenGoes(t *testing.T) {
	d := newDesk(t, 12)
	out, err := d.runner().Resend(t.Context(), d.letters[3:7], d.letters, 0)
	if there, here := d.left(); err != nil || out.Replayed != 4 || there != 8 || here != 4 {
		t.Errorf("%+v, %v: %d there and %d here", out, err, there, here)
	}
}

// TestCanaries: letters that come back dead end it, by whatever ids they have then; those
// that do not let the others follow.
func TestCanaries(t *testing.T) {
	for _, test := range []struct {
		name               string
		dies               bool
		replayed, returned int
	}{{"live", false, 9, 0}, {"die", true, 3, 1}} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t, 9)
			r := d.runner()
			r.Canary = 3
			d.paused = func(n int) {
				// Two pauses lie between three canaries; the third is the watch.
				if test.dies && n == 3 {
					if err := d.dead.Send(t.Context(), d.letters[0].Outgoing()); err != nil {
						t.Fatal(err)
					}
				}
			}
			out, err := r.Resend(t.Context(), d.letters, d.letters, 0)
			if err != nil || out.Replayed != test.replayed || len(out.Returned) != test.returned || len(out.Unseen) > 0 || out.Complete(9) == test.dies {
				t.Errorf("%+v, %v", out, err)
			}
		})
	}
}

// TestATwinIsNoReturn: a letter of the same bytes that was there before did not come back.
func TestATwinIsNoReturn(t *testing.T) {
	twin := body(t, 1, time.Minute)
	d := deskOf(t, twin, twin, twin, twin)
	r := d.runner()
	r.Canary = 1
	if out, err := r.Resend(t.Context(), d.letters, d.letters, 0); err != nil || out.Replayed != 4 || len(out.Returned) > 0 {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestUnseen: a letter that somebody else holds is named, and nothing waits for it for
// ever.
func TestUnseen(t *testing.T) {
	d := newDesk(t, 5)
	held, err := d.dead.Receive(t.Context(), 1, 0, time.Hour)
	if err != nil || len(held) != 1 {
		t.Fatal(err)
	}
	out, err := d.runner().Resend(t.Context(), d.letters, d.letters, 0)
	if err != nil || out.Replayed != 4 || len(out.Unseen) != 1 || out.Unseen[0] != held[0].ID {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestInterrupted: it stops between two letters, and all that it held is there again.
func TestInterrupted(t *testing.T) {
	d := newDesk(t, 30)
	ctx, stop := context.WithCancel(t.Context())
	d.paused = func(n int) {
		if n == 12 {
			stop()
		}
	}
	out, err := d.runner().Resend(ctx, d.letters, d.letters, 0)
	if there, here := d.left(); err != nil || !out.Interrupted || out.Replayed != 12 || there != 18 || here != 12 || len(out.Unseen) > 0 {
		t.Errorf("%+v, %v: %d there and %d here", out, err, there, here)
	}
}

// refusing is a queue that takes nothing.
type refusing struct{}

func (refusing) Send(context.Context, ...queue.Outgoing) error { return errors.New("full") }

// TestSendFails: what could not be sent is where it was.
func TestSendFails(t *testing.T) {
	d := newDesk(t, 3)
	r := d.runner()
	r.To = refusing{}
	out, err := r.Resend(t.Context(), d.letters, d.letters, 0)
	if there, _ := d.left(); err == nil || out.Replayed != 0 || len(out.Doubtful) > 0 || there != 3 {
		t.Errorf("%+v, %v: %d there", out, err, there)
	}
}

// TestSaid: letters that were said by other means go nowhere, and are gone.
func TestSaid(t *testing.T) {
	d := newDesk(t, 4)
	r := d.runner()
	r.To = replay.Discard{}
	told := ""
	r.Tell = func(n int) { told += strconv.Itoa(n) }
	out, err := r.Resend(t.Context(), d.letters, d.letters, 0)
	if there, here := d.left(); err != nil || out.Replayed != 4 || there != 0 || here != 0 || told != "1234" {
		t.Errorf("%+v, %v: %d there and %d here, told %s", out, err, there, here, told)
	}
}
