package karpenterspecs

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/controlplane"
)

// providerSuites are the packages of Karpenter's AWS provider whose specs run, by the name of the list in testdata.
// sample is how many specs run if not all do.
var providerSuites = []struct {
	name, pkg string
	sample    int
}{
	{"interruption", "pkg/controllers/interruption", 30},
	{"instance", "pkg/providers/instance", 41},
	{"tagging", "pkg/controllers/nodeclaim/tagging", 4},
	{"garbagecollection", "pkg/controllers/nodeclaim/garbagecollection", 3},
	{"cloudprovider", "pkg/cloudprovider", 30},
	{"launchtemplate", "pkg/providers/launchtemplate", 40},
}

// TestProviderSpecs runs each suite of the AWS provider and compares its failures with the list, as TestKarpenterSpecs.
// JOIST_PROVIDER_SPECS enables it: "all" runs all specs, and "sample" a sample, drawn with the seed JOIST_SEED or a new
// one. JOIST_FOCUS is that of TestKarpenterSpecs.
func TestProviderSpecs(t *testing.T) {
	mode := os.Getenv("JOIST_PROVIDER_SPECS")
	if mode == "" {
		t.Skip("set JOIST_PROVIDER_SPECS=all, or run make providerspecs")
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
	source, err := copyProvider(t.Context(), integration, cache)
	if err != nil {
		t.Fatal(err)
	}
	for _, suite := range providerSuites {
		t.Run(suite.name, func(t *testing.T) {
			t.Parallel()
			list, err := readList(filepath.Join("testdata", suite.name+".yaml"), string(differences))
			if err != nil {
				t.Fatal(err)
			}
			binary := filepath.Join(cache, suite.name+".test")
			if _, err := source.runGo(t.Context(), "test", "-c", "-vet=off", "-ldflags=-s -w", "-modfile="+source.modFile, "-o", binary, providerModule+"/"+suite.pkg); err != nil {
				t.Fatal(err)
			}
			run := specRun{binary: binary, folder: filepath.Join(source.module, suite.pkg), assets: assets, focus: os.Getenv("JOIST_FOCUS")}
			if mode == "sample" && run.focus == "" {
				run.focus = drawSample(t, run, suite.sample)
			}
			driven, err := countDriven(compareWithList(t, run, list))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d specs reached Joist", driven)
		})
	}
}

// drawSample returns a regular expression of so many names of the suite's specs.
func drawSample(t *testing.T, run specRun, size int) string {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("JOIST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("JOIST_SEED: %v", err)
		}
	}
	t.Logf("sample of %d specs: JOIST_SEED=%d", size, seed)
	outcomes, err := listSpecs(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(outcomes), func(i, j int) { outcomes[i], outcomes[j] = outcomes[j], outcomes[i] })
	var names []string
	for _, o := range outcomes[:min(size, len(outcomes))] {
		// Ginkgo joins the texts of a name with spaces.
		names = append(names, regexp.QuoteMeta(strings.ReplaceAll(o.name, " > ", " ")))
	}
	return "(" + strings.Join(names, "|") + ")$"
}

// countDriven returns how many specs called Joist, which the added files report as entries of the spec.
func countDriven(path string) (int, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("reading the report of the specs: %w", err)
	}
	var suites []struct {
		SpecReports []struct{ ReportEntries []struct{ Name string } }
	}
	if err := json.Unmarshal(content, &suites); err != nil {
		return 0, fmt.Errorf("reading %s: %w", path, err)
	}
	count := 0
	for _, suite := range suites {
		for _, s := range suite.SpecReports {
			if len(s.ReportEntries) > 0 {
				count++
			}
		}
	}
	return count, nil
}
