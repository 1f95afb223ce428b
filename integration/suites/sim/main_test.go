package sim_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage less often: a run is short and its heap is small.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
