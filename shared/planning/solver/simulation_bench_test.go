package solver_test

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// clusters are the measured cluster sizes. In the last one the nodes are full, so that most moved pods
// need new nodes.
var clusters = []struct{ nodes, pods int }{{100, 900}, {1000, 9000}, {5000, 100_000}, {1000, 40_000}}

// BenchmarkSimulation simulates removals:
//
//	go test -run '^$' -bench Simulation -benchmem ./planning/solver
//
// setup creates the simulation; one removes one node, each node in turn; lands simulates
// kube-scheduler for the pods of that result; hundred removes a hundred nodes at once; and scan
// is the setup plus the removal of every node as the only candidate.
//
// On a shared machine, compare cpu-ms/op instead of elapsed time. It is the CPU time of the
// whole process, including garbage collection.
func BenchmarkSimulation(b *testing.B) {
	for _, size := range clusters {
		snapshot := planningtest.GenerateCluster(rand.New(rand.NewPCG(42, 0)), size.nodes, size.pods)
		stock := instancetypes.New(snapshot, planningtest.NewCatalogue())
		run := func(what string, start func() (step func(at int))) {
			b.Run(fmt.Sprintf("%s/nodes=%d/pods=%d", what, size.nodes, size.pods), func(b *testing.B) {
				b.ReportAllocs()
				step, at, before := start(), 0, cpu(b)
				for b.Loop() {
					step(at)
					at++
				}
				b.ReportMetric(float64((cpu(b)-before).Microseconds())/1000/float64(at), "cpu-ms/op")
			})
		}
		run("setup", func() func(int) { return func(int) { solver.NewSimulation(snapshot, stock) } })
		run("one", func() func(int) {
			simulation := solver.NewSimulation(snapshot, stock)
			return func(at int) { simulation.SimulateRemoval(at % size.nodes) }
		})
		run("lands", func() func(int) {
			simulation := solver.NewSimulation(snapshot, stock)
			results := make([]planning.Result, size.nodes)
			for i := range results {
				results[i] = simulation.SimulateRemoval(i)
			}
			return func(at int) { simulation.FindStrandedPods(results[at%size.nodes], at%size.nodes) }
		})
		run("hundred", func() func(int) {
			simulation, nodes := solver.NewSimulation(snapshot, stock), make([]int, 100)
			return func(at int) {
				for i := range nodes {
					nodes[i] = (at + i*size.nodes/100) % size.nodes
				}
				simulation.SimulateRemoval(nodes...)
			}
		})
		run("scan", func() func(int) {
			return func(int) {
				simulation := solver.NewSimulation(snapshot, stock)
				for i := range size.nodes {
					simulation.SimulateRemoval(i)
				}
			}
		})
	}
}

// cpu returns the CPU time of the process so far.
func cpu(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
