package simulate

import (
	"runtime"
	"time"

	"github.com/joist-autoscaler/joist/shared/scenario"
)

// counters are the resource counters of the process.
type counters struct {
	at        time.Time
	user, sys time.Duration
	// peak is the maximum resident set size so far, in bytes.
	peak   uint64
	memory runtime.MemStats
}

// MeasureEffort runs work and returns the time and memory that it used. The CPU time is the one of
// the whole process, so it includes garbage collection. Earlier garbage is collected first.
func MeasureEffort(now func() time.Time, work func()) scenario.Effort {
	runtime.GC()
	before := readCounters(now)
	work()
	after := readCounters(now)
	return scenario.Effort{
		SolveWallS:   after.at.Sub(before.at).Seconds(),
		SolveUserS:   (after.user - before.user).Seconds(),
		SolveSysS:    (after.sys - before.sys).Seconds(),
		SolveMallocs: after.memory.Mallocs - before.memory.Mallocs,
		SolveAllocMB: toMegabytes(after.memory.TotalAlloc - before.memory.TotalAlloc),
		PeakRSSMB:    toMegabytes(after.peak),
	}
}

func readCounters(now func() time.Time) counters {
	r := counters{}
	runtime.ReadMemStats(&r.memory)
	r.user, r.sys, r.peak = processUsage()
	r.at = now()
	return r
}

func toMegabytes(bytes uint64) float64 { return float64(bytes) / (1 << 20) }
