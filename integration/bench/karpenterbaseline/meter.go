package karpenterbaseline

import "github.com/joist-autoscaler/joist/integration/environment/meter"

// Effort is the effort of planning.
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

// effort converts the meter's reading.
func effort(s meter.Spent) Effort {
	return Effort{
		SolveWallS: s.WallS, SolveUserS: s.UserS, SolveSysS: s.SysS, SolveMallocs: s.Mallocs, SolveAllocMB: s.AllocMB, PeakRSSMB: s.PeakRSSMB,
	}
}
