package facts

import (
	"context"
	"regexp"
	"sync"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
)

// programs are the commands that print the versions of the programs in the guides.
var programs = [][]string{{"helm", "version", "--short"}, {"kubectl", "version", "--client"}, {"aws", "--version"}}

var versionPattern = regexp.MustCompile(`v?\d+\.\d+(\.\d+)?`)

// readTools reads the versions of the programs.
func (g *collector) readTools(ctx context.Context) {
	list := make([]doctor.Tool, len(programs))
	var all sync.WaitGroup
	for i, p := range programs {
		all.Go(func() {
			list[i].Name = p[0]
			if output, err := g.Run(ctx, p[0], p[1:]...); err == nil {
				if list[i].Version = versionPattern.FindString(output); list[i].Version == "" {
					list[i].Version = "unknown"
				}
			}
		})
	}
	all.Wait()
	g.setFact(func(f *doctor.Facts) { f.Tools = list })
}
