package testbed

import (
	"os/exec"
	"syscall"
)

// dieWithUs has the kernel kill the process when the thread that starts it ends.
func dieWithUs(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
