package cli_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/services/cli/internal/records"
	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// otherPool is the NodePool of the recorded run with spot and x86 types too.
func otherPool(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("internal/demo/manifests/nodepool.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, pool, _ := strings.Cut(string(text), "---\n")
	return writeFile(t, "nodepool.yaml", []byte(strings.NewReplacer("- t4g\n", "- t4g\n            - m7i\n", "- arm64\n", "- arm64\n            - amd64\n", "cpu: 20", "cpu: 60", "80Gi", "400Gi").Replace(pool)))
}

// TestExplainWithOtherNodePools replays the decision about a pod that the recorded NodePool rejects, and the
// whole run, with another NodePool.
func TestExplainWithOtherNodePools(t *testing.T) {
	env := recordRun(t, embedded.Options{})
	_, plans := listDocuments[planning.Plan](t, env, planning.PlanKind)
	picky := plans[0].Unplaced[0].Pods[0].Name
	file := otherPool(t)
	for name, args := range map[string][]string{
		"explain-with-pod":    {"pod", picky, "--with", file},
		"explain-with-period": {"nodepool", "default", "--with", file, "--since", "9m"},
		"explain-with-gap":    {"nodepool", "default", "--with", file, "--since", "4h", "--at", "2026-01-01T03:00:00Z"},
		"explain-with-span":   {"nodepool", "default", "--with", file, "--from", "2026-01-01T00:02:00Z", "--until", "2026-01-01T00:06:00Z"},
		"explain-with-turned": {"nodepool", "default", "--with", file, "--from", "2026-01-02", "--until", "2026-01-01"},
		"explain-with-both":   {"nodepool", "default", "--with", file, "--from", "2026-01-01", "--since", "1h"},
		"explain-with-node":   {"node", "x", "--with", file},
	} {
		stdout, stderr, code := joistOnRecords(t, env, append([]string{"explain"}, args...)...)
		compareGolden(t, name, strings.ReplaceAll(fmt.Sprintf("$ joist explain %s\n%s\nstderr:\n%s\nexit code %d\n", strings.Join(args, " "), stdout, stderr, code), file, "nodepool.yaml"))
	}
	stdout, stderr, code := joistOnRecords(t, env, "explain", "nodepool", "default", "--with", file, "--since", "9m", "-o", "json")
	if code != cli.ExitNothing {
		t.Fatal(stderr)
	}
	got := parseJSON[simulate.Period](t, stdout)
	// The recorded NodePool rejects two pods and has no spot.
	if got.Same.Unscheduled != 2 || got.With.Unscheduled != 0 || got.With.Dollars >= got.Same.Dollars || len(got.Moments) < 10 || len(got.Gaps) > 0 {
		t.Errorf("%+v, %d moments", got.With, len(got.Moments))
	}
	for _, m := range got.Moments {
		if m.Same.Nodes > m.Recorded.Nodes {
			t.Errorf("at %s the simulation has more nodes (%d) than were recorded (%d)", m.At, m.Same.Nodes, m.Recorded.Nodes)
		}
	}
}

// TestExplainNamesLostDays: an archive that lost two days of a period names them, and answers the rest.
func TestExplainNamesLostDays(t *testing.T) {
	env := recordRun(t, embedded.Options{})
	_, snapshots := listDocuments[planning.Snapshot](t, env, planning.SnapshotKind)
	first, last := snapshots[0], snapshots[len(snapshots)-1]
	store := records.Directory(t.TempDir())
	write := func(snapshot planning.Snapshot, at time.Time) {
		t.Helper()
		snapshot.TakenAt = at
		ref, err := blob.Put(t.Context(), store, at, planning.SnapshotKind, snapshot)
		if err == nil {
			err = store.SetTime(ref.Key(), at)
		}
		if err == nil {
			var text []byte
			if text, err = env.Blobs.Get(t.Context(), snapshot.Catalogue.Key()); err == nil {
				err = store.Put(t.Context(), snapshot.Catalogue.Key(), text)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	day := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	for hour := range 24 {
		write(first, day.Add(time.Duration(hour)*time.Hour))
		write(last, day.Add(72*time.Hour+time.Duration(hour)*time.Hour))
	}
	period := []string{"--store", string(store), "--from", "2026-01-05", "--until", "2026-01-09"}
	stdout, stderr, code := runJoist(t, "", nil, append([]string{"explain", "node", last.Nodes[0].Name}, period...)...)
	if code != cli.ExitNothing || !strings.Contains(stdout, "from 2026-01-05 23:00:00 UTC until 2026-01-08 00:00:00 UTC (lost days: 2026-01-06, 2026-01-07)") || strings.Count(stdout, "lost days") != 1 {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	if _, stderr, code = runJoist(t, "", nil, append([]string{"explain", "pod", "absent"}, period...)...); code != cli.ExitError || !strings.Contains(stderr, "lost days: 2026-01-06, 2026-01-07") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	stdout, stderr, code = runJoist(t, "", nil, append([]string{"explain", "nodepool", "default", "--with", otherPool(t), "-o", "json"}, period...)...)
	if code != cli.ExitNothing {
		t.Fatal(stderr)
	}
	got := parseJSON[simulate.Period](t, stdout)
	if len(got.Gaps) != 1 || !slices.Equal(got.Gaps[0].Days, []string{"2026-01-06", "2026-01-07"}) || len(got.Moments) < 20 {
		t.Errorf("gaps %+v, %d moments", got.Gaps, len(got.Moments))
	}
}
