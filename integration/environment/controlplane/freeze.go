package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
)

// Freeze lets the API server stand still until thaw is called: it takes calls and
// answers none, as one does whose machine hangs. What was on its way is answered
// after that.
func (cp *ControlPlane) Freeze() (thaw func() error, err error) {
	p, err := cp.server()
	if err != nil {
		return nil, fmt.Errorf("freezing the API server: %w", err)
	}
	server := p.cmd.Process
	if err := server.Signal(syscall.SIGSTOP); err != nil {
		return nil, fmt.Errorf("freezing the API server: %w", err)
	}
	return func() error {
		if err := server.Signal(syscall.SIGCONT); err != nil {
			return fmt.Errorf("thawing the API server: %w", err)
		}
		return nil
	}, nil
}

// Restart kills the API server and starts another, and returns when that is ready.
// It remembers no event from before: a watch that would go on where it was is told
// with 410 that its place is forgotten, as after a compaction.
func (cp *ControlPlane) Restart(ctx context.Context) error {
	p, err := cp.server()
	if err == nil {
		close(p.retired)
		p.kill()
		cp.processes = slices.DeleteFunc(cp.processes, func(other *process) bool { return other == p })
		err = cp.run(apiserver, cp.layout.apiserverArgs())
	}
	if err == nil {
		err = cp.explain(awaitReady(ctx, cp.Config), apiserver)
	}
	if err != nil {
		return fmt.Errorf("restarting the API server: %w", err)
	}
	return nil
}

// server is the API server that runs.
func (cp *ControlPlane) server() (*process, error) {
	i := slices.IndexFunc(cp.processes, func(p *process) bool { return p.name == apiserver })
	if i < 0 {
		return nil, errors.New("it does not run")
	}
	return cp.processes[i], nil
}
