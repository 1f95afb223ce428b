package host

import (
	"context"
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// extendVisibilities keeps messages hidden while their handlers run, past their deadline too:
// a second worker on the same message would be harmless, but never helpful. One
// goroutine does it for all, for hardly any message is still there at the first
// third of its visibility.
func (p *poller) extendVisibilities(work context.Context) {
	third := p.Visibility / 3
	timer := time.NewTimer(third)
	defer timer.Stop()
	for {
		select {
		case <-work.Done():
			return
		case <-timer.C:
		}
		now := time.Now()
		due, next := p.collectDueReceipts(now, now.Add(third))
		for _, receipt := range due {
			// One answer that is long in coming must not hold up the others.
			go p.extendVisibility(work, receipt)
		}
		// A message that begins meanwhile is not due before this.
		timer.Reset(next.Sub(now))
	}
}

// inFlightBatch is messages that were received together, while they are dealt with.
type inFlightBatch struct {
	messages []queue.Message
	// processed says which of them are dealt with, and left how many are not.
	processed []bool
	remaining int
	// extendAt is when they are to be hidden anew.
	extendAt time.Time
}

// appendReceipts appends those of the messages that are not dealt with.
func (f *inFlightBatch) appendReceipts(into []string) []string {
	for at, landed := range f.processed {
		if !landed {
			into = append(into, f.messages[at].Receipt)
		}
	}
	return into
}

// collectDueReceipts are the receipts that are to be hidden anew, which then have until anew,
// and when to look again.
func (p *poller) collectDueReceipts(now, anew time.Time) (receipts []string, next time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next = anew
	for f := range p.inFlight {
		if !f.extendAt.After(now) {
			receipts = f.appendReceipts(receipts)
			f.extendAt = anew
		} else if f.extendAt.Before(next) {
			next = f.extendAt
		}
	}
	return receipts, next
}

func (p *poller) extendVisibility(work context.Context, receipt string) {
	err := p.Queue.Hide(work, receipt, p.Visibility)
	if err != nil && work.Err() == nil && !fault.Is(err, fault.Missing) {
		p.Options.ErrorLog.Report(p.Now(), fmt.Errorf("keeping a message of %s hidden: %w", p.Service, err))
	}
}

// trackBatch puts messages among those that run.
func (p *poller) trackBatch(messages []queue.Message) *inFlightBatch {
	f := &inFlightBatch{messages: messages, processed: make([]bool, len(messages)), remaining: len(messages), extendAt: time.Now().Add(p.Visibility / 3)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight[f] = struct{}{}
	return f
}

// untrackMessage takes one message out, and with the last the flight.
func (p *poller) untrackMessage(f *inFlightBatch, at int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f.processed[at] = true
	if f.remaining--; f.remaining == 0 {
		delete(p.inFlight, f)
	}
}
