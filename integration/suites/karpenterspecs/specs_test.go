package karpenterspecs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/controlplane"
)

// suites are the packages of Karpenter whose specs run, by the name of the list in testdata. A sample has one
// of three neighbours among the small ones, so the suites that take long are neighbours.
var suites = []struct {
	name, pkg string
	change    *change
}{
	{"scheduling", "pkg/controllers/provisioning/scheduling", &changedPlanner},
	{"provisioning", "pkg/controllers/provisioning", &changedPlanner},
	{"disruption", "pkg/controllers/disruption", &changedPlanner},
	{"nodeclaim-lifecycle", "pkg/controllers/nodeclaim/lifecycle", &changedControllers},
	{"node-termination", "pkg/controllers/node/termination", &changedControllers},
	{"nodeclaim-disruption", "pkg/controllers/nodeclaim/disruption", &changedControllers},
	{"static-provisioning", "pkg/controllers/static/provisioning", &changedPlanner},
	{"nodeoverlay", "pkg/controllers/nodeoverlay", &changedControllers},
	{"pod-deletioncost", "pkg/controllers/pod/deletioncost", &changedControllers},
	{"capacitybuffer", "pkg/controllers/capacitybuffer", &changedControllers},
	{"nodeclaim-reboot", "pkg/controllers/nodeclaim/reboot", &changedControllers},
	{"nodeclaim-garbagecollection", "pkg/controllers/nodeclaim/garbagecollection", &changedControllers},
	{"node-legacyrepair", "pkg/controllers/node/legacyrepair", &changedControllers},
	{"nodeclaim-consistency", "pkg/controllers/nodeclaim/consistency", &changedControllers},
	{"static-deprovisioning", "pkg/controllers/static/deprovisioning", &changedControllers},
	{"nodeclaim-expiration", "pkg/controllers/nodeclaim/expiration", &changedControllers},
	{"nodeclaim-podevents", "pkg/controllers/nodeclaim/podevents", &changedControllers},
	{"nodeclaim-hydration", "pkg/controllers/nodeclaim/hydration", &changedControllers},
	{"node-hydration", "pkg/controllers/node/hydration", &changedControllers},
	{"nodepool-counter", "pkg/controllers/nodepool/counter", &changedControllers},
	{"nodepool-hash", "pkg/controllers/nodepool/hash", &changedControllers},
	{"nodepool-readiness", "pkg/controllers/nodepool/readiness", &changedControllers},
	{"nodepool-registrationhealth", "pkg/controllers/nodepool/registrationhealth", &changedControllers},
	{"nodepool-validation", "pkg/controllers/nodepool/validation", &changedControllers},
}

// largeSuites is how many of the first suites are large: a sample has some specs of each.
const largeSuites = 3

// TestKarpenterSpecs runs each suite and compares its failures with the list. JOIST_SPECS enables it. JOIST_FOCUS runs
// only the specs whose names match a regular expression.
func TestKarpenterSpecs(t *testing.T) {
	if os.Getenv("JOIST_SPECS") == "" {
		t.Skip("set JOIST_SPECS=1, or run make specs")
	}
	integration, cache := findFolders(t)
	differences, err := os.ReadFile(filepath.Join(integration, "../deploy/docs/differences.md"))
	if err != nil {
		t.Fatal(err)
	}
	assets, err := controlplane.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := readSample()
	if err != nil {
		t.Fatal(err)
	}
	copies := map[*change]karpenterCopy{}
	for _, c := range []*change{&changedPlanner, &changedControllers} {
		if copies[c], err = copyKarpenter(t.Context(), integration, cache, *c); err != nil {
			t.Fatal(err)
		}
	}
	focus := os.Getenv("JOIST_FOCUS")
	for i, suite := range suites {
		t.Run(suite.name, func(t *testing.T) {
			t.Parallel()
			isSmall := i >= largeSuites
			if focus == "" && isSmall && !drawn.hasSuite(i) {
				t.Skipf("not drawn: one in %d small suites, JOIST_SPECS_SEED=%d", smallShare, drawn.seed)
			}
			source := copies[suite.change]
			list, err := readList(filepath.Join("testdata", suite.name+".yaml"), string(differences))
			if err != nil {
				t.Fatal(err)
			}
			binary := filepath.Join(cache, suite.name+".test")
			if err := source.build(t.Context(), suite.pkg, binary); err != nil {
				t.Fatal(err)
			}
			run := specRun{binary: binary, folder: filepath.Join(source.module, suite.pkg), assets: assets, focus: focus}
			if focus == "" && !isSmall && !drawn.isWhole() {
				all, err := listSpecs(t.Context(), run)
				if err != nil {
					t.Fatal(err)
				}
				run.focus = drawn.focus(all, list)
				t.Logf("one in %d specs, JOIST_SPECS_SEED=%d", drawn.share, drawn.seed)
			}
			compareWithList(t, run, list)
		})
	}
}

// compareWithList runs a suite, compares its failures with the list, and returns the path of Ginkgo's report.
func compareWithList(t *testing.T, run specRun, list suiteList) string {
	t.Helper()
	began := time.Now()
	report, err := runSpecs(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	outcomes, err := readReport(report)
	if err != nil {
		t.Fatal(err)
	}
	if run.focus != "" {
		list = list.restrictTo(outcomes)
	}
	got := compareOutcomes(outcomes, list)
	t.Log(describeComparison(got, time.Since(began)))
	for _, name := range got.repeated {
		t.Log("passed only when it ran again: " + name)
	}
	for _, mistake := range got.mistakes {
		t.Error(mistake)
	}
	return report
}

// findFolders returns the folder of module integration, and the one for copies and binaries.
func findFolders(t *testing.T) (integration, cache string) {
	t.Helper()
	integration, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cache = filepath.Join(integration, "../.cache/karpenterspecs")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	return integration, cache
}

// specRun is one run of a compiled suite.
type specRun struct {
	binary, folder, assets, focus string
	// dryRun only lists the specs in the report.
	dryRun bool
}

// runSpecs runs a suite and returns the path of Ginkgo's report. Its output goes to a file in the folder of the binary,
// because it is tens of megabytes. A suite with failing specs is no error. A failing spec runs again once, because many specs wait
// for a metric or a pod for one second only, which a busy machine may exceed.
func runSpecs(ctx context.Context, run specRun) (report string, err error) {
	base := strings.TrimSuffix(run.binary, ".test")
	report = base + ".json"
	if err := os.RemoveAll(report); err != nil {
		return "", fmt.Errorf("removing the last report: %w", err)
	}
	log, err := os.Create(base + ".log")
	if err != nil {
		return "", fmt.Errorf("creating the log of the specs: %w", err)
	}
	defer log.Close()
	command := exec.CommandContext(ctx, run.binary, "-test.timeout=0", "-ginkgo.timeout=30m", "-ginkgo.seed=1", "-ginkgo.flake-attempts=2", "-ginkgo.no-color", "-ginkgo.json-report="+report, "-ginkgo.focus="+run.focus, fmt.Sprintf("-ginkgo.dry-run=%t", run.dryRun))
	command.Dir, command.Stdout, command.Stderr = run.folder, log, log
	command.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+run.assets, "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=2m")
	// An interrupted suite stops its API server.
	command.Cancel, command.WaitDelay = func() error { return command.Process.Signal(os.Interrupt) }, time.Minute
	failed := command.Run()
	if _, err := os.Stat(report); err != nil {
		return "", fmt.Errorf("running %s, whose output is in %s: %w", run.binary, log.Name(), failed)
	}
	return report, nil
}

// listSpecs returns the specs of a suite without running them.
func listSpecs(ctx context.Context, run specRun) ([]outcome, error) {
	run.dryRun = true
	report, err := runSpecs(ctx, run)
	if err != nil {
		return nil, err
	}
	return readReport(report)
}

// describeComparison returns one line about a suite.
func describeComparison(c comparison, took time.Duration) string {
	counts := []string{fmt.Sprintf("%d specs ran, %d passed", c.ran, c.passed)}
	for _, reason := range []string{upstreamInternals, deferredBatch, documentedDifference} {
		counts = append(counts, fmt.Sprintf("%d %s", c.byReason[reason], reason))
	}
	return fmt.Sprintf("%s; %d mistakes; %d s", strings.Join(counts, ", "), len(c.mistakes), int(took.Seconds()))
}
