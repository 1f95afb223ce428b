package controlplane

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the program into its own process group, so that a terminal's ^C does not
// reach it first, and so that a command with a context ends together with its child
// processes.
func ownGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid = true
	if cmd.Cancel != nil {
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	}
}
