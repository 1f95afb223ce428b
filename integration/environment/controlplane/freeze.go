package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
)

// Freeze stops the API server's process until thaw is called: it accepts connections and
// does not respond, like a server on a hung machine. Requests in flight are answered
// after thaw.
func (cp *ControlPlane) Freeze() (thaw func() error, err error) {
	p, err := cp.server()
	if err != nil {
		return nil, fmt.Errorf("pausing the API server: %w", err)
	}
	server := p.cmd.Process
	if err := server.Signal(syscall.SIGSTOP); err != nil {
		return nil, fmt.Errorf("pausing the API server: %w", err)
	}
	return func() error {
		if err := server.Signal(syscall.SIGCONT); err != nil {
			return fmt.Errorf("resuming the API server: %w", err)
		}
		return nil
	}, nil
}

// Restart kills the API server, starts another, and returns when it is ready. The new
// server has no earlier events: a watch that resumes gets 410 Gone, as after a
// compaction.
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

// server returns the running API server.
func (cp *ControlPlane) server() (*process, error) {
	i := slices.IndexFunc(cp.processes, func(p *process) bool { return p.name == apiserver })
	if i < 0 {
		return nil, errors.New("the process is not running")
	}
	return cp.processes[i], nil
}
