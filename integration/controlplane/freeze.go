package controlplane

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
)

// Freeze lets the API server stand still until thaw is called: it takes calls and
// answers none, as one does whose machine hangs. What was on its way is answered
// after that.
func (cp *ControlPlane) Freeze() (thaw func() error, err error) {
	i := slices.IndexFunc(cp.processes, func(p *process) bool { return p.name == apiserver })
	if i < 0 {
		return nil, errors.New("freezing the API server: it does not run")
	}
	server := cp.processes[i].cmd.Process
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
