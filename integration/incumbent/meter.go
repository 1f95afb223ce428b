package incumbent

import (
	"runtime"
	"syscall"
	"time"
)

// Effort is what planning took.
type Effort struct {
	SetupWallS float64 `json:"setupWallS"`
	SolveWallS float64 `json:"solveWallS"`
	// SolveUserS and SolveSysS are CPU seconds of the whole process.
	SolveUserS   float64 `json:"solveUserS"`
	SolveSysS    float64 `json:"solveSysS"`
	SolveMallocs uint64  `json:"solveMallocs"`
	SolveAllocMB float64 `json:"solveAllocMB"`
	PeakRSSMB    float64 `json:"peakRSSMB"`
	TimedOut     bool    `json:"timedOut"`
}

// meter is a measurement that has begun.
type meter struct {
	wall      time.Time
	user, sys float64
	memory    runtime.MemStats
}

// start collects garbage first, so that what came before costs nothing later.
func start() *meter {
	m := &meter{}
	runtime.GC()
	runtime.ReadMemStats(&m.memory)
	m.user, m.sys, _ = usage()
	m.wall = time.Now()
	return m
}

const mebi = 1 << 20

func (m *meter) stop() Effort {
	e := Effort{SolveWallS: time.Since(m.wall).Seconds()}
	user, sys, peak := usage()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	e.SolveUserS, e.SolveSysS, e.PeakRSSMB = user-m.user, sys-m.sys, peak
	e.SolveMallocs = memory.Mallocs - m.memory.Mallocs
	e.SolveAllocMB = float64(memory.TotalAlloc-m.memory.TotalAlloc) / mebi
	return e
}

// usage is of the process so far: CPU seconds, and the largest memory in MiB.
func usage() (user, sys, peak float64) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0, 0
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	peak, known := highWater()
	if !known {
		peak = float64(u.Maxrss) / 1024
	}
	return seconds(u.Utime), seconds(u.Stime), peak
}
