// Package meter measures the CPU time and memory that a piece of work uses, including all
// threads and the garbage collector.
//
// It measures the whole process, so no other work may run in it at the same time.
package meter

import (
	"runtime"
	"syscall"
	"time"
)

// Spent is the measured usage.
type Spent struct {
	// WallS, UserS and SysS are seconds.
	WallS float64 `json:"wallS"`
	UserS float64 `json:"userS"`
	SysS  float64 `json:"sysS"`
	// Mallocs counts allocations, and AllocMB is their size in MiB.
	Mallocs uint64  `json:"mallocs"`
	AllocMB float64 `json:"allocMB"`
	// PeakRSSMB is the maximum memory of the process since its start, in MiB.
	PeakRSSMB float64 `json:"peakRSSMB"`
}

// Meter is a measurement in progress.
type Meter struct {
	wall      time.Time
	user, sys float64
	memory    runtime.MemStats
}

// Start collects garbage first, so that earlier allocations do not count.
func Start() *Meter {
	m := &Meter{}
	runtime.GC()
	runtime.ReadMemStats(&m.memory)
	m.user, m.sys, _ = usage()
	m.wall = time.Now()
	return m
}

const mebi = 1 << 20

// Stop returns the usage since Start.
func (m *Meter) Stop() Spent {
	s := Spent{WallS: time.Since(m.wall).Seconds()}
	user, sys, peak := usage()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	s.UserS, s.SysS, s.PeakRSSMB = user-m.user, sys-m.sys, peak
	s.Mallocs = memory.Mallocs - m.memory.Mallocs
	s.AllocMB = float64(memory.TotalAlloc-m.memory.TotalAlloc) / mebi
	return s
}

// usage returns the CPU seconds and the maximum memory in MiB of the process so far.
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
