package scheduling_test

import (
	"fmt"
	"testing"

	"github.com/joist-autoscaler/joist/shared/scheduling"
	"github.com/joist-autoscaler/joist/shared/scheduling/schedulingtest"
)

// clusters are the sizes that simulations are measured with.
var clusters = []struct{ nodes, pods int }{{100, 900}, {1000, 9000}, {5000, 100_000}}

// BenchmarkSimulation asks what would become of a cluster without some of its
// nodes:
//
//	go test -run '^$' -bench Simulation -benchmem ./scheduling
//
// setup is making the simulation; one, the answer for one node, each of them in
// turn; hundred, for a hundred at once; and scan, all of it: the setup, and every
// node as the only candidate.
func BenchmarkSimulation(b *testing.B) {
	for _, size := range clusters {
		snapshot := schedulingtest.Cluster(size.nodes, size.pods)
		stock := scheduling.NewStock(snapshot, schedulingtest.Catalogue())
		name := func(what string) string { return fmt.Sprintf("%s/nodes=%d/pods=%d", what, size.nodes, size.pods) }
		b.Run(name("setup"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				scheduling.NewSimulation(snapshot, stock)
			}
		})
		b.Run(name("one"), func(b *testing.B) {
			b.ReportAllocs()
			simulation, at, fresh := scheduling.NewSimulation(snapshot, stock), 0, 0
			for b.Loop() {
				fresh += len(simulation.Without(at % size.nodes).Nodes)
				at++
			}
			b.ReportMetric(float64(fresh)/float64(at), "newnodes/op")
		})
		b.Run(name("hundred"), func(b *testing.B) {
			b.ReportAllocs()
			simulation, at := scheduling.NewSimulation(snapshot, stock), 0
			nodes := make([]int, 100)
			for b.Loop() {
				for i := range nodes {
					nodes[i] = (at + i*size.nodes/100) % size.nodes
				}
				simulation.Without(nodes...)
				at++
			}
		})
		b.Run(name("scan"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				simulation := scheduling.NewSimulation(snapshot, stock)
				for i := range size.nodes {
					simulation.Without(i)
				}
			}
		})
	}
}
