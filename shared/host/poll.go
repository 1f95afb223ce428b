package host

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

const (
	// askAgain is the pause before Allowed is asked again.
	askAgain = time.Second
	// jitter is how much of a pause may be added or left out.
	jitter = 0.25
	// answerTime is what a receive gets beyond its wait for a message.
	answerTime = 2 * time.Second
)

// Poll is the long-polling host. It takes no more messages than it can start
// at once, so a message's visibility is the deadline of its handler and a
// margin: neither waiting behind others nor a dead worker hides it for longer.
//
// When the context ends it stops receiving, lets handlers finish within Grace,
// then cancels them and gives back what still runs. It returns nil then. It
// returns an error when the very first receive shows that the queue does not
// exist or may not be read, for only a person can mend that.
func Poll(ctx context.Context, w Worker, o Options) error {
	o = o.withDefaults()
	if o.Lanes > 0 {
		w.Queue, w.Dead = queue.Gather(w.Queue, o.Lanes), queue.GatherSender(w.Dead, o.Lanes)
	}
	if w.Again == nil {
		w.Again = o.Again
	}
	if w.Batch == nil {
		w.Batch = o.Batch
	}
	if w.Told == nil {
		w.Told = o.Told
	}
	p := newPoller(w, o)
	// Handlers outlive the order to stop, by at most the grace period.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go p.keep(work)
	err := p.receiveAll(ctx, work)
	p.stop(work, cancel)
	return err
}

// poller is one run of Poll.
type poller struct {
	Worker
	Options
	// free has a token for each handler that could be started, and each is good for
	// so many messages.
	free chan struct{}
	each int
	// idle is where goroutines wait that have dealt with what they were started for.
	idle chan *flight
	// proved is set once a receive has succeeded.
	proved atomic.Bool

	mu sync.Mutex
	// running are the messages that are being handled.
	running map[*flight]struct{}
}

func newPoller(w Worker, o Options) *poller {
	p := &poller{Worker: w, Options: o, each: 1, idle: make(chan *flight), running: map[*flight]struct{}{}}
	handlers := o.Parallel
	if w.Batch != nil {
		p.each = min(queue.MaxBatch, o.Parallel)
		handlers /= p.each
	}
	p.free = make(chan struct{}, handlers)
	for range handlers {
		p.free <- struct{}{}
	}
	return p
}

// receiveAll runs the receivers until ctx ends, or until one finds what only a
// person can mend.
func (p *poller) receiveAll(ctx, work context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var unmendable atomic.Pointer[error]
	var all sync.WaitGroup
	for range p.Receivers {
		all.Go(func() {
			if err := p.receive(ctx, work); err != nil {
				unmendable.CompareAndSwap(nil, &err)
				cancel(err)
			}
		})
	}
	all.Wait()
	if err := unmendable.Load(); err != nil {
		return *err
	}
	return nil
}

// receive takes messages and starts them until ctx ends.
func (p *poller) receive(ctx, work context.Context) error {
	pause := backoff.NewExponentialBackOff()
	pause.MaxInterval, pause.RandomizationFactor = p.Pause, jitter
	wait := p.Wait
	for ctx.Err() == nil {
		allowed, err := p.Allowed(ctx)
		if err == nil && !allowed {
			p.Beat()
			sleep(ctx, askAgain)
			continue
		}
		if err == nil {
			err = p.batch(ctx, work, wait)
		}
		switch {
		case ctx.Err() != nil:
			// What fails because we stop is no trouble.
		case err == nil:
			p.proved.Store(true)
			p.Beat()
			pause.Reset()
			wait = p.Wait
		case !p.proved.Load() && fault.Is(err, fault.Missing, fault.Denied, fault.Invalid):
			return fmt.Errorf("polling the queue of %s: %w", p.Service, err)
		default:
			p.Options.Told.Happened(p.Now(), fmt.Errorf("polling the queue of %s: %w", p.Service, err))
			sleep(ctx, pause.NextBackOff())
			// Until it answers again, a question that gets lost must not be waited
			// for as for a message.
			wait = 0
		}
	}
	return nil
}

// batch receives what can be started now, and starts it.
func (p *poller) batch(ctx, work context.Context, wait time.Duration) error {
	slots := p.take(ctx)
	if slots == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, wait+answerTime)
	messages, err := p.Queue.Receive(limited, slots*p.each, wait, p.Visibility)
	cancel()
	needed := (len(messages) + p.each - 1) / p.each
	p.release(slots - needed)
	if ctx.Err() != nil {
		// They arrived as we were told to stop: somebody else can have them.
		for _, m := range messages {
			p.giveBack(work, m.Receipt)
		}
		p.release(needed)
		return err
	}
	p.start(work, messages)
	return err
}

// take waits for a free slot and takes up to a batch of them.
func (p *poller) take(ctx context.Context) (slots int) {
	select {
	case <-p.free:
		slots = 1
	case <-ctx.Done():
		return 0
	}
	for slots < min(queue.MaxBatch/p.each, cap(p.free)) {
		select {
		case <-p.free:
			slots++
		default:
			return slots
		}
	}
	return slots
}

func (p *poller) release(slots int) {
	for range slots {
		p.free <- struct{}{}
	}
}

// start handles messages, all at the same time and with the same deadline.
func (p *poller) start(work context.Context, messages []queue.Message) {
	if len(messages) == 0 {
		return
	}
	f := p.note(messages)
	select {
	case p.idle <- f:
	default:
		go p.serve(work, f)
	}
}

// serve deals with a flight, and then with those that follow: a goroutine whose
// stack has grown is worth keeping. There are no more of them than could be busy.
func (p *poller) serve(work context.Context, f *flight) {
	for {
		p.deals(work, f)
		select {
		case f = <-p.idle:
		case <-work.Done():
			return
		}
	}
}

// deals deals with one flight.
func (p *poller) deals(work context.Context, f *flight) {
	limited, cancel := context.WithTimeout(work, p.Deadline)
	defer cancel()
	verdicts, cancelVerdicts := context.WithTimeout(context.WithoutCancel(work), p.Deadline+verdictTime)
	defer cancelVerdicts()
	p.dealAll(limited, verdicts, f.messages, func(at int, _ *Line) {
		p.forget(f, at)
		if p.Worker.Batch == nil {
			p.release(1)
		}
		p.Beat()
	})
	if p.Worker.Batch != nil {
		p.release(1)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
