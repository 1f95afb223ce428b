package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

const (
	// progressDelay is the time in which a command shows no progress.
	progressDelay = time.Second
	// progressRefresh is the time between two states on a terminal, and progressInterval
	// that between two lines elsewhere.
	progressRefresh  = 250 * time.Millisecond
	progressInterval = 5 * time.Second
)

// progress shows on stderr what a command is doing: nothing for progressDelay, then on a terminal
// a line that it rewrites, elsewhere a line every few seconds.
type progress struct {
	out  *output // nil if stderr is not this package's output
	w    io.Writer
	stop chan struct{}
	done sync.WaitGroup

	mu    sync.Mutex
	state string
}

// startProgress shows a state until Stop.
func startProgress(cmd *cobra.Command, format string, args ...any) *progress {
	p := &progress{w: cmd.ErrOrStderr(), stop: make(chan struct{})}
	p.out, _ = p.w.(*output)
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

// updateCount changes the state to what is done and how often it was done.
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
	after := time.After
	if p.out != nil && p.out.after != nil {
		after = p.out.after
	}
	next := after(progressDelay)
	isTerminal := p.out != nil && p.out.rewrites
	for elapsed := progressDelay; ; {
		select {
		case <-p.stop:
			return
		case <-next:
		}
		p.show(elapsed, isTerminal)
		wait := progressInterval
		if isTerminal {
			wait = progressRefresh
		}
		elapsed += wait
		next = after(wait)
	}
}

// show prints the state after a time.
func (p *progress) show(elapsed time.Duration, isTerminal bool) {
	p.mu.Lock()
	state := p.state
	p.mu.Unlock()
	line := fmt.Sprintf("%s (%d s)", oneLine(state), int(elapsed.Seconds()))
	if isTerminal {
		p.out.setStatus(line)
		return
	}
	fmt.Fprintln(p.w, line)
}
