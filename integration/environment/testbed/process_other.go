//go:build !linux

package testbed

import "os/exec"

// killWithParent does nothing here: only Linux can promise it. A test that is killed
// leaves its services behind.
func killWithParent(*exec.Cmd) {}
