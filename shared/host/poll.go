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
	// standbyPause is the pause before MayReceive is called again.
	standbyPause = time.Second
	// retryJitter is the fraction by which a retry pause varies.
	retryJitter = 0.25
	// receiveMargin is the timeout of a receive beyond its long-poll wait.
	receiveMargin = 2 * time.Second
)

// Poll receives and handles messages until the context ends. It receives no more messages than it can start at once,
// so that no message is hidden while it waits behind others; a crashed worker hides a message no longer than
// Visibility.
//
// On shutdown it stops receiving, lets handlers finish within Grace, cancels them, returns unfinished messages to the
// queue, and returns nil. It returns an error if the first receive shows that the queue does not exist or access is
// denied, because a retry would not help.
func Poll(ctx context.Context, w Worker, o Options) error {
	o = o.withDefaults()
	if o.MaxCalls > 0 {
		w.Queue, w.Dead = queue.BatchCalls(w.Queue, o.MaxCalls), queue.BatchSends(w.Dead, o.MaxCalls)
	}
	if w.Backoff == nil {
		w.Backoff = o.Backoff
	}
	if w.HandleBatch == nil {
		w.HandleBatch = o.HandleBatch
	}
	if w.ErrorLog == nil {
		w.ErrorLog = o.ErrorLog
	}
	p := newPoller(w, o)
	// Handlers may outlive ctx by the grace period.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go p.extendVisibilities(work)
	err := p.runReceivers(ctx, work)
	p.shutDown(work, cancel)
	return err
}

// poller is one run of Poll.
type poller struct {
	Worker
	Options
	// slots has a token for each handler that could start. Each handler takes up to slotSize messages.
	slots    chan struct{}
	slotSize int
	// hasReceived is set once a receive has succeeded.
	hasReceived atomic.Bool

	mu sync.Mutex
	// inFlight are the batches that are being handled.
	inFlight map[*inFlightBatch]struct{}
}

func newPoller(w Worker, o Options) *poller {
	p := &poller{Worker: w, Options: o, slotSize: 1, inFlight: map[*inFlightBatch]struct{}{}}
	handlers := o.MaxConcurrent
	if w.HandleBatch != nil {
		p.slotSize = min(queue.MaxBatch, o.MaxConcurrent)
		handlers /= p.slotSize
	}
	p.slots = make(chan struct{}, handlers)
	for range handlers {
		p.slots <- struct{}{}
	}
	return p
}

// runReceivers runs the receivers until ctx ends, or until one returns an error that a retry cannot fix.
func (p *poller) runReceivers(ctx, work context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var unmendable atomic.Pointer[error]
	var all sync.WaitGroup
	for range p.Receivers {
		all.Go(func() {
			if err := p.receiveMessages(ctx, work); err != nil {
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

// receiveMessages receives messages and starts their handlers until ctx ends.
func (p *poller) receiveMessages(ctx, work context.Context) error {
	pause := backoff.NewExponentialBackOff()
	pause.MaxInterval, pause.RandomizationFactor = time.Duration(float64(p.MaxRetryPause)/(1+retryJitter)), retryJitter
	wait := p.Wait
	for ctx.Err() == nil {
		allowed, err := p.MayReceive(ctx)
		if err == nil && !allowed {
			p.Heartbeat()
			sleepContext(ctx, standbyPause)
			continue
		}
		isReceive := err == nil
		if isReceive {
			err = p.receiveBatch(ctx, work, wait)
		}
		// Also after an error: a restart does not help while SQS or the API server is unavailable.
		p.Heartbeat()
		switch {
		case ctx.Err() != nil:
			// Errors caused by shutdown are not reported.
		case err == nil:
			p.hasReceived.Store(true)
			pause.Reset()
			wait = p.Wait
		case isReceive && !p.hasReceived.Load() && fault.Is(err, fault.Missing, fault.Denied, fault.Invalid):
			return fmt.Errorf("polling the queue of %s: %w", p.Service, err)
		default:
			p.Options.ErrorLog.Report(p.Now(), fmt.Errorf("polling the queue of %s: %w", p.Service, err))
			sleepContext(ctx, pause.NextBackOff())
			// Do not long-poll until the queue responds again: a lost request would block for the whole wait.
			wait = 0
		}
	}
	return nil
}

// receiveBatch receives as many messages as can start now, and starts them.
func (p *poller) receiveBatch(ctx, work context.Context, wait time.Duration) error {
	slots := p.acquireSlots(ctx)
	if slots == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, wait+receiveMargin)
	messages, err := p.Queue.Receive(limited, slots*p.slotSize, wait, p.Visibility)
	cancel()
	needed := (len(messages) + p.slotSize - 1) / p.slotSize
	p.releaseSlots(slots - needed)
	if ctx.Err() != nil {
		// The messages arrived during shutdown: return them to the queue.
		for _, m := range messages {
			p.returnMessage(work, m.Receipt)
		}
		p.releaseSlots(needed)
		return err
	}
	p.startBatch(work, messages)
	return err
}

// acquireSlots waits for a free slot and takes up to a batch of them.
func (p *poller) acquireSlots(ctx context.Context) (slots int) {
	select {
	case <-p.slots:
		slots = 1
	case <-ctx.Done():
		return 0
	}
	for slots < min(queue.MaxBatch/p.slotSize, cap(p.slots)) {
		select {
		case <-p.slots:
			slots++
		default:
			return slots
		}
	}
	return slots
}

func (p *poller) releaseSlots(slots int) {
	for range slots {
		p.slots <- struct{}{}
	}
}

// startBatch handles messages concurrently and with the same deadline.
func (p *poller) startBatch(work context.Context, messages []queue.Message) {
	if len(messages) == 0 {
		return
	}
	go p.runBatch(work, p.trackBatch(messages))
}

// runBatch handles one batch.
func (p *poller) runBatch(work context.Context, f *inFlightBatch) {
	limited, cancel := context.WithTimeout(work, p.Deadline)
	defer cancel()
	applyCtx, cancelApply := context.WithTimeout(context.WithoutCancel(work), p.Deadline+dispositionTimeout)
	defer cancelApply()
	p.processAllWithin(limited, applyCtx, f.messages, func(at int, _ *LogLine) {
		p.untrackMessage(f, at)
		if p.Worker.HandleBatch == nil {
			p.releaseSlots(1)
		}
		p.Heartbeat()
	})
	if p.Worker.HandleBatch != nil {
		p.releaseSlots(1)
	}
}

func sleepContext(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
