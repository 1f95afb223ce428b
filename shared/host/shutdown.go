package host

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// cancelTimeout is how long a cancelled handler may take to return, so that its own disposition applies.
const cancelTimeout = 2 * time.Second

// shutDown ends a run: it waits for Grace, then cancels the handlers, then returns the unfinished messages to the
// queue.
func (p *poller) shutDown(work context.Context, cancel context.CancelFunc) {
	if p.waitUntilIdle(p.Grace) {
		return
	}
	cancel()
	if p.waitUntilIdle(cancelTimeout) {
		return
	}
	p.mu.Lock()
	var left []string
	for f := range p.inFlight {
		left = f.appendReceipts(left)
	}
	p.mu.Unlock()
	slices.Sort(left)
	for _, receipt := range left {
		p.returnMessage(work, receipt)
	}
}

// waitUntilIdle waits until no handler runs and returns true, or false after d. Then it releases the slots that it
// took.
func (p *poller) waitUntilIdle(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	taken := 0
	for taken < cap(p.slots) {
		select {
		case <-p.slots:
			taken++
		case <-timer.C:
			for range taken {
				p.slots <- struct{}{}
			}
			return false
		}
	}
	return true
}

// returnMessage makes a message visible to other workers again.
func (p *poller) returnMessage(ctx context.Context, receipt string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := p.Queue.Hide(ctx, receipt, 0)
	if err != nil && !fault.Is(err, fault.Missing) {
		p.Options.ErrorLog.Report(p.Now(), fmt.Errorf("returning a message to the queue of %s: %w", p.Service, err))
	}
}
