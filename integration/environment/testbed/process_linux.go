package testbed

import (
	"os/exec"
	"syscall"
)

// killWithParent has the kernel kill the process when the thread that starts it ends.
func killWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
