package testbed

import (
	"slices"

	"github.com/prometheus/procfs"
)

// CPUSeconds returns the CPU time of each running process of Joist or Karpenter, by name. It is empty on a system without
// /proc.
func (w *TestBed) CPUSeconds() map[string]float64 {
	out := map[string]float64{}
	running := slices.Concat(w.processes, w.functions)
	if w.karpenter != nil {
		running = append(running, w.karpenter)
	}
	for _, p := range running {
		one, err := procfs.NewProc(p.command.Process.Pid)
		if err != nil {
			continue
		}
		if stat, err := one.Stat(); err == nil {
			out[p.name] += stat.CPUTime()
		}
	}
	return out
}
