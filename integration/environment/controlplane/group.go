package controlplane

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps a terminal's ^C from reaching the program before us, and, for
// a command with a context, ends the program's own children along with it.
func ownGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid = true
	if cmd.Cancel != nil {
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	}
}
