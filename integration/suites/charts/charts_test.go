package charts

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/golden"
	"github.com/joist-autoscaler/joist/integration/environment/helm"
)

// root is the repository's folder.
const root = "../../.."

// needed are the required values.
var needed = []string{"settings.clusterName=prod", "settings.region=eu-west-1", "settings.accountID=111122223333", image}

const image = "controller.image.repository=registry.example.com/joist"

// given is one set of a user's values.
type given struct {
	name, namespace string
	files, set      []string
	flags           []string
}

func cases(t *testing.T) []given {
	return []given{
		{name: "defaults", namespace: "joist", set: needed},
		{name: "everything", namespace: "joist", files: []string{"testdata/values/everything.yaml"}, flags: []string{"--api-versions", "monitoring.coreos.com/v1"}},
		{name: "karpenter", namespace: "kube-system", files: []string{karpenters(t)}, set: needed},
		{name: "seed-001", namespace: "kube-system", files: []string{"testdata/values/seed-001.yaml"}, set: []string{"settings.region=ap-northeast-2", image}},
		{name: "seed-002", namespace: "karpenter", set: []string{
			`serviceAccount.annotations.eks\.amazonaws\.com/role-arn=arn:aws:iam::111122223333:role/me-karpenter-demo-karpenter`,
			"clusterName=me-karpenter-demo", "clusterEndpoint=", "aws.defaultInstanceProfile=KarpenterNodeInstanceProfile-me-karpenter-demo",
			"settings.region=ap-northeast-2", image,
		}},
		{name: "seed-003", namespace: "karpenter", set: []string{
			`serviceAccount.annotations.eks\.amazonaws\.com/role-arn=arn:aws:iam::111122223333:role/demo-karpenter`,
			"settings.aws.clusterName=demo", "settings.aws.defaultInstanceProfile=KarpenterNodeInstanceProfile-demo", "settings.aws.interruptionQueueName=demo",
			"settings.aws.clusterEndpoint=https://0123456789ABCDEF.gr7.ap-southeast-1.eks.amazonaws.com", image,
		}},
	}
}

// karpentersPath returns the path of the values.yaml of Karpenter's released chart.
var karpentersPath = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/aws/karpenter-provider-aws").Output() //nolint:noctx // it reads the module cache
	return filepath.Join(strings.TrimSpace(string(out)), "charts/karpenter/values.yaml"), err
})

func karpenters(t *testing.T) string {
	t.Helper()
	path, err := karpentersPath()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// release returns the chart with NOTES.txt as an additional object, because helm renders
// notes only during an installation.
func (g given) release(t *testing.T) helm.Release {
	t.Helper()
	chart := filepath.Join(t.TempDir(), "joist")
	if err := os.CopyFS(chart, os.DirFS(helm.Joist)); err != nil {
		t.Fatal(err)
	}
	const notes = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}\ndata:\n  notes: {{ include \"joist.notes\" . | toJson }}\n"
	if err := os.WriteFile(chart+"/templates/notes.yaml", []byte(notes), 0o600); err != nil {
		t.Fatal(err)
	}
	return helm.Release{Name: "joist", Namespace: g.namespace, Chart: chart, Files: g.files, Set: g.set}
}

func (g given) render(t *testing.T, flags ...string) string {
	t.Helper()
	out, err := helm.Template(t.Context(), g.release(t), slices.Concat(g.flags, flags)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The chart accepts the seeds' values and Karpenter's own, and its notes describe the
// effect of each.
func TestGoldens(t *testing.T) {
	// It runs after TestKeys, which may write the input of the notes.
	t.Parallel()
	for _, g := range cases(t) {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			var flags []string
			if g.name != "defaults" && g.name != "everything" {
				// What these values change, and the notes.
				flags = []string{"--show-only", "templates/deployments.yaml", "--show-only", "templates/serviceaccounts.yaml", "--show-only", "templates/notes.yaml"}
			}
			golden.Compare(t, "testdata/golden/"+g.name+".yaml", g.render(t, flags...))
		})
	}
}

func TestDefinitions(t *testing.T) {
	t.Parallel()
	plain, err := helm.Template(t.Context(), helm.Release{Name: "joist-crd", Namespace: "joist", Chart: helm.Definitions, Set: []string{"keep=false"}})
	if err != nil {
		t.Fatal(err)
	}
	annotated, err := helm.Template(t.Context(), helm.Release{Name: "joist-crd", Namespace: "joist", Chart: helm.Definitions, Set: []string{"additionalAnnotations.a=b"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"keep=always", "additionalAnnotations.a=1"} {
		if _, err := helm.Template(t.Context(), helm.Release{Name: "joist-crd", Namespace: "joist", Chart: helm.Definitions, Set: []string{set}}); err == nil {
			t.Errorf("the chart was rendered with %s", set)
		}
	}
	files, err := filepath.Glob(helm.Definitions + "/files/*.yaml")
	if err != nil || len(files) != 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(plain, strings.TrimSpace(string(text))) {
			t.Errorf("%s is rendered differently", file)
		}
	}
	if n := strings.Count(annotated, "\n    helm.sh/resource-policy: keep\n"); n != len(files) {
		t.Errorf("%d of %d definitions have the policy keep", n, len(files))
	}
	if n := strings.Count(annotated, "\n  annotations:\n    a: b\n"); n != len(files) {
		t.Errorf("%d of %d definitions are annotated", n, len(files))
	}
}

// The chart has the alerts and dashboards that the metric catalogue generates. A chart can read
// only files of its own folder, so these are copies.
func TestCopies(t *testing.T) {
	copies := map[string]string{"alerts.yaml": "files/alerts.yaml"}
	dashboards, err := filepath.Glob(grafana + "*.json")
	if err != nil || len(dashboards) == 0 {
		t.Fatalf("%d dashboards, %v", len(dashboards), err)
	}
	for _, path := range dashboards {
		copies[filepath.Base(path)] = "files/dashboards/" + filepath.Base(path)
	}
	for from, to := range copies {
		generated, err := os.ReadFile(grafana + from)
		if err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, helm.Joist+"/"+to, string(generated))
	}
	copied, err := filepath.Glob(helm.Joist + "/files/dashboards/*")
	if err != nil || len(copied) != len(dashboards) {
		t.Errorf("the chart has the dashboards %q, want copies of %q (%v)", copied, dashboards, err)
	}
}

const grafana = root + "/deploy/grafana/"
