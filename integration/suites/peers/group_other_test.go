//go:build !unix

package peers

import (
	"os"
	"os/exec"
)

// group does nothing: only Unix has process groups.
func group(*exec.Cmd) {}

// end kills only the program.
func end(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// endOwnGroup ends only this process.
func endOwnGroup() { os.Exit(1) }
