package host

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Options say how Poll works. Zero values mean the defaults.
type Options struct {
	// Parallel is how many messages are handled at a time: 10 by default, 1 for
	// a service that is not safe for concurrent use.
	Parallel int
	// Deadline is how long a handler may take, a minute by default: its context
	// ends then.
	Deadline time.Duration
	// Visibility is how long a message stays hidden at a time, 15 s by default.
	// It is extended at each third while the handler runs, so that a handler may
	// take its whole deadline, and yet a worker that dies hides its messages for
	// no longer than this.
	Visibility time.Duration
	// Wait is how long one receive waits for a message: 20 s, SQS's longest.
	Wait time.Duration
	// Grace is how long running handlers may go on once the worker must stop:
	// 20 s, which leaves 10 of Kubernetes' 30.
	Grace time.Duration
	// Allowed says whether this replica may receive now; nil means always. A
	// replica that does not lead must leave the messages to the one that does.
	Allowed func(ctx context.Context) (bool, error)
	// Told hears of receives that failed; nil hears nothing.
	Told *Trouble
	// Beat is called whenever the worker has moved, for a health probe.
	Beat func()
}

// askAgain is the pause before Allowed is asked again.
const askAgain = time.Second

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	if o.Parallel <= 0 {
		o.Parallel = 10
	}
	set(&o.Deadline, time.Minute)
	set(&o.Visibility, 15*time.Second)
	set(&o.Wait, 20*time.Second)
	set(&o.Grace, 20*time.Second)
	if o.Allowed == nil {
		o.Allowed = func(context.Context) (bool, error) { return true, nil }
	}
	if o.Beat == nil {
		o.Beat = func() {}
	}
	return o
}

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
	p := poller{Worker: w, Options: o, free: make(chan struct{}, o.Parallel), running: map[string]struct{}{}}
	for range o.Parallel {
		p.free <- struct{}{}
	}
	// Handlers outlive the order to stop, by at most the grace period.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	err := p.receive(ctx, work)
	p.stop(work, cancel)
	return err
}

// poller is one run of Poll.
type poller struct {
	Worker
	Options
	// free has a token for each handler that could be started.
	free chan struct{}

	mu sync.Mutex
	// running are the receipts of messages that are being handled.
	running map[string]struct{}
}

// receive takes messages and starts them until ctx ends.
func (p *poller) receive(ctx, work context.Context) error {
	pause := backoff.NewExponentialBackOff()
	pause.MaxInterval = 30 * time.Second
	proved := false
	for ctx.Err() == nil {
		allowed, err := p.Allowed(ctx)
		if err == nil && !allowed {
			p.Beat()
			sleep(ctx, askAgain)
			continue
		}
		if err == nil {
			err = p.batch(ctx, work)
		}
		switch {
		case ctx.Err() != nil:
			// What fails because we stop is no trouble.
		case err == nil:
			proved = true
			p.Beat()
			pause.Reset()
		case !proved && fault.Is(err, fault.Missing, fault.Denied, fault.Invalid):
			return fmt.Errorf("polling the queue of %s: %w", p.Service, err)
		default:
			p.Told.Happened(p.Now(), fmt.Errorf("polling the queue of %s: %w", p.Service, err))
			sleep(ctx, pause.NextBackOff())
		}
	}
	return nil
}

// batch receives what can be started now, and starts it.
func (p *poller) batch(ctx, work context.Context) error {
	slots := p.take(ctx)
	if slots == 0 {
		return nil
	}
	messages, err := p.Queue.Receive(ctx, slots, p.Wait, p.Visibility)
	for range slots - len(messages) {
		p.free <- struct{}{}
	}
	for _, m := range messages {
		if ctx.Err() != nil {
			// It arrived as we were told to stop: somebody else can have it.
			p.giveBack(work, m.Receipt)
			p.free <- struct{}{}
			continue
		}
		p.note(m.Receipt)
		go p.handle(work, m)
	}
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
	for slots < min(queue.MaxBatch, p.Parallel) {
		select {
		case <-p.free:
			slots++
		default:
			return slots
		}
	}
	return slots
}

// handle deals with one message and keeps it hidden while the handler runs, past
// its deadline too: a second worker on the same message would be harmless, but
// never helpful.
func (p *poller) handle(work context.Context, m queue.Message) {
	defer func() { p.free <- struct{}{} }()
	defer p.forget(m.Receipt)
	limited, cancel := context.WithTimeout(work, p.Deadline)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go p.extend(work, m, done)
	p.Do(limited, m)
	p.Beat()
}

func (p *poller) extend(work context.Context, m queue.Message, done <-chan struct{}) {
	third := time.NewTicker(p.Visibility / 3)
	defer third.Stop()
	for {
		select {
		case <-done:
			return
		case <-work.Done():
			return
		case <-third.C:
			err := p.Queue.Hide(work, m.Receipt, p.Visibility)
			if err != nil && !fault.Is(err, fault.Missing) {
				p.Told.Happened(p.Now(), fmt.Errorf("keeping a message of %s hidden: %w", p.Service, err))
			}
		}
	}
}

func (p *poller) note(receipt string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[receipt] = struct{}{}
}

func (p *poller) forget(receipt string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, receipt)
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
