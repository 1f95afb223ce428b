package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// newMigrateTest returns the cluster with the labels on its NodeClaims that Karpenter writes.
func newMigrateTest(t *testing.T) *liveTest {
	t.Helper()
	out := newLiveTest(t)
	objects, err := out.ListPages(t.Context(), cluster.NodeClaims, "", "", func([]cluster.Object, int) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		claim := object.DeepCopyObject().(*karpenter.NodeClaim)
		claim.Labels["karpenter.k8s.aws/instance-category"], claim.Labels["karpenter.k8s.aws/instance-generation"] = "m", "5"
		out.SeedObjects(claim)
	}
	return out
}

// readPath answers a path of the API server with the objects of the server. It ignores selectors, so
// every Deployment is Karpenter's.
func (l *liveTest) readPath(ctx context.Context, path string) ([]byte, error) {
	path, _, _ = strings.Cut(path, "?")
	if strings.HasSuffix(path, "/kube-root-ca.crt") {
		return []byte(`{"data":{"ca.crt":"authority"}}`), nil
	}
	resource := path[strings.LastIndex(path, "/")+1:]
	at := slices.IndexFunc(cluster.Kinds, func(k cluster.Kind) bool { return k.Resource == resource })
	if at < 0 {
		return nil, fault.F("reading "+path, fault.Missing, "not found")
	}
	objects, err := l.ListPages(ctx, cluster.Kinds[at], "", "", func([]cluster.Object, int) {})
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"items": objects})
}

// runMigrate runs joist migrate --check on the cluster.
func (l *liveTest) runMigrate(args ...string) (stdout string, code int) {
	l.t.Helper()
	var out, errs bytes.Buffer
	code = cli.Run(l.t.Context(), cli.Env{
		Args: append([]string{"migrate", "--check", "--cluster", "shop-prod", "--offline-prices"}, args...), Stdout: &out, Stderr: &errs,
		Now: func() time.Time { return liveNow }, After: hideProgress,
		AWS: func(context.Context) (aws.Config, error) {
			return aws.Config{}, fault.F("loading credentials", fault.Invalid, "no credentials")
		},
		Kube: func(string, string) (func(ctx context.Context, path string) ([]byte, error), error) {
			return l.readPath, nil
		},
		Live: func(string, string) (cli.LiveCluster, error) {
			return cli.LiveCluster{PageReader: l.ListedServer, Name: "kubeconfig-name"}, nil
		},
	})
	if errs.Len() > 0 {
		l.t.Errorf("stderr: %s", errs.String())
	}
	if wrote := l.Writes(); len(wrote) > 0 {
		l.t.Errorf("the command wrote %v", wrote)
	}
	return out.String(), code
}

// livePlan is the plan of today's pods in the JSON of the command.
type livePlan struct {
	NodePools []struct {
		Name                           string
		Unchanged                      bool
		NodesNow, NodesAfter, Launches int
		Replaced, Consolidated         []string
		KeptDrifted                    int
		PricePerHourNow                float64 `json:"perHourNow"`
		PricePerHourAfter              float64 `json:"perHourAfter"`
	}
	PendingPods       int
	Unplaced          []struct{ Pods []string }
	PricePerHourNow   float64 `json:"perHourNow"`
	PricePerHourAfter float64 `json:"perHourAfter"`
	Unread            []struct{ Resource, Consequence, Check string }
}

// readPlan runs the command and returns the plan and the step "plan" of its JSON.
func (l *liveTest) readPlan() (plan *livePlan, state, detail string) {
	l.t.Helper()
	text, _ := l.runMigrate("-o", "json")
	var out struct {
		Plan     *livePlan
		Takeover []struct{ Step, State, Detail string }
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		l.t.Fatalf("%v in %s", err, text)
	}
	for _, s := range out.Takeover {
		if s.Step == "plan" {
			return out.Plan, s.State, s.Detail
		}
	}
	l.t.Fatal("there is no step plan")
	return nil, "", ""
}

// TestMigratePlan compares the text of the command on a running cluster, in which consolidation would
// remove nodes and a pod is pending.
func TestMigratePlan(t *testing.T) {
	text, code := newMigrateTest(t).runMigrate()
	compareGolden(t, "live/migrate", fmt.Sprintf("$ joist migrate --check\n%s\nexit code %d\n", text, code))
}

// TestMigratePlansLikeReport: the costs and nodes are those of joist report, and the launches those of
// joist plan.
func TestMigratePlansLikeReport(t *testing.T) {
	plan, state, _ := newMigrateTest(t).readPlan()
	reported, _, _ := newMigrateTest(t).run("report", "--offline-prices", "-o", "json")
	planned, _, _ := newMigrateTest(t).run("plan", "--offline-prices", "-o", "json")
	var report struct {
		Now, After struct{ Cost struct{ PerHour float64 } }
		NodePools  []struct {
			Name                 string
			NodesNow, NodesAfter int
			PerHourNow           float64
			PerHourAfter         float64
		}
		Commands []struct{ Removed []string }
	}
	var launches struct{ Nodes []struct{ NodePool string } }
	for text, into := range map[string]any{reported: &report, planned: &launches} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	if state != "done" || plan == nil || len(plan.NodePools) != 1 {
		t.Fatalf("step %s, plan %+v", state, plan)
	}
	pool := plan.NodePools[0]
	for _, p := range report.NodePools {
		if p.Name == pool.Name && (p.NodesNow != pool.NodesNow || p.NodesAfter != pool.NodesAfter || p.PerHourNow != pool.PricePerHourNow || p.PerHourAfter != pool.PricePerHourAfter) {
			t.Errorf("the report has %+v, and the plan %+v", p, pool)
		}
	}
	var removed []string
	for _, c := range report.Commands {
		removed = append(removed, c.Removed...)
	}
	slices.Sort(removed)
	slices.Sort(pool.Consolidated)
	if diff := cmp.Diff(removed, pool.Consolidated); diff != "" || len(removed) == 0 {
		t.Errorf("removed nodes (-report +migrate):\n%s", diff)
	}
	if report.Now.Cost.PerHour != plan.PricePerHourNow || report.After.Cost.PerHour != plan.PricePerHourAfter || len(launches.Nodes) != pool.Launches || pool.Launches == 0 || pool.Unchanged {
		t.Errorf("report %+v, joist plan launches %d, migrate %+v", report, len(launches.Nodes), plan)
	}
}

// TestMigratePlanChanges: the plan follows drift, budgets, pending pods and missing permissions.
func TestMigratePlanChanges(t *testing.T) {
	changePool := func(l *liveTest, change func(*karpenter.NodePool)) {
		objects, err := l.ListPages(t.Context(), cluster.NodePools, "", "", func([]cluster.Object, int) {})
		if err != nil {
			t.Fatal(err)
		}
		pool := objects[0].(*karpenter.NodePool).DeepCopy()
		change(pool)
		l.SeedObjects(pool)
	}
	armOnly := func(p *karpenter.NodePool) { p.Spec.Template.Spec.Requirements[0].Values = []string{"arm64"} }
	for _, tt := range []struct {
		name   string
		change func(*liveTest)
		state  string
		detail string
		check  func(*livePlan) bool
	}{
		{
			"requirements that the nodes do not meet replace all that the budgets allow",
			func(l *liveTest) { changePool(l, armOnly) }, "done", "replaced because of drift",
			func(p *livePlan) bool { return len(p.NodePools[0].Replaced) > 0 && !p.NodePools[0].Unchanged },
		},
		{
			"a budget of 0 keeps the drifted nodes",
			func(l *liveTest) {
				changePool(l, func(p *karpenter.NodePool) { armOnly(p); p.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "0"}} })
			}, "done", "",
			func(p *livePlan) bool {
				return p.NodePools[0].KeptDrifted == p.NodePools[0].NodesNow && len(p.NodePools[0].Replaced)+len(p.NodePools[0].Consolidated) == 0
			},
		},
		{
			"a limit leaves the pending pod without a plan",
			func(l *liveTest) {
				changePool(l, func(p *karpenter.NodePool) { p.Spec.Limits = karpenter.Limits{"cpu": resource.MustParse("1")} })
			}, "done", "would not plan 1 pod pending now",
			func(p *livePlan) bool { return len(p.Unplaced) == 1 && p.NodePools[0].Launches == 0 },
		},
		{
			"PodDisruptionBudgets that may not be listed are named with their cost",
			func(l *liveTest) { l.Forbid(fault.Denied, cluster.DisruptionBudgets) }, "unknown", "poddisruptionbudgets.policy (PodDisruptionBudgets are ignored",
			func(p *livePlan) bool {
				return len(p.Unread) == 1 && strings.Contains(p.Unread[0].Check, "kubectl auth can-i list")
			},
		},
		{
			"without the right to list pods there is no plan, and the other steps are evaluated",
			func(l *liveTest) { l.Forbid(fault.Denied, cluster.Pods) }, "unknown", "you may not list pods",
			func(p *livePlan) bool { return p == nil },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newMigrateTest(t)
			tt.change(l)
			plan, state, detail := l.readPlan()
			if state != tt.state || !strings.Contains(detail, tt.detail) || !tt.check(plan) {
				t.Errorf("step %s: %s\nplan %+v", state, detail, plan)
			}
		})
	}
}
