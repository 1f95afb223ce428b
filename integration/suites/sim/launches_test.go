package sim_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

var update = flag.Bool("update", false, "rewrite the launches of the next release")

// The launches of each version: a batch, its catalogue, the plan, and the intents.
const (
	nextLaunches     = "../../environment/versions/testdata/next/launches"
	releasedLaunches = "../../environment/versions/testdata/released/*/launches"
)

// TestLaunchesOfTheNextRelease requires that the launches of one batch are the recorded ones. Lifecycle refuses a launch
// that it would build otherwise. So a release that changes them makes pending pods wait between the upgrade of the
// functions and that of lifecycle, and names that in CHANGELOG.md.
func TestLaunchesOfTheNextRelease(t *testing.T) {
	for name, text := range recordLaunches(t) {
		file := filepath.Join(nextLaunches, name)
		if *update {
			if err := os.MkdirAll(nextLaunches, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("%v (try: go test ./suites/sim -run TestLaunchesOfTheNextRelease -update)", err)
		}
		if diff := cmp.Diff(string(have), string(text)); diff != "" {
			t.Errorf("%s: launches have changed; after reading the diff: go test ./suites/sim -run TestLaunchesOfTheNextRelease -update, and a line in CHANGELOG.md\n%s", name, diff)
		}
	}
}

// TestReleasedLaunchesAreAdmitted requires that today's lifecycle admits the plans of each released planner.
func TestReleasedLaunchesAreAdmitted(t *testing.T) {
	folders, err := filepath.Glob(releasedLaunches)
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range append(folders, nextLaunches) {
		t.Run(folder, func(t *testing.T) {
			var batch planning.Batch
			var cat catalog.Catalogue
			var plan planning.Plan
			readLaunch(t, folder, event.BatchKind, &batch)
			readLaunch(t, folder, event.CatalogueKind, &cat)
			readLaunch(t, folder, event.PlanKind, &plan)
			if len(plan.Intents) == 0 {
				t.Fatal("the plan launches nothing")
			}
			for _, planned := range plan.Intents {
				var intent launchspec.Intent
				readLaunch(t, folder, event.IntentKind+"-"+planned.ID[:8], &intent)
				if err := launchspec.Verify(planned, intent, batch.Snapshot, cat); err != nil {
					t.Errorf("lifecycle refuses intent %s: %v", planned.ID, err)
				}
			}
		})
	}
}

func readLaunch(t *testing.T, folder, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// recordLaunches returns the documents of the first plan of a simulated cluster, by their file names.
func recordLaunches(t *testing.T) map[string][]byte {
	t.Helper()
	w, err := embedded.New(embedded.Options{Seed: 1, Region: "us-west-2", Families: []string{"m6i", "m6g"}})
	if err != nil {
		t.Fatal(err)
	}
	class, web, _ := nodeClassAndDeployment(w)
	if err := w.Apply(t.Context(), class, strictNodePool(), web); err != nil {
		t.Fatal(err)
	}
	keys := func(kind string) []string {
		var out []string
		for _, key := range w.Blobs.ListKeys() {
			if strings.HasPrefix(key, kind+"/") && !strings.HasSuffix(key, "/latest") {
				out = append(out, key)
			}
		}
		return out
	}
	planned, err := w.Run(t.Context(), 5*time.Minute, func() bool { return len(keys(event.IntentKind)) > 0 && len(keys(event.PlanKind)) > 0 })
	if err != nil || !planned {
		t.Fatalf("there is no plan: %v", err)
	}
	var plan planning.Plan
	decodeStored(t, w, keys(event.PlanKind)[0], &plan)
	var batch planning.Batch
	decodeStored(t, w, plan.Batch.Key(), &batch)
	files := map[string]string{
		event.PlanKind: keys(event.PlanKind)[0], event.BatchKind: plan.Batch.Key(), event.CatalogueKind: batch.Snapshot.Catalogue.Key(),
	}
	for _, intent := range plan.Intents {
		files[event.IntentKind+"-"+intent.ID[:8]] = intent.Ref.Key()
	}
	out := map[string][]byte{}
	for name, key := range files {
		var raw json.RawMessage
		decodeStored(t, w, key, &raw)
		var text bytes.Buffer
		if err := json.Indent(&text, raw, "", " "); err != nil {
			t.Fatal(err)
		}
		out[name+".json"] = append(text.Bytes(), '\n')
	}
	return out
}

func decodeStored(t *testing.T, w *embedded.EmbeddedCluster, key string, into any) {
	t.Helper()
	data, err := w.Blobs.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if err := blob.DecodeFile(key, data, into); err != nil {
		t.Fatal(err)
	}
}
