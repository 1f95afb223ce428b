package controlplane

import (
	"os/exec"
	"syscall"
)

// dieWithUs makes the kernel kill the program when the thread that starts it ends.
func dieWithUs(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }
