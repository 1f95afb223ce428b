package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// writeDocument writes a document in the format of the bucket and returns the file's name.
func writeDocument(t *testing.T, kind string, doc any) string {
	t.Helper()
	_, data, err := blob.Encode(kind, doc)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, kind+".json.zst", data)
}

func writeFile(t *testing.T, name string, data []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// testCluster returns a snapshot of a cluster that can be consolidated, and the files of the
// snapshot and its catalogue.
func testCluster(t *testing.T) (s planning.Snapshot, snapshot, catalogue string) {
	t.Helper()
	s = planningtest.GenerateCluster(rand.New(rand.NewPCG(2, 2)), 12, 50)
	s.NodePools[0].Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "100%"}}
	return s, writeDocument(t, planning.SnapshotKind, s), writeDocument(t, catalog.Kind, planningtest.NewCatalogue())
}

func parseJSON[T any](t *testing.T, text string) T {
	t.Helper()
	var out T
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return out
}

func countPods(s planning.Snapshot) (n int) {
	for i := range s.Nodes {
		for _, class := range s.Nodes[i].Pods {
			n += len(class.Pods)
		}
	}
	return n
}

// TestConsolidateASnapshot uses the catalogue that the snapshot refers to, or the embedded
// one.
func TestConsolidateASnapshot(t *testing.T) {
	s, snapshot, catalogue := testCluster(t)
	for _, more := range [][]string{{"--catalogue", catalogue}, nil} {
		stdout, stderr, code := runJoist(t, "", nil, append([]string{"consolidate", "--snapshot", snapshot, "-o", "json"}, more...)...)
		if code != cli.ExitNothing {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		got := parseJSON[scenario.Consolidation](t, stdout)
		if got.Scenario != "demo" || got.Nodes != len(s.Nodes) || !got.Complete || got.CostAfter >= got.CostBefore || got.Pods != countPods(s) {
			t.Errorf("%s: %d nodes of %d, %d pods, %.4f became %.4f", got.Scenario, got.Nodes, len(s.Nodes), got.Pods, got.CostBefore, got.CostAfter)
		}
		if noted := strings.Contains(stderr, "note: instance types and prices are the embedded ones of ap-northeast-2"); noted != (more == nil) {
			t.Errorf("with %v: %s", more, stderr)
		}
	}
}

func TestExplainsANodeOfASnapshot(t *testing.T) {
	s, _, catalogue := testCluster(t)
	s.Nodes[0].DoNotDisrupt = true
	stdout, stderr, code := runJoist(t, "", nil, "explain", "node/"+s.Nodes[0].Name, "--snapshot", writeDocument(t, planning.SnapshotKind, s), "--catalogue", catalogue)
	if code != cli.ExitNothing || !strings.Contains(stdout, "is kept (do-not-disrupt)") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

func TestSimulateASnapshot(t *testing.T) {
	s, snapshot, catalogue := testCluster(t)
	from := []string{"simulate", "--snapshot", snapshot, "--catalogue", catalogue, "-o", "json"}
	stdout, stderr, code := runJoist(t, "", nil, append(from, "--remove", "node/"+s.Nodes[3].Name)...)
	if got := parseJSON[simulate.RemovalResult](t, stdout); code != cli.ExitNothing || got.Nodes != len(s.Nodes) || got.NodesAfter != len(s.Nodes)-1+len(got.Replacements) || len(got.Removed) != 1 {
		t.Errorf("exit code %d: %+v %s", code, got, stderr)
	}
	pool := s.NodePools[0].DeepCopy()
	pool.APIVersion, pool.Kind, pool.Status = "karpenter.sh/v1", "NodePool", karpenter.NodePoolStatus{}
	pool.Spec.Template.Labels = map[string]string{"team": "web"}
	text, err := json.Marshal(pool)
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code = runJoist(t, "", nil, append(from, "--pool-change", writeFile(t, "pool.json", text))...)
	got := parseJSON[simulate.ChangeResult](t, stdout)
	if code != cli.ExitNothing || len(got.Drifted) != len(s.Nodes) || len(got.Kept) > 0 || !got.Complete || got.CostAfter >= got.CostBefore || got.Without.CostAfter >= got.CostBefore {
		t.Errorf("exit code %d: %d drift of %d, %d stay, %.4f became %.4f, without the change %.4f: %s", code, len(got.Drifted), len(s.Nodes), len(got.Kept), got.CostBefore, got.CostAfter, got.Without.CostAfter, stderr)
	}
	stdout, stderr, code = runJoist(t, "", nil, append(from[:len(from)-2], "--pool-delete", pool.Name)...)
	for _, want := range []string{"NodePool " + pool.Name + ": deleted", "1   deletion", fmt.Sprint(countPods(s), " pods would be unschedulable"), "assumed:"} {
		if code != cli.ExitChanges || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, want %q in the output: %s%s", code, want, stdout, stderr)
		}
	}
}

func TestNodesErrors(t *testing.T) {
	s, snapshot, catalogue := testCluster(t)
	s.Nodes = nil
	nowhere := writeDocument(t, planning.SnapshotKind, s)
	pool := writeFile(t, "pool.yaml", []byte("apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata:\n  name: web\nspec:\n  limit: 3\n"))
	for _, tt := range []struct {
		name string
		args []string
		want []string
	}{
		{"both", []string{"consolidate", "--snapshot", snapshot, "--scenario", tiny}, []string{"--scenario, --snapshot and --store exclude each other", "Try: joist consolidate --scenario FILE, or --snapshot FILE"}},
		{"a catalogue for a scenario", []string{"consolidate", "--catalogue", catalogue, "--scenario", tiny}, []string{"--catalogue requires --snapshot"}},
		{"no such file", []string{"consolidate", "--snapshot", "none.zst"}, []string{"none.zst: no such file", "Try: check the path"}},
		{"a catalogue", []string{"consolidate", "--snapshot", catalogue}, []string{"reading the snapshot", "Try: give an object below snapshots/"}},
		{"something else", []string{"consolidate", "--snapshot", writeFile(t, "x.json", []byte("{}"))}, []string{"is not a snapshot: it has no cluster name", "Try: give an object below snapshots/"}},
		{"a snapshot as a catalogue", []string{"consolidate", "--snapshot", snapshot, "--catalogue", snapshot}, []string{"reading the catalogue", "Try: give an object below catalogues/"}},
		{"no document", []string{"consolidate", "--snapshot", pool}, []string{"reading the snapshot", "Try: give an object below snapshots/"}},
		{"a cluster without nodes", []string{"consolidate", "--snapshot", nowhere}, []string{"no node of the snapshot has a region label", "Try: --catalogue FILE"}},
		{"a wrong change", []string{"simulate", "--snapshot", snapshot, "--pool-change", pool}, []string{"pool.yaml:6:3", "spec.limit", "limits"}},
		{"two questions", []string{"simulate", "--snapshot", snapshot, "--pool-change", pool, "--spot-storm", "3%"}, []string{"exactly one of --remove, --spot-storm, and --pool-change", "Try: joist simulate --scenario FILE --remove node/NAME"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, code := runJoist(t, "", nil, tt.args...)
			for _, want := range tt.want {
				if code != cli.ExitError || stdout != "" || !strings.Contains(stderr, want) {
					t.Errorf("exit code %d, want %q in the output: %s%s", code, want, stdout, stderr)
				}
			}
		})
	}
}

// storeWithSnapshot returns a store with a snapshot and its catalogue.
func storeWithSnapshot(t *testing.T, s planning.Snapshot) *memblob.Store {
	t.Helper()
	store := memblob.New(memblob.Options{Now: func() time.Time { return s.TakenAt }})
	var err error
	if s.Catalogue, err = blob.Put(t.Context(), store, s.TakenAt, catalog.Kind, planningtest.NewCatalogue()); err != nil {
		t.Fatal(err)
	}
	ref, err := blob.Put(t.Context(), store, s.TakenAt, planning.SnapshotKind, s)
	if err == nil {
		err = blob.SetLatest(t.Context(), store, ref)
	}
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// joistWithStore runs a command whose store is joist-shop/shop.
func joistWithStore(t *testing.T, store *memblob.Store, now time.Time, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Run(t.Context(), cli.Env{
		Args: args, Stdout: &out, Stderr: &errs, After: hideProgress, Now: func() time.Time { return now },
		Store: func(_ context.Context, bucket, prefix string) (blob.Store, error) {
			if bucket+" "+prefix != "joist-shop eu/shop" {
				t.Errorf("bucket %q, prefix %q", bucket, prefix)
			}
			return store, nil
		},
	})
	return out.String(), errs.String(), code
}

// TestLatestSnapshotOfAStore: the note has the age of the snapshot, and a second note warns of
// an old one.
func TestLatestSnapshotOfAStore(t *testing.T) {
	s, snapshot, catalogue := testCluster(t)
	store := storeWithSnapshot(t, s)
	args := []string{"simulate", "--remove", "node/" + s.Nodes[2].Name, "-o", "json"}
	want, _, _ := runJoist(t, "", nil, append(args, "--snapshot", snapshot, "--catalogue", catalogue)...)
	for age, stale := range map[time.Duration]bool{time.Minute: false, 3 * time.Hour: true} {
		stdout, stderr, code := joistWithStore(t, store, s.TakenAt.Add(age), append(args, "--store", "s3://joist-shop/eu/shop/")...)
		if stdout != want || code != cli.ExitNothing || !strings.Contains(stderr, "note: the snapshot of demo is "+map[bool]string{false: "60s", true: "3h"}[stale]+" old") {
			t.Errorf("exit code %d: %s%s", code, stdout, stderr)
		}
		if strings.Contains(stderr, "the cluster may have changed") != stale {
			t.Errorf("%s old: %s", age, stderr)
		}
	}
}

func TestStoreErrors(t *testing.T) {
	s, _, _ := testCluster(t)
	empty := memblob.New(memblob.Options{Now: func() time.Time { return s.TakenAt }})
	for _, tt := range []struct{ name, store, want, hint string }{
		{"no place", "joist-shop", `invalid --store "joist-shop"`, "Try: --store s3://BUCKET/PREFIX"},
		{"no bucket", "s3://", `invalid --store "s3://"`, "Try: --store s3://BUCKET/PREFIX"},
		{"no snapshot", "s3://joist-shop/eu/shop", "finding the latest snapshot in s3://joist-shop/eu/shop", "Try: check that the prefix"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, code := joistWithStore(t, empty, s.TakenAt, "consolidate", "--store", tt.store)
			if code != cli.ExitError || stdout != "" || !strings.Contains(stderr, tt.want) || !strings.Contains(stderr, tt.hint) {
				t.Errorf("exit code %d: %s%s", code, stdout, stderr)
			}
		})
	}
	if _, stderr, code := runJoist(t, "", nil, "explain", "node/x", "--store", "s3://joist-shop"); code != cli.ExitError || !strings.Contains(stderr, "this build has no S3 client") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestReportAgreesWithConsolidate: both commands give the same costs, nodes and commands for the same input, and the sums of
// the report are consistent.
func TestReportAgreesWithConsolidate(t *testing.T) {
	type consolidation struct {
		CostBefore, CostAfter float64
		NodesAfter, PodsMoved int
		Rounds                []struct{ Method string }
	}
	type assessment struct {
		Now, After struct {
			Nodes int
			Cost  struct{ PerHour float64 }
		}
		Pending   struct{ Cost struct{ PerHour float64 } }
		Saving    struct{ PerHour float64 }
		PodsMoved int
		Commands  []struct {
			Method       string
			SavedPerHour float64
		}
		NodePools []struct{ PerHourNow, PerHourAfter float64 }
	}
	for seed := range uint64(3) {
		s := planningtest.GenerateCluster(rand.New(rand.NewPCG(seed, 9)), 40, 160)
		s.NodePools[0].Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "30%"}}
		source := []string{"--snapshot", writeDocument(t, planning.SnapshotKind, s), "--catalogue", writeDocument(t, catalog.Kind, planningtest.NewCatalogue()), "-o", "json"}
		stdout, _, _ := runJoist(t, "", nil, append([]string{"consolidate"}, source...)...)
		want := parseJSON[consolidation](t, stdout)
		stdout, _, _ = runJoist(t, "", nil, append([]string{"report"}, source...)...)
		got := parseJSON[assessment](t, stdout)
		commands, pools := 0.0, 0.0
		for _, c := range got.Commands {
			commands += c.SavedPerHour
		}
		for _, p := range got.NodePools {
			pools += p.PerHourNow - p.PerHourAfter
		}
		for what, pair := range map[string][2]float64{
			"the cost before":                 {got.Now.Cost.PerHour + got.Pending.Cost.PerHour, want.CostBefore},
			"the cost after":                  {got.After.Cost.PerHour, want.CostAfter},
			"the saving":                      {got.Saving.PerHour, want.CostBefore - want.CostAfter},
			"the saving of all commands":      {commands, want.CostBefore - want.CostAfter},
			"the difference of all NodePools": {pools, got.Now.Cost.PerHour - want.CostAfter},
			"the nodes after":                 {float64(got.After.Nodes), float64(want.NodesAfter)},
			"the pods moved":                  {float64(got.PodsMoved), float64(want.PodsMoved)},
			"the commands":                    {float64(len(got.Commands)), float64(len(want.Rounds))},
		} {
			if math.Abs(pair[0]-pair[1]) > 1e-4 {
				t.Errorf("seed %d: %s is %v in the report and %v in the consolidation", seed, what, pair[0], pair[1])
			}
		}
		if len(want.Rounds) == 0 {
			t.Errorf("seed %d: nothing is consolidated", seed)
		}
	}
}
