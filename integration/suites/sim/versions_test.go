package sim_test

import (
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/versions"
	"github.com/joist-autoscaler/joist/integration/suites/sim"
)

// optional are fields that decisions can do without, as their comments say. Until the first release, a previous version
// is one without them.
var optional = []string{
	"documents/plans.boundPerHour", "documents/plans.warnings", "documents/batches.ignored", "messages/catalog.refreshed.v1.warnings",
	"messages/instances.listed.v1.shifts", "messages/nodes.kept.v1.kept[].detail", "configmaps/joist-outbox/outbox.json.bisection", "configmaps/joist-outbox/outbox.json.uids",
	// An inventory without a subnet is of an older catalog service, which knows none of these.
	"documents/inventories.instances[].subnetId", "documents/inventories.instances[].securityGroups", "documents/inventories.instances[].reservation",
	"documents/inventories.instances[].placementGroup", "documents/inventories.instances[].placementGroupId", "documents/inventories.instances[].withdrawn",
}

// TestVersionsMeet upgrades the services one by one in the middle of a run, rolls some of them back, and requires the
// promises of TestSeeds. JOIST_VERSION_SEEDS is the number of seeds, and JOIST_SAMPLE the first.
func TestVersionsMeet(t *testing.T) {
	released, err := versions.LastReleased()
	if err != nil {
		t.Fatal(err)
	}
	if released == nil {
		released = versions.Today().Without(optional...)
	}
	seeds := 2
	if many := os.Getenv("JOIST_VERSION_SEEDS"); many != "" {
		if seeds, err = strconv.Atoi(many); err != nil {
			t.Fatalf("JOIST_VERSION_SEEDS=%q is not a number: %v", many, err)
		}
	}
	first := firstSeed(t)
	if one := os.Getenv("JOIST_SEED"); one != "" {
		first, seeds = seedNumbers(t)[0], 1
	}
	var mu sync.Mutex
	total, work := map[string]int{}, make(chan int64)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := range work {
				report, err := sim.RunVersions(seed, released)
				mu.Lock()
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
				if len(report.Violations) > 0 {
					t.Error(report.FailureText())
				}
				for kind, n := range report.Faults {
					total[kind] += n
				}
				mu.Unlock()
			}
		})
	}
	for seed := first; seed < first+int64(seeds) && !t.Failed(); seed++ {
		work <- seed
	}
	close(work)
	workers.Wait()
	for _, kind := range slices.Sorted(maps.Keys(total)) {
		if strings.HasPrefix(kind, "version ") {
			t.Logf("%s: %d", kind, total[kind])
		}
	}
	if seeds > 1 && !t.Failed() && (total["version next"] == 0 || total["version previous"] == 0) {
		t.Error("no service was upgraded to the next version, or rolled back to the previous one")
	}
}
