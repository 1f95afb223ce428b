// Package meter measures what a piece of work takes of the machine.
//
// The CPU is that of the whole process, so that what the garbage collector does
// beside the work counts as well.
package meter

import (
	"runtime"
	"time"

	"github.com/joist-autoscaler/joist/shared/scenario"
)

// reading is the state of the process's counters.
type reading struct {
	at        time.Time
	user, sys time.Duration
	// peak is the largest resident set so far, in bytes.
	peak   uint64
	memory runtime.MemStats
}

// Solving does the work and says what it took. Rubbish that was left before is
// collected first: it is not of this work.
func Solving(now func() time.Time, work func()) scenario.Effort {
	runtime.GC()
	before := read(now)
	work()
	after := read(now)
	return scenario.Effort{
		SolveWallS:   after.at.Sub(before.at).Seconds(),
		SolveUserS:   (after.user - before.user).Seconds(),
		SolveSysS:    (after.sys - before.sys).Seconds(),
		SolveMallocs: after.memory.Mallocs - before.memory.Mallocs,
		SolveAllocMB: megabytes(after.memory.TotalAlloc - before.memory.TotalAlloc),
		PeakRSSMB:    megabytes(after.peak),
	}
}

func read(now func() time.Time) reading {
	r := reading{}
	runtime.ReadMemStats(&r.memory)
	r.user, r.sys, r.peak = usage()
	r.at = now()
	return r
}

func megabytes(bytes uint64) float64 { return float64(bytes) / (1 << 20) }
