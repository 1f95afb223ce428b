package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/services/cli/internal/live/livetest"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/build"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// liveNow is the time of the commands. The cluster's nodes are two days old then.
var liveNow = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// clusterFile has the running cluster of tests.
const clusterFile = "testdata/live/cluster.yaml"

// liveTest is a running cluster for commands.
type liveTest struct {
	*livetest.ListedServer
	t *testing.T
	// catalogue is the catalogue of the account; nil means no credentials.
	catalogue *catalog.Catalogue
	// after replaces the timers of the progress, which never end by default.
	after func(time.Duration) <-chan time.Time
	// terminal is Env.Terminal.
	terminal func(io.Writer) (int, bool)
}

func newLiveTest(t *testing.T) *liveTest {
	t.Helper()
	return &liveTest{ListedServer: livetest.New(t, clusterFile, liveNow), t: t, after: hideProgress}
}

// run runs a command on the cluster.
func (l *liveTest) run(args ...string) (stdout, stderr string, code int) {
	l.t.Helper()
	var out, errs bytes.Buffer
	code = cli.Run(l.t.Context(), cli.Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Now: func() time.Time { return liveNow }, After: l.after, Terminal: l.terminal,
		Build: build.Info{Version: "v1.2.3"}, Platform: "os/arch",
		Live: func(string, string) (cli.LiveCluster, error) {
			return cli.LiveCluster{PageReader: l.ListedServer, Name: "kubeconfig-name"}, nil
		},
		Catalogue: func(context.Context, string) (catalog.Catalogue, []string, error) {
			if l.catalogue == nil {
				return catalog.Catalogue{}, nil, fault.F("finding AWS credentials", fault.Invalid, "no credentials")
			}
			return *l.catalogue, nil, nil
		},
	})
	if wrote := l.Writes(); len(wrote) > 0 {
		l.t.Errorf("the command wrote %v", wrote)
	}
	return out.String(), errs.String(), code
}

// TestLiveGolden compares the output of each command on a running cluster that Karpenter runs.
func TestLiveGolden(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		code int
	}{
		{"plan", []string{"plan"}, cli.ExitChanges},
		{"plan-json", []string{"plan", "-o", "json"}, cli.ExitChanges},
		{"plan-offline", []string{"plan", "--offline-prices", "--context", "prod", "--controller-namespace", "kube-system"}, cli.ExitChanges},
		{"plan-no-deployment", []string{"plan", "--controller-namespace", "default"}, cli.ExitChanges},
		{"plan-price-limit", []string{"plan", "--price-limit", "0.01"}, cli.ExitChanges},
		{"report", []string{"report", "--offline-prices"}, cli.ExitNothing},
		{"report-json", []string{"report", "--offline-prices", "-o", "json"}, cli.ExitNothing},
		{"report-html", []string{"report", "--offline-prices", "-o", "html"}, cli.ExitNothing},
		{"simulate", []string{"simulate", "--remove", "node/ip-10-0-1-1.eu-west-1.compute.internal"}, cli.ExitNothing},
		{"explain", []string{"explain", "node/ip-10-0-5-1.eu-west-1.compute.internal"}, cli.ExitNothing},
		{"explain-json", []string{"explain", "node/ip-10-0-6-1.eu-west-1.compute.internal", "-o", "json"}, cli.ExitNothing},
		{"region", []string{"plan", "--region", "mars-1"}, cli.ExitError},
		{"timeout", []string{"plan", "--timeout", "0s"}, cli.ExitError},
		{"excluded", []string{"plan", "-f", "testdata/inflate.yaml", "--context", "prod"}, cli.ExitError},
		{"namespace", []string{"plan", "-n", "joist"}, cli.ExitError},
		{"excluded-nodes", []string{"consolidate", "--scenario", tiny, "--controller-namespace", "joist"}, cli.ExitError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, code := newLiveTest(t).run(tt.args...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			compareGolden(t, "live/"+tt.name, fmt.Sprintf("$ joist %s\n%s\nstderr:\n%s\nexit code %d\n", strings.Join(tt.args, " "), stdout, stderr, code))
		})
	}
}

// TestLiveErrors: what cannot be read is named with the consequence and the permission, and the rest
// is answered, unless it is required.
func TestLiveErrors(t *testing.T) {
	unauthorized := apierrors.NewUnauthorized("expired")
	for _, tt := range []struct {
		name   string
		change func(*liveTest)
		code   int
		want   []string
	}{
		{"PodDisruptionBudgets", func(l *liveTest) { l.Forbid(fault.Denied, cluster.DisruptionBudgets) }, cli.ExitNothing, []string{
			"warning: poddisruptionbudgets.policy was not read (you may not list it): PodDisruptionBudgets are ignored",
			"check the permission with: kubectl auth can-i list poddisruptionbudgets.policy --all-namespaces",
		}},
		{"NodeClaims", func(l *liveTest) { l.Forbid(fault.Denied, cluster.NodeClaims) }, cli.ExitNothing, []string{
			"kubectl auth can-i list nodeclaims.karpenter.sh\n", "no node is known to be managed",
		}},
		{"EC2NodeClasses", func(l *liveTest) { l.Forbid(fault.Missing, cluster.NodeClasses) }, cli.ExitNothing, []string{
			"ec2nodeclasses.karpenter.k8s.aws was not read (the cluster does not serve karpenter.k8s.aws/v1 EC2NodeClass)",
			"EC2NodeClass default was not read: assuming AL2023", "assuming that it finds a subnet in each zone of eu-west-1",
		}},
		{"Deployments", func(l *liveTest) { l.Forbid(fault.Denied, cluster.Deployments) }, cli.ExitNothing, []string{
			"deployments.apps was not read", "the defaults are assumed",
		}},
		{"required", func(l *liveTest) { l.Forbid(fault.Denied, cluster.Pods, cluster.Nodes, cluster.NodePools) }, cli.ExitError, []string{
			"you may not list nodepools.karpenter.sh, nodes, pods, which every answer needs", "kubectl auth can-i list pods --all-namespaces",
		}},
		{"no CRD", func(l *liveTest) { l.Forbid(fault.Missing, cluster.NodePools, cluster.NodeClaims, cluster.NodeClasses) }, cli.ExitError, []string{
			"it does not serve NodePools of karpenter.sh/v1: neither Karpenter 1.x nor Joist is installed", "chart karpenter-crd",
		}},
		{"expired credentials", func(l *liveTest) { l.Err = fault.E("list deployments", fault.Denied, unauthorized) }, cli.ExitError, []string{
			"the API server does not accept your credentials: they are wrong or have expired", "aws sso login",
		}},
		{"no answer", func(l *liveTest) { l.Err = fault.E("list deployments", fault.Retry, errors.New("connection refused")) }, cli.ExitError, []string{
			"joist: reading the cluster: list deployments: connection refused\nTry: check with kubectl get nodes that the API server answers\n",
		}},
		{"timeout", func(l *liveTest) {
			l.OnList = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		}, cli.ExitError, []string{"not finished after 10ms, with 0 nodes, 0 pods and 0 other objects read", "--timeout with a longer time"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLiveTest(t)
			tt.change(l)
			args := []string{"consolidate"}
			if tt.name == "timeout" {
				args = append(args, "--timeout", "10ms")
			}
			_, stderr, code := l.run(args...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			for _, want := range tt.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("stderr lacks %q:\n%s", want, stderr)
				}
			}
		})
	}
}

// TestLiveLeavesOutOtherProviders: a NodePool of EKS Auto Mode is not planned for, and the output reports it.
func TestLiveLeavesOutOtherProviders(t *testing.T) {
	l := newLiveTest(t)
	auto := &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general-purpose"}}
	auto.Spec.Template.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: "eks.amazonaws.com", Kind: "NodeClass", Name: "default"}
	l.SeedObjects(auto)
	_, stderr, code := l.run("consolidate")
	if code != cli.ExitNothing || !strings.Contains(stderr, "NodePool general-purpose is left to its own provider") {
		t.Errorf("exit code %d, stderr:\n%s", code, stderr)
	}
}

// TestReportListsUnread: the report lists what could not be read in its table, and does not repeat it on stderr.
func TestReportListsUnread(t *testing.T) {
	l := newLiveTest(t)
	l.Forbid(fault.Denied, cluster.DisruptionBudgets, cluster.NodeClaims)
	stdout, stderr, code := l.run("report", "--offline-prices")
	for _, want := range []string{
		"Not read:\n  - poddisruptionbudgets.policy (you may not list it): PodDisruptionBudgets are ignored", "    check the permission with: kubectl auth can-i list nodeclaims.karpenter.sh\n",
		"No node is known to have a NodeClaim, so consolidation considers none.",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("stdout lacks %q:\n%s", want, stdout)
		}
	}
	if code != cli.ExitNothing || stderr != "" {
		t.Errorf("exit code %d, stderr:\n%s", code, stderr)
	}
	if _, stderr, _ = l.run("report", "--offline-prices", "-o", "json"); !strings.Contains(stderr, "warning: nodeclaims.karpenter.sh was not read") {
		t.Errorf("with -o json, stderr:\n%s", stderr)
	}
}

// TestLiveProgress: a reading that lasts longer than a second reports its progress to stderr.
func TestLiveProgress(t *testing.T) {
	l := newLiveTest(t)
	l.terminal = func(io.Writer) (int, bool) { return 80, true }
	shown := make(chan struct{})
	var calls atomic.Int32
	l.after = func(time.Duration) <-chan time.Time {
		out := make(chan time.Time, 1)
		switch calls.Add(1) {
		case 1:
			out <- liveNow
		case 2:
			close(shown) // The progress was printed.
		}
		return out
	}
	l.OnList = func(context.Context) error { <-shown; return nil }
	if _, stderr, _ := l.run("plan"); !strings.HasPrefix(stderr, "reading the cluster (1 s)\r") {
		t.Errorf("stderr:\n%s", stderr)
	}
}

// TestLivePrices: the prices of the account are used if they can be read.
func TestLivePrices(t *testing.T) {
	l := newLiveTest(t)
	c, err := catalog.EmbeddedCatalogue("eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	c = c.Clone()
	c.AsOf = liveNow
	for i := range c.Types {
		for j := range c.Types[i].Offerings {
			c.Types[i].Offerings[j].PricePerHour *= 10
		}
	}
	l.catalogue = &c
	remove := []string{"simulate", "--remove", "node/ip-10-0-1-1.eu-west-1.compute.internal", "-o", "json"}
	type costs struct{ CostBefore float64 }
	account, stderr, _ := l.run(remove...)
	embedded, _, _ := l.run(append(remove, "--offline-prices")...)
	a, e := parseJSON[costs](t, account).CostBefore, parseJSON[costs](t, embedded).CostBefore
	if a < 9.9*e || a > 10.1*e || strings.Contains(stderr, "embedded") {
		t.Errorf("$%.4f with the account's prices, $%.4f with the embedded ones; stderr:\n%s", a, e, stderr)
	}
}

// TestLiveJoist: in a cluster that Joist runs, the settings of the watcher apply, and offerings in the
// ConfigMap joist-unavailable are avoided. A Karpenter without replicas is ignored.
func TestLiveJoist(t *testing.T) {
	l := newLiveTest(t)
	replicas := int32(0)
	karpenter, err := cluster.Get[*appsv1.Deployment](t.Context(), l.ClientFor("admin"), cluster.Deployments, cluster.Key{Namespace: "kube-system", Name: "karpenter"})
	if err != nil {
		t.Fatal(err)
	}
	karpenter.Spec.Replicas = &replicas
	unavailable := `[{"instanceType":"m5a.2xlarge","until":"2026-11-20T12:01:00Z","reason":"InsufficientInstanceCapacity"}]`
	l.SeedObjects(karpenter, joistDeployment(map[string]string{settings.PlannerURL: "https://sqs/planner", settings.ClusterName: "shop-joist", settings.PriceLimit: "5.00"}),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "joist", Name: planning.UnavailableConfigMapName}, Data: map[string]string{planning.UnavailableKey: unavailable}})
	stdout, stderr, code := l.run("plan", "--offline-prices")
	if code != cli.ExitChanges || !strings.Contains(stdout, " m5.2xlarge ") || strings.Contains(stdout, "unavailable") || stderr != "" {
		t.Errorf("exit code %d, stdout:\n%s\nstderr:\n%s", code, stdout, stderr)
	}
	if stdout, _, _ := l.run("simulate", "--remove", "node/ip-10-0-1-1.eu-west-1.compute.internal"); !strings.Contains(stdout, "shop-joist: without") {
		t.Errorf("the cluster's name is not that of the settings:\n%s", stdout)
	}
	l.Forbid(fault.Denied, cluster.ConfigMaps)
	stdout, stderr, _ = l.run("plan", "--offline-prices")
	if !strings.Contains(stdout, "m5a.2xlarge") || !strings.Contains(stderr, "kubectl auth can-i get configmaps/joist-unavailable -n joist") {
		t.Errorf("without the ConfigMap, stdout:\n%s\nstderr:\n%s", stdout, stderr)
	}
}

// TestLiveMirroredKarpenter: the settings of a Karpenter whose image has another name in a mirror apply.
func TestLiveMirroredKarpenter(t *testing.T) {
	l := newLiveTest(t)
	karpenter, err := cluster.Get[*appsv1.Deployment](t.Context(), l.ClientFor("admin"), cluster.Deployments, cluster.Key{Namespace: "kube-system", Name: "karpenter"})
	if err != nil {
		t.Fatal(err)
	}
	karpenter.Spec.Template.Spec.Containers[0].Image = "registry.example.com/autoscaling/controller:1.15.0"
	l.SeedObjects(karpenter)
	if stdout, _, _ := l.run("simulate", "--remove", "node/ip-10-0-1-1.eu-west-1.compute.internal", "--offline-prices"); !strings.Contains(stdout, "shop-prod: without") {
		t.Errorf("the cluster's name is not that of Karpenter's settings:\n%s", stdout)
	}
}

// A setting that cannot be read is an assumption, not an error.
func TestLiveOddSettings(t *testing.T) {
	l := newLiveTest(t)
	l.SeedObjects(joistDeployment(map[string]string{settings.PlannerURL: "https://sqs/planner", settings.PriceLimit: "much"}))
	stdout, _, code := l.run("plan", "--offline-prices")
	if code != cli.ExitChanges || !strings.Contains(stdout, "the default settings, because those of joist/joist-watcher cannot be read") || !strings.Contains(stdout, "much") {
		t.Errorf("exit code %d, stdout:\n%s", code, stdout)
	}
}

// joistDeployment returns the watcher's Deployment with variables.
func joistDeployment(environ map[string]string) *appsv1.Deployment {
	container := corev1.Container{Name: "controller", Image: "example.com/joist-watcher:v1"}
	for _, name := range slices.Sorted(maps.Keys(environ)) {
		container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: environ[name]})
	}
	out := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "joist", Name: "joist-watcher", Labels: map[string]string{"app.kubernetes.io/component": "watcher"}}}
	out.Spec.Template.Spec.Containers = []corev1.Container{container}
	return out
}
