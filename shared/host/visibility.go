package host

import (
	"context"
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// extendVisibilities extends the visibility of messages while their handlers run, even past their deadline, to avoid
// useless duplicate work. One goroutine serves all messages, because hardly any message is still in flight at the
// first third of its visibility.
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
			// A slow response must not delay the others.
			go p.extendVisibility(work, receipt)
		}
		// A message received meanwhile is not due earlier.
		timer.Reset(next.Sub(now))
	}
}

// inFlightBatch is a batch of messages that is being handled.
type inFlightBatch struct {
	messages []queue.Message
	// processed marks the handled messages, and remaining counts the others.
	processed []bool
	remaining int
	// extendAt is when to extend their visibility.
	extendAt time.Time
}

// appendReceipts appends the receipts of the unhandled messages.
func (f *inFlightBatch) appendReceipts(into []string) []string {
	for at, landed := range f.processed {
		if !landed {
			into = append(into, f.messages[at].Receipt)
		}
	}
	return into
}

// collectDueReceipts returns the receipts whose visibility must be extended now, sets their next extension to renewed,
// and returns when to check again.
func (p *poller) collectDueReceipts(now, renewed time.Time) (receipts []string, next time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next = renewed
	for f := range p.inFlight {
		if !f.extendAt.After(now) {
			receipts = f.appendReceipts(receipts)
			f.extendAt = renewed
		} else if f.extendAt.Before(next) {
			next = f.extendAt
		}
	}
	return receipts, next
}

func (p *poller) extendVisibility(work context.Context, receipt string) {
	err := p.Queue.Hide(work, receipt, p.Visibility)
	if err != nil && work.Err() == nil && !fault.Is(err, fault.Missing) {
		p.Options.ErrorLog.Report(p.Now(), fmt.Errorf("extending the visibility of a message of %s: %w", p.Service, err))
	}
}

// trackBatch adds messages to the batches in flight.
func (p *poller) trackBatch(messages []queue.Message) *inFlightBatch {
	f := &inFlightBatch{messages: messages, processed: make([]bool, len(messages)), remaining: len(messages), extendAt: time.Now().Add(p.Visibility / 3)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight[f] = struct{}{}
	return f
}

// untrackMessage marks a message as handled, and removes the batch after its last one.
func (p *poller) untrackMessage(f *inFlightBatch, at int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f.processed[at] = true
	if f.remaining--; f.remaining == 0 {
		delete(p.inFlight, f)
	}
}
