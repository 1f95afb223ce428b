package facts

import (
	"context"
	"regexp"
	"sync"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
)

// programs are those that the guides use, and how each tells its version.
var programs = [][]string{{"helm", "version", "--short"}, {"kubectl", "version", "--client"}, {"aws", "--version"}}

var version = regexp.MustCompile(`v?\d+\.\d+(\.\d+)?`)

// readTools looks for programs on this machine.
func (g *collector) readTools(ctx context.Context) {
	list := make([]doctor.Tool, len(programs))
	var all sync.WaitGroup
	for i, p := range programs {
		all.Go(func() {
			list[i].Name = p[0]
			if told, err := g.Run(ctx, p[0], p[1:]...); err == nil {
				if list[i].Version = version.FindString(told); list[i].Version == "" {
					list[i].Version = "unknown"
				}
			}
		})
	}
	all.Wait()
	g.setFact(func(f *doctor.Facts) { f.Tools = list })
}
