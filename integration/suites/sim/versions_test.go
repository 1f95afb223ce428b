package sim_test

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
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
	total := map[string]int{}
	run := func(seed int64) (sim.Report, error) { return sim.RunVersions(seed, released) }
	runSeeds(seedsFrom(first, seeds), run, func(seed int64, report sim.Report, err error) bool {
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if len(report.Violations) > 0 {
			t.Error(report.FailureText())
		}
		for kind, n := range report.Faults {
			total[kind] += n
		}
		return !t.Failed()
	})
	for _, kind := range slices.Sorted(maps.Keys(total)) {
		if strings.HasPrefix(kind, "version ") {
			t.Logf("%s: %d", kind, total[kind])
		}
	}
	if seeds > 1 && !t.Failed() && (total["version next"] == 0 || total["version previous"] == 0) {
		t.Error("no service was upgraded to the next version, or rolled back to the previous one")
	}
}
