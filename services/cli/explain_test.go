package cli_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/services/cli/internal/explain"
	"github.com/joist-autoscaler/joist/services/cli/internal/records"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// listDocuments reads all documents of a kind of a run.
func listDocuments[T any](t *testing.T, env *embedded.EmbeddedCluster, kind string) (entries []records.StoredDocument, docs []T) {
	t.Helper()
	archive, err := records.Open(env.Blobs, nil)
	if err != nil {
		t.Fatal(err)
	}
	list, err := archive.List(t.Context(), kind, env.Start, env.Now())
	if err == nil {
		err = records.Read(t.Context(), archive, list, func(e records.StoredDocument, doc T) bool {
			entries, docs = append(entries, e), append(docs, doc)
			return true
		}, func(e records.StoredDocument, err error) { t.Errorf("%s: %v", e.Ref.Key(), err) })
	}
	if err != nil || len(docs) == 0 {
		t.Fatalf("%d documents of %s, %v", len(docs), kind, err)
	}
	return entries, docs
}

// TestExplainsEveryPodAndNode runs all services, and then explains each pod of each plan and each node of
// each snapshot, as of that time. Every plan, also those of disruption, must be reproduced byte for byte.
func TestExplainsEveryPodAndNode(t *testing.T) {
	env := recordRun(t, embedded.Options{})
	entries, plans := listDocuments[planning.Plan](t, env, planning.PlanKind)
	states, kinds := map[string]int{}, map[string]int{}
	for i, plan := range plans {
		kinds[plan.Batch.Kind]++
		if plan.Batch.Kind == planning.SnapshotKind {
			continue // Its launches are explained with their nodes.
		}
		var pods []string
		for _, n := range plan.Nominations {
			pods = append(pods, n.Pod.Name)
		}
		for _, u := range plan.Unplaced {
			for _, pod := range u.Pods {
				pods = append(pods, pod.Name)
			}
		}
		for _, pod := range pods {
			stdout, stderr, code := joistOnRecords(t, env, "explain", "pod", pod, "-o", "json", "--at", entries[i].Written.Format(time.RFC3339Nano))
			if code != cli.ExitNothing {
				t.Fatalf("pod %s at %s: %s", pod, entries[i].Written, stderr)
			}
			got := parseJSON[explain.PodExplanation](t, stdout)
			states[got.State]++
			checkPod(t, got)
		}
	}
	if kinds[planning.SnapshotKind] == 0 || states[explain.StateLaunching] == 0 || states[explain.StateExpected] == 0 || states[explain.StateUnschedulable] == 0 {
		t.Errorf("the run has plans of %v and pods that are %v", kinds, states)
	}
	checkNodes(t, env)
}

// checkPod checks the explanation of a pod of a plan.
func checkPod(t *testing.T, got explain.PodExplanation) {
	t.Helper()
	if got.Reproduction == nil || !got.Reproduction.IsReproduced {
		t.Errorf("%s: %+v", got.Pod, got.Reproduction)
	}
	if len(got.NodePools) != 1 || got.NodePools[0].Accepts != (got.State != explain.StateUnschedulable) {
		t.Errorf("%s is %s, with NodePools %+v", got.Pod, got.State, got.NodePools)
	}
	if l := got.Launch; l != nil && (len(l.Offerings) == 0 || l.Why == "" || len(l.InstanceTypes) == 0 || !slices.IsSortedFunc(l.Offerings, func(a, b explain.OfferingPrice) int {
		return int(1e6 * (a.PricePerHour - b.PricePerHour))
	})) {
		t.Errorf("%s: launch %+v", got.Pod, l)
	}
	if c := got.NodePools[0].Changes; c != nil && (!c.IsVerified || len(c.Edits) != 1) {
		t.Errorf("%s: changes %+v", got.Pod, c)
	}
}

// checkNodes explains each node of each snapshot.
func checkNodes(t *testing.T, env *embedded.EmbeddedCluster) {
	t.Helper()
	actions, replaced := map[string]int{}, 0
	_, snapshots := listDocuments[planning.Snapshot](t, env, planning.SnapshotKind)
	for _, snapshot := range snapshots {
		for i := range snapshot.Nodes {
			node := &snapshot.Nodes[i]
			stdout, stderr, code := joistOnRecords(t, env, "explain", "node", node.Name, "-o", "json", "--at", snapshot.TakenAt.Format(time.RFC3339Nano))
			if code != cli.ExitNothing {
				t.Fatalf("node %s at %s: %s", node.Name, snapshot.TakenAt, stderr)
			}
			got := parseJSON[explain.NodeExplanation](t, stdout)
			actions[got.Action]++
			if got.Action == explain.ActionKeep && (got.Rule == "" || got.Change == "") || got.Answer == "" || got.Detail == "" {
				t.Errorf("node %s: %+v", node.Name, got)
			}
			if got.Launch == nil || got.LaunchReproduction == nil || !got.LaunchReproduction.IsReproduced {
				t.Errorf("the launch of node %s at %s: %+v, %v", node.Name, snapshot.TakenAt, got.LaunchReproduction, got.Notes)
			}
			if got.LaunchReproduction != nil && strings.HasPrefix(got.LaunchReproduction.Input, planning.SnapshotKind) {
				replaced++
			}
		}
	}
	if actions[explain.ActionKeep] == 0 || actions[explain.ActionRemove] == 0 || replaced == 0 {
		t.Errorf("actions %v, %d nodes that were launched as replacements", actions, replaced)
	}
}

// TestExplainNoticesTamperedDocuments changes the documents behind a plan, one after the other.
func TestExplainNoticesTamperedDocuments(t *testing.T) {
	env := recordRun(t, embedded.Options{})
	entries, plans := listDocuments[planning.Plan](t, env, planning.PlanKind)
	at := slices.IndexFunc(plans, func(p planning.Plan) bool { return len(p.Intents) > 0 })
	pod := plans[at].Nominations[0].Pod.Name
	when := entries[at].Written.Format(time.RFC3339Nano)
	batch, err := blob.Get[planning.Batch](t.Context(), env.Blobs, plans[at].Batch)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]string{"the batch": plans[at].Batch.Key(), "the catalogue": batch.Snapshot.Catalogue.Key()} {
		good, err := env.Blobs.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		bad := slices.Clone(good)
		bad[len(bad)/2] ^= 1
		if err := env.Blobs.Put(t.Context(), key, bad); err != nil {
			t.Fatal(err)
		}
		if _, stderr, code := joistOnRecords(t, env, "explain", "pod", pod, "--at", when); code != cli.ExitError || !strings.Contains(stderr, key) || !strings.Contains(stderr, "changed or damaged") {
			t.Errorf("%s: exit code %d, %s", name, code, stderr)
		}
		if err := env.Blobs.Put(t.Context(), key, good); err != nil {
			t.Fatal(err)
		}
	}
	// A plan that another version could have made, stored under its own digest.
	forged := plans[at]
	forged.PricePerHour *= 2
	if _, err := blob.Put(t.Context(), env.Blobs, env.Now(), planning.PlanKind, forged); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := joistOnRecords(t, env, "explain", "pod", pod)
	if code != cli.ExitNothing || !strings.Contains(stdout, "NOT the recorded one") || !strings.Contains(stdout, "pricePerHour: recorded") || !strings.Contains(stdout, "another version") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
}

// TestExplainGolden compares explanations of a recorded run with golden files. The JSON is a contract.
func TestExplainGolden(t *testing.T) {
	env := recordRun(t, embedded.Options{})
	_, plans := listDocuments[planning.Plan](t, env, planning.PlanKind)
	var picky, small, node string
	for _, plan := range plans {
		for _, u := range plan.Unplaced {
			picky = u.Pods[0].Name
		}
		for _, n := range plan.Nominations {
			if strings.HasPrefix(n.Pod.Name, "small") && small == "" {
				small = n.Pod.Name
			}
		}
		if plan.Batch.Kind == planning.SnapshotKind {
			node = plan.Intents[0].Claims[0].Object.Name
		}
	}
	for name, args := range map[string][]string{
		"explain-recorded-unschedulable": {"pod", picky}, "explain-recorded-running": {"pod", small, "--at", "2026-01-01T00:02:00Z"},
		"explain-recorded-nodeclaim": {"nodeclaim", node}, "explain-recorded-nodepool": {"nodepool", "default"},
		"explain-recorded-missing": {"pod", "absent"}, "explain-recorded-gap": {"node", node, "--at", "2026-01-01T03:00:00Z"}, "explain-recorded-early": {"node", node, "--at", "2025-12-31T00:00:00Z"},
	} {
		for _, format := range []string{"table", "json"} {
			stdout, stderr, code := joistOnRecords(t, env, append([]string{"explain", "-o", format}, args...)...)
			compareGolden(t, name+"-"+format, fmt.Sprintf("$ joist explain %s -o %s\n%s\nstderr:\n%s\nexit code %d\n", strings.Join(args, " "), format, stdout, stderr, code))
		}
	}
}
