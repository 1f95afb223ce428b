package host

import (
	"context"
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// keep keeps messages hidden while their handlers run, past their deadline too:
// a second worker on the same message would be harmless, but never helpful. One
// goroutine does it for all, for hardly any message is still there at the first
// third of its visibility.
func (p *poller) keep(work context.Context) {
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
		due, next := p.due(now, now.Add(third))
		for _, receipt := range due {
			// One answer that is long in coming must not hold up the others.
			go p.hide(work, receipt)
		}
		// A message that begins meanwhile is not due before this.
		timer.Reset(next.Sub(now))
	}
}

// flight is messages that were received together, while they are dealt with.
type flight struct {
	messages []queue.Message
	// landed says which of them are dealt with, and left how many are not.
	landed []bool
	left   int
	// due is when they are to be hidden anew.
	due time.Time
}

// receipts appends those of the messages that are not dealt with.
func (f *flight) receipts(into []string) []string {
	for at, landed := range f.landed {
		if !landed {
			into = append(into, f.messages[at].Receipt)
		}
	}
	return into
}

// due are the receipts that are to be hidden anew, which then have until anew,
// and when to look again.
func (p *poller) due(now, anew time.Time) (receipts []string, next time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next = anew
	for f := range p.running {
		if !f.due.After(now) {
			receipts = f.receipts(receipts)
			f.due = anew
		} else if f.due.Before(next) {
			next = f.due
		}
	}
	return receipts, next
}

func (p *poller) hide(work context.Context, receipt string) {
	err := p.Queue.Hide(work, receipt, p.Visibility)
	if err != nil && work.Err() == nil && !fault.Is(err, fault.Missing) {
		p.Options.Told.Happened(p.Now(), fmt.Errorf("keeping a message of %s hidden: %w", p.Service, err))
	}
}

// note puts messages among those that run.
func (p *poller) note(messages []queue.Message) *flight {
	f := &flight{messages: messages, landed: make([]bool, len(messages)), left: len(messages), due: time.Now().Add(p.Visibility / 3)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[f] = struct{}{}
	return f
}

// forget takes one message out, and with the last the flight.
func (p *poller) forget(f *flight, at int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f.landed[at] = true
	if f.left--; f.left == 0 {
		delete(p.running, f)
	}
}
