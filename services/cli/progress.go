package cli

import (
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

const (
	// progressDelay is the time in which a command shows no progress, and progressRefresh the time between two states.
	progressDelay   = time.Second
	progressRefresh = 250 * time.Millisecond
)

// progress shows on a terminal what a command is doing, on stderr: nothing for progressDelay, then a line that it
// rewrites. A terminal without control sequences gets a single line, and a file or a pipe nothing.
type progress struct {
	out  *output // nil if stderr is not a terminal
	stop chan struct{}
	done sync.WaitGroup

	mu    sync.Mutex
	state string
}

// startProgress shows a state until Stop.
func startProgress(cmd *cobra.Command, format string, args ...any) *progress {
	p := &progress{stop: make(chan struct{})}
	if out, ok := cmd.ErrOrStderr().(*output); ok && out.isTerminal {
		p.out = out
	}
	p.Update(format, args...)
	p.done.Go(p.run)
	return p
}

// Update changes the state.
func (p *progress) Update(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = fmt.Sprintf(format, args...)
}

// updateCount changes the state to the current action and its count.
func (p *progress) updateCount(doing string, done int) { p.Update("%s: %d so far", doing, done) }

// Stop removes the line from the terminal. It may be called more than once, by one goroutine.
func (p *progress) Stop() {
	select {
	case <-p.stop:
		return
	default:
	}
	close(p.stop)
	p.done.Wait()
	if p.out != nil {
		p.out.setStatus("")
	}
}

func (p *progress) run() {
	if p.out == nil {
		return
	}
	after := time.After
	if p.out.after != nil {
		after = p.out.after
	}
	next := after(progressDelay)
	for elapsed := progressDelay; ; elapsed += progressRefresh {
		select {
		case <-p.stop:
			return
		case <-next:
		}
		line := p.describe(elapsed)
		if !p.out.rewrites {
			fmt.Fprintln(p.out, line)
			return
		}
		p.out.setStatus(line)
		next = after(progressRefresh)
	}
}

// describe returns the state after a time.
func (p *progress) describe(elapsed time.Duration) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("%s (%d s)", oneLine(p.state), int(elapsed.Seconds()))
}
