package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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

// stored writes a document as the store has it, and gives its file.
func stored(t *testing.T, kind string, doc any) string {
	t.Helper()
	_, data, err := blob.Encode(kind, doc)
	if err != nil {
		t.Fatal(err)
	}
	return written(t, kind+".json.zst", data)
}

func written(t *testing.T, name string, data []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// cluster is a snapshot of a cluster with much to give, and its catalogue, as files.
func cluster(t *testing.T) (s planning.Snapshot, snapshot, catalogue string) {
	t.Helper()
	s = planningtest.GenerateCluster(rand.New(rand.NewPCG(2, 2)), 12, 50)
	s.NodePools[0].Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "100%"}}
	return s, stored(t, planning.SnapshotKind, s), stored(t, catalog.Kind, planningtest.NewCatalogue())
}

func parsed[T any](t *testing.T, text string) T {
	t.Helper()
	var out T
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return out
}

func podsOf(s planning.Snapshot) (n int) {
	for i := range s.Nodes {
		for _, class := range s.Nodes[i].Pods {
			n += len(class.Pods)
		}
	}
	return n
}

// A snapshot of a cluster is played with the catalogue that it names, or with the one
// that comes with the command.
func TestConsolidateASnapshot(t *testing.T) {
	s, snapshot, catalogue := cluster(t)
	for _, more := range [][]string{{"--catalogue", catalogue}, nil} {
		stdout, stderr, code := joist(t, "", nil, append([]string{"consolidate", "--snapshot", snapshot, "-o", "json"}, more...)...)
		if code != cli.ExitNothing {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		got := parsed[scenario.Consolidation](t, stdout)
		if got.Scenario != "demo" || got.Nodes != len(s.Nodes) || !got.Complete || got.CostAfter >= got.CostBefore || got.Pods != podsOf(s) {
			t.Errorf("%s: %d nodes of %d, %d pods, %.4f became %.4f", got.Scenario, got.Nodes, len(s.Nodes), got.Pods, got.CostBefore, got.CostAfter)
		}
		if told := strings.Contains(stderr, "note: instance types and prices are the embedded ones of ap-northeast-2"); told != (more == nil) {
			t.Errorf("with %v: %s", more, stderr)
		}
	}
}

func TestWhyOfASnapshot(t *testing.T) {
	s, _, catalogue := cluster(t)
	s.Nodes[0].DoNotDisrupt = true
	stdout, stderr, code := joist(t, "", nil, "why", "node/"+s.Nodes[0].Name, "--snapshot", stored(t, planning.SnapshotKind, s), "--catalogue", catalogue)
	if code != cli.ExitNothing || !strings.Contains(stdout, "is kept (do-not-disrupt)") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

func TestSimulateASnapshot(t *testing.T) {
	s, snapshot, catalogue := cluster(t)
	from := []string{"simulate", "--snapshot", snapshot, "--catalogue", catalogue, "-o", "json"}
	stdout, stderr, code := joist(t, "", nil, append(from, "--remove", "node/"+s.Nodes[3].Name)...)
	if got := parsed[simulate.RemovalResult](t, stdout); code != cli.ExitNothing || got.Nodes != len(s.Nodes) || got.NodesAfter != len(s.Nodes)-1+len(got.Replacements) || len(got.Removed) != 1 {
		t.Errorf("exit code %d: %+v %s", code, got, stderr)
	}
	pool := s.NodePools[0].DeepCopy()
	pool.APIVersion, pool.Kind, pool.Status = "karpenter.sh/v1", "NodePool", karpenter.NodePoolStatus{}
	pool.Spec.Template.Labels = map[string]string{"team": "web"}
	text, err := json.Marshal(pool)
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code = joist(t, "", nil, append(from, "--pool-change", written(t, "pool.json", text))...)
	got := parsed[simulate.ChangeResult](t, stdout)
	if code != cli.ExitNothing || len(got.Drifted) != len(s.Nodes) || len(got.Staying) > 0 || !got.Complete || got.CostAfter >= got.CostBefore || got.Without.CostAfter >= got.CostBefore {
		t.Errorf("exit code %d: %d drift of %d, %d stay, %.4f became %.4f, without the change %.4f: %s", code, len(got.Drifted), len(s.Nodes), len(got.Staying), got.CostBefore, got.CostAfter, got.Without.CostAfter, stderr)
	}
	stdout, stderr, code = joist(t, "", nil, append(from[:len(from)-2], "--pool-delete", pool.Name)...)
	for _, want := range []string{"NodePool " + pool.Name + ": deleted", "1   deletion", fmt.Sprint(podsOf(s), " pods would be unschedulable"), "assumed:"} {
		if code != cli.ExitChanges || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, and it lacks %q: %s%s", code, want, stdout, stderr)
		}
	}
}

func TestNodesComplaints(t *testing.T) {
	s, snapshot, catalogue := cluster(t)
	s.Nodes = nil
	nowhere := stored(t, planning.SnapshotKind, s)
	pool := written(t, "pool.yaml", []byte("apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata:\n  name: web\nspec:\n  limit: 3\n"))
	for _, tt := range []struct {
		name string
		args []string
		want []string
	}{
		{"both", []string{"consolidate", "--snapshot", snapshot, "--scenario", tiny}, []string{"exactly one of --scenario, --snapshot and --store", "Try: joist consolidate --scenario FILE, or --snapshot FILE"}},
		{"a catalogue for a scenario", []string{"consolidate", "--catalogue", catalogue, "--scenario", tiny}, []string{"--catalogue requires --snapshot"}},
		{"no such file", []string{"consolidate", "--snapshot", "none.zst"}, []string{"none.zst: no such file", "Try: check the path"}},
		{"a catalogue", []string{"consolidate", "--snapshot", catalogue}, []string{"reading the snapshot", "Try: give an object below snapshots/"}},
		{"something else", []string{"consolidate", "--snapshot", written(t, "x.json", []byte("{}"))}, []string{"is not a snapshot: it has no cluster name", "Try: give an object below snapshots/"}},
		{"a snapshot as a catalogue", []string{"consolidate", "--snapshot", snapshot, "--catalogue", snapshot}, []string{"reading the catalogue", "Try: give an object below catalogues/"}},
		{"no document", []string{"consolidate", "--snapshot", pool}, []string{"reading the snapshot", "Try: give an object below snapshots/"}},
		{"a cluster without nodes", []string{"consolidate", "--snapshot", nowhere}, []string{"no node of the snapshot has a region label", "Try: --catalogue FILE"}},
		{"a wrong change", []string{"simulate", "--snapshot", snapshot, "--pool-change", pool}, []string{"pool.yaml:6:3", "spec.limit", "limits"}},
		{"two questions", []string{"simulate", "--snapshot", snapshot, "--pool-change", pool, "--spot-storm", "3%"}, []string{"exactly one simulation is required", "Try: --remove, --spot-storm, or --pool-change"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, code := joist(t, "", nil, tt.args...)
			for _, want := range tt.want {
				if code != cli.ExitError || stdout != "" || !strings.Contains(stderr, want) {
					t.Errorf("exit code %d, and it lacks %q: %s%s", code, want, stdout, stderr)
				}
			}
		})
	}
}

// latest is a store with a snapshot in it, as the watcher and the catalog leave one.
func latest(t *testing.T, s planning.Snapshot) *memblob.Store {
	t.Helper()
	store := memblob.New(memblob.Options{Now: func() time.Time { return s.TakenAt }})
	var err error
	if s.Catalogue, err = blob.Put(t.Context(), store, s.TakenAt, catalog.Kind, planningtest.NewCatalogue()); err != nil {
		t.Fatal(err)
	}
	ref, err := blob.Put(t.Context(), store, s.TakenAt, planning.SnapshotKind, s)
	if err == nil {
		err = blob.Point(t.Context(), store, ref)
	}
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// ask runs a command that may open the store as joist-shop/shop.
func ask(t *testing.T, store *memblob.Store, now time.Time, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Run(t.Context(), cli.Env{
		Args: args, Stdout: &out, Stderr: &errs, Now: func() time.Time { return now },
		Store: func(_ context.Context, bucket, prefix string) (blob.Store, error) {
			if bucket+" "+prefix != "joist-shop eu/shop" {
				t.Errorf("bucket %q, prefix %q", bucket, prefix)
			}
			return store, nil
		},
	})
	return out.String(), errs.String(), code
}

// The latest snapshot is the cluster's as of today, with the prices of today; how old
// it is, is said.
func TestTheLatestSnapshotOfAStore(t *testing.T) {
	s, snapshot, catalogue := cluster(t)
	store := latest(t, s)
	args := []string{"simulate", "--remove", "node/" + s.Nodes[2].Name, "-o", "json"}
	want, _, _ := joist(t, "", nil, append(args, "--snapshot", snapshot, "--catalogue", catalogue)...)
	for age, stale := range map[time.Duration]bool{time.Minute: false, 3 * time.Hour: true} {
		stdout, stderr, code := ask(t, store, s.TakenAt.Add(age), append(args, "--store", "s3://joist-shop/eu/shop/")...)
		if stdout != want || code != cli.ExitNothing || !strings.Contains(stderr, "note: the snapshot of demo is "+age.String()+" old") {
			t.Errorf("exit code %d: %s%s", code, stdout, stderr)
		}
		if strings.Contains(stderr, "the cluster may have changed") != stale {
			t.Errorf("%s old: %s", age, stderr)
		}
	}
}

func TestStoreComplaints(t *testing.T) {
	s, _, _ := cluster(t)
	empty := memblob.New(memblob.Options{Now: func() time.Time { return s.TakenAt }})
	for _, tt := range []struct{ name, store, want, hint string }{
		{"no place", "joist-shop", `invalid --store "joist-shop"`, "Try: --store s3://BUCKET/PREFIX"},
		{"no bucket", "s3://", `invalid --store "s3://"`, "Try: --store s3://BUCKET/PREFIX"},
		{"no snapshot", "s3://joist-shop/eu/shop", "finding the latest snapshot in s3://joist-shop/eu/shop", "Try: check that the prefix"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, code := ask(t, empty, s.TakenAt, "consolidate", "--store", tt.store)
			if code != cli.ExitError || stdout != "" || !strings.Contains(stderr, tt.want) || !strings.Contains(stderr, tt.hint) {
				t.Errorf("exit code %d: %s%s", code, stdout, stderr)
			}
		})
	}
	if _, stderr, code := joist(t, "", nil, "why", "node/x", "--store", "s3://joist-shop"); code != cli.ExitError || !strings.Contains(stderr, "this build has no S3 client") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
