//go:build !linux

package testbed

import "os/exec"

// killWithParent does nothing here: only Linux can promise it. A test that is killed
// leaves its services behind.
func killWithParent(*exec.Cmd) {}

// killChildren does nothing here. A function ends when its emulator does not answer.
func killChildren(int) {}
