//go:build !unix

package peers

import (
	"os"
	"os/exec"
)

// group has nothing to do: only Unix has process groups.
func group(*exec.Cmd) {}

// end kills the program alone.
func end(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// endOwnGroup ends this process alone.
func endOwnGroup() { os.Exit(1) }
