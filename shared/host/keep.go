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

// due are the receipts that are to be hidden anew, which then have until anew,
// and when to look again.
func (p *poller) due(now, anew time.Time) (receipts []string, next time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next = anew
	for receipt, at := range p.running {
		if !at.After(now) {
			receipts = append(receipts, receipt)
			p.running[receipt] = anew
		} else if at.Before(next) {
			next = at
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
func (p *poller) note(messages []queue.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := time.Now().Add(p.Visibility / 3)
	for _, m := range messages {
		p.running[m.Receipt] = due
	}
}

func (p *poller) forget(lines []Line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range lines {
		delete(p.running, lines[i].Message.Receipt)
	}
}
