//go:build unix

package peers

import (
	"os/exec"
	"syscall"
)

// group starts the program and its children in a separate process group.
func group(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// end kills the remaining processes of the group: servers that the suites did not stop.
func end(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// endOwnGroup kills this process and all others of its group.
func endOwnGroup() { _ = syscall.Kill(0, syscall.SIGKILL) }
