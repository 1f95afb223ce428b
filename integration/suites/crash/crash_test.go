// Package crash kills each service at every write that it makes in a whole
// story, before the write and after it, one death a run. The write that deletes
// a message is among them: after it is after the ack. Nothing may be lost,
// doubled or orphaned, whichever it is.
package crash_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/joist-autoscaler/joist/integration/suites/sim"
)

func TestEveryPoint(t *testing.T) {
	for _, tale := range []sim.Tale{sim.TakenBack, sim.Replaced} {
		t.Run(tale.Name, func(t *testing.T) { everyPoint(t, tale) })
	}
}

func everyPoint(t *testing.T, tale sim.Tale) {
	calm, err := sim.Story(tale, sim.Point{})
	if err != nil {
		t.Fatal(err)
	}
	if len(calm.Violations) > 0 {
		t.Fatalf("without any death: %s", calm.Failed())
	}
	fmt.Printf("crash: %s: %d writes in the story, %d points\n", tale.Name, calm.Writes, 2*calm.Writes)
	var mu sync.Mutex
	died := map[string]int{}
	failed := 0
	points := make(chan sim.Point)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for point := range points {
				death, err := sim.Story(tale, point)
				mu.Lock()
				died[death.Actor+" "+death.Verb]++
				switch {
				case err != nil:
					t.Errorf("write %d, after %v: %v", point.Write, point.After, err)
				case !death.Struck:
					t.Errorf("write %d, after %v: nobody died, so the story is not the same twice", point.Write, point.After)
				case len(death.Violations) > 0:
					if failed++; failed <= 3 {
						t.Errorf("%s died at %s (write %d, after %v): %s", death.Actor, death.Verb, point.Write, point.After, death.Failed())
					} else {
						t.Errorf("%s died at %s (write %d, after %v): %s", death.Actor, death.Verb, point.Write, point.After, death.Violations[0])
					}
				}
				mu.Unlock()
			}
		})
	}
	for write := 1; write <= calm.Writes; write++ {
		points <- sim.Point{Write: write}
		points <- sim.Point{Write: write, After: true}
		if write%200 == 0 {
			fmt.Printf("crash: %s: %d of %d writes\n", tale.Name, write, calm.Writes)
		}
	}
	close(points)
	workers.Wait()
	fmt.Printf("crash: %s: %d points, %d failed; who died where:\n", tale.Name, 2*calm.Writes, failed)
	for _, at := range slices.Sorted(maps.Keys(died)) {
		fmt.Printf("  %-40s %d\n", at, died[at])
	}
}
