package testbed

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// killWithParent has the kernel kill the process when the thread that starts it ends.
func killWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// killChildren sends SIGKILL to the children of a process.
func killChildren(parent int) {
	// Children are listed with the thread that started them.
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for word := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				// The child may have exited already.
				_ = syscall.Kill(child, syscall.SIGKILL)
			}
		}
	}
}
