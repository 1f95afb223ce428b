//go:build unix

package peers

import (
	"os/exec"
	"syscall"
)

// group gives the program and all that it starts a process group of its own.
func group(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// end kills what is left of the group: servers, where the suites ended too
// suddenly to stop them.
func end(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// endOwnGroup kills this process and all others of its group.
func endOwnGroup() { _ = syscall.Kill(0, syscall.SIGKILL) }
