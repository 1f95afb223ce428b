package launchspec_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/launchspec/userdata"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

var update = flag.Bool("update", false, "update the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (write it with -update)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func text(t *testing.T, value any) string {
	t.Helper()
	out, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out) + "\n"
}

func build(t *testing.T, batch planning.Batch) launchspec.Built {
	t.Helper()
	cat := planningtest.NewCatalogue()
	ref, _, err := blob.Encode(planning.BatchKind, batch)
	if err != nil {
		t.Fatal(err)
	}
	built, err := launchspec.Build(batch, ref, solver.Solve(batch, cat), cat)
	if err != nil {
		t.Fatal(err)
	}
	verify(t, built, batch.Snapshot, cat)
	return built
}

// seed returns the default batch.
func seed() planning.Batch {
	return planningtest.NewBatch(planningtest.NewPods("inflate", 5, "1", "0"))
}

func TestSeedGoldens(t *testing.T) {
	built := build(t, seed())
	if len(built.Intents) == 0 {
		t.Fatal("no intent")
	}
	first := built.Intents[0].Templates[0]
	golden(t, "seed-userdata.txt", strings.ReplaceAll(first.UserData, "\r\n", "\n"))
	first.UserData = "(see seed-userdata.txt)"
	golden(t, "seed-template.json", text(t, first))
	golden(t, "seed-fleet.json", text(t, built.Intents[0].Fleet))
	golden(t, "seed-claim.json", text(t, built.Plan.Intents[0].Claims[0]))
}

func TestUserDataRoundTrip(t *testing.T) {
	batch := seed()
	pool := &batch.Snapshot.NodePools[0]
	pool.Spec.Template.Labels = map[string]string{"team": "shop", "node-role.kubernetes.io/web": "true"}
	pool.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "shop", Effect: corev1.TaintEffectNoSchedule}}
	pool.Spec.Template.Spec.StartupTaints = []corev1.Taint{{Key: "cni", Effect: corev1.TaintEffectNoExecute}}
	batch.Pending[0].Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	built := build(t, batch)
	for _, intent := range built.Intents {
		for _, template := range intent.Templates {
			joining, err := userdata.Parse(template.UserData)
			if err != nil {
				t.Fatal(err)
			}
			if joining.ClusterName != "demo" || joining.MaxPods == 0 {
				t.Errorf("joining = %+v", joining)
			}
			for key, want := range map[string]string{
				karpenter.NodePoolLabelKey: "default", karpenter.CapacityTypeLabelKey: "spot", "team": "shop",
				corev1.LabelTopologyZone: "ap-northeast-2a", "node-role.kubernetes.io/web": "",
				corev1.LabelInstanceTypeStable: "",
			} {
				if got := joining.Labels[key]; got != want {
					t.Errorf("label %s = %q, want %q", key, got, want)
				}
			}
			want := []corev1.Taint{
				{Key: "dedicated", Value: "shop", Effect: corev1.TaintEffectNoSchedule},
				{Key: "cni", Effect: corev1.TaintEffectNoExecute}, karpenter.UnregisteredTaint(),
			}
			if diff := cmp.Diff(want, joining.Taints); diff != "" {
				t.Error(diff)
			}
		}
	}
}

func TestEqualNodesShareIntent(t *testing.T) {
	batch := planningtest.NewBatch(planningtest.NewPods("big", 120, "3", "0"))
	batch.Snapshot.NodePools[0].Spec.Limits = nil
	built := build(t, batch)
	var sizes []int
	claims := map[string]bool{}
	for i, intent := range built.Intents {
		sizes = append(sizes, len(intent.Claims))
		for _, name := range intent.Claims {
			claims[name] = true
		}
		if intent.Fleet.Count != len(intent.Claims) || len(built.Plan.Intents[i].Claims) != len(intent.Claims) || intent.Fleet.Token != intent.ID {
			t.Errorf("intent %d: count %d, token %s, %d claims planned, %d named", i, intent.Fleet.Count, intent.Fleet.Token,
				len(built.Plan.Intents[i].Claims), len(intent.Claims))
		}
		if ref, _, err := blob.Encode(launchspec.Kind, intent); err != nil || ref != built.Plan.Intents[i].Ref {
			t.Errorf("intent %d differs from the document that the plan refers to (%v)", i, err)
		}
	}
	if diff := cmp.Diff([]int{50, 50, 20}, sizes); diff != "" {
		t.Error(diff)
	}
	if len(claims) != 120 || len(built.Plan.Nominations) != 120 {
		t.Errorf("%d names and %d nominations, want 120", len(claims), len(built.Plan.Nominations))
	}
	if a, b := built.Intents[0].Templates[0].Name, built.Intents[1].Templates[0].Name; a != b {
		t.Errorf("equal content has the names %s and %s", a, b)
	}
}

// TestReplaceDerivesFromProposalAndSnapshot checks that replacements are launched like other nodes,
// with different ids for each proposal and each snapshot.
func TestReplaceDerivesFromProposalAndSnapshot(t *testing.T) {
	batch, cat := seed(), planningtest.NewCatalogue()
	result := solver.Solve(batch, cat)
	ids := map[string]bool{}
	for _, proposal := range []string{"p", "q"} {
		for _, taken := range []time.Duration{0, time.Minute} {
			s := batch.Snapshot
			s.TakenAt = s.TakenAt.Add(taken)
			ref, _, err := blob.Encode(planning.SnapshotKind, s)
			if err != nil {
				t.Fatal(err)
			}
			built, err := launchspec.Replace(proposal, s, ref, result, cat)
			if err != nil || len(built.Intents) == 0 || built.Plan.Batch != ref || built.Plan.Outbox != "" || len(built.Plan.Nominations) != 5 {
				t.Fatalf("built %+v (%v)", built.Plan, err)
			}
			again, err := launchspec.Replace(proposal, s, ref, result, cat)
			if diff := cmp.Diff(built, again); diff != "" || err != nil {
				t.Fatalf("built again (-first +again):\n%s (%v)", diff, err)
			}
			ids[built.Intents[0].ID] = true
		}
	}
	if ids[build(t, batch).Intents[0].ID] = true; len(ids) != 5 {
		t.Errorf("%d different IDs of 5 launches", len(ids))
	}
}

func TestTemplateNameFollowsContent(t *testing.T) {
	was := build(t, seed()).Intents[0].Templates[0].Name
	batch := seed()
	batch.Snapshot.NodeClasses[0].Spec.DetailedMonitoring = new(true)
	if now := build(t, batch).Intents[0].Templates[0].Name; now == was {
		t.Error("different content has the same name")
	}
}

func TestOwnerTags(t *testing.T) {
	batch := seed()
	batch.Snapshot.NodeClasses[0].Spec.Tags = map[string]string{"Env": "dev", karpenter.NodePoolTagKey: "stolen"}
	intent := build(t, batch).Intents[0]
	want := map[string]string{
		"Env": "dev", "kubernetes.io/cluster/demo": "owned", "eks:eks-cluster-name": "demo",
		"karpenter.sh/nodepool": "default", "karpenter.k8s.aws/ec2nodeclass": "default",
	}
	if diff := cmp.Diff(want, intent.Templates[0].Tags); diff != "" {
		t.Error(diff)
	}
	want[launchspec.IntentTag] = intent.ID
	var resources []string
	for _, set := range intent.Fleet.TagSets {
		resources = append(resources, set.Resource)
		if diff := cmp.Diff(want, set.Tags); diff != "" {
			t.Errorf("%s: %s", set.Resource, diff)
		}
	}
	if diff := cmp.Diff([]string{"instance", "volume", "fleet"}, resources); diff != "" {
		t.Error(diff)
	}
}

func TestInvalidUserDataLeavesPodsUnplaced(t *testing.T) {
	batch := seed()
	class := &batch.Snapshot.NodeClasses[0]
	class.Spec.AMIFamily, class.Spec.UserData = new(karpenter.AMIFamilyBottlerocket), new("echo hello")
	built := build(t, batch)
	if len(built.Intents) != 0 || len(built.Plan.Unplaced) != 1 || len(built.Plan.Unplaced[0].Pods) != 5 {
		t.Fatalf("built = %+v", built)
	}
	rejection := built.Plan.Unplaced[0].Rejections[0]
	if rejection.NodePool != "default" || !strings.Contains(rejection.Detail, "Bottlerocket requires TOML") {
		t.Errorf("rejection = %+v", rejection)
	}
}

func TestOnDemandIfSpotIsUnavailable(t *testing.T) {
	batch := seed()
	batch.Snapshot.Unavailable = []planning.Unavailable{
		{Offering: event.Offering{CapacityType: cloud.Spot}, Until: planningtest.Now.Add(1), Reason: "test"},
	}
	fleet := build(t, batch).Intents[0].Fleet
	if fleet.CapacityType != cloud.OnDemand || fleet.Strategy != "lowest-price" {
		t.Errorf("fleet = %+v", fleet)
	}
}

// remoteStore is a store whose writes and checks take some time.
type remoteStore struct {
	blob.Store
	latency time.Duration
}

func (s remoteStore) Put(ctx context.Context, key string, data []byte) error {
	time.Sleep(s.latency)
	return s.Store.Put(ctx, key, data)
}

// The intents of a large plan and the plan are stored at the same time.
func TestStoreLargePlan(t *testing.T) {
	var built launchspec.Built
	for i := range 420 {
		intent := launchspec.Intent{ID: fmt.Sprintf("intent-%d", i)}
		ref, _, err := blob.Encode(launchspec.Kind, intent)
		if err != nil {
			t.Fatal(err)
		}
		built.Intents = append(built.Intents, intent)
		built.Plan.Intents = append(built.Plan.Intents, planning.PlannedIntent{ID: intent.ID, Ref: ref})
	}
	for parallel, want := range map[int]time.Duration{0: 8420 * time.Millisecond, blob.Parallel: 540 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			ref, err := built.Store(t.Context(), remoteStore{memblob.New(memblob.Options{Now: time.Now}), 20 * time.Millisecond}, parallel)
			if took := time.Since(began); err != nil || ref.Kind != planning.PlanKind || took != want {
				t.Errorf("%d at the same time: stored as %q after %s, want %s: %v", parallel, ref.Kind, took, want, err)
			}
		})
	}
	built.Plan.Intents[7].Ref.Digest = event.DigestOf([]byte("other"))
	blobs := memblob.New(memblob.Options{Now: time.Now})
	if ref, err := built.Store(t.Context(), blobs, 1); !fault.Is(err, fault.Bug) || !ref.IsZero() {
		t.Errorf("a plan that refers to another intent was stored as %v: %v", ref, err)
	}
}
