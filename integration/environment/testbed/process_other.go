//go:build !linux

package testbed

import "os/exec"

// dieWithUs does nothing here: only Linux can promise it. A test that is killed
// leaves its services behind.
func dieWithUs(*exec.Cmd) {}
