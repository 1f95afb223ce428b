package host

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// settleTime is what a cancelled handler gets to return by itself, so that its
// own verdict stands.
const settleTime = 2 * time.Second

// stop ends a run: first with patience, then by cancelling, then by giving back
// what is left.
func (p *poller) stop(work context.Context, cancel context.CancelFunc) {
	if p.idleWithin(p.Grace) {
		return
	}
	cancel()
	if p.idleWithin(settleTime) {
		return
	}
	p.mu.Lock()
	var left []string
	for f := range p.running {
		left = f.receipts(left)
	}
	p.mu.Unlock()
	slices.Sort(left)
	for _, receipt := range left {
		p.giveBack(work, receipt)
	}
}

// idleWithin waits until no handler runs, and reports whether that came true.
// In vain, it gives back the slots that it took.
func (p *poller) idleWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	taken := 0
	for taken < cap(p.free) {
		select {
		case <-p.free:
			taken++
		case <-timer.C:
			for range taken {
				p.free <- struct{}{}
			}
			return false
		}
	}
	return true
}

// giveBack shows a message to other workers again.
func (p *poller) giveBack(ctx context.Context, receipt string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := p.Queue.Hide(ctx, receipt, 0)
	if err != nil && !fault.Is(err, fault.Missing) {
		p.Options.Told.Happened(p.Now(), fmt.Errorf("giving back a message of %s: %w", p.Service, err))
	}
}
