package charts

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/joist-autoscaler/joist/integration/environment/helm"
	"github.com/joist-autoscaler/joist/integration/lint/readme"
)

const firstSteps = root + "/deploy/docs/getting-started.md"

// TestGettingStarted runs the commands of the page on a real control plane, in the order of the page, with Helm and kubectl.
// The blocks of other tests, which need AWS or no cluster, are left out.
func TestGettingStarted(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs a control plane")
	}
	t.Parallel()
	page, err := os.ReadFile(firstSteps)
	if err != nil {
		t.Fatal(err)
	}
	blocks, _ := readme.RunBy(string(page))
	var script []string
	for _, block := range blocks {
		if slices.Contains(block.Tests, "TestGettingStarted") {
			script = append(script, block.Text)
		}
	}
	s := newSite(t)
	// A line of the script is printed before it runs, so that a failure names it.
	bash := exec.CommandContext(t.Context(), "bash", "-euxo", "pipefail", "-c", strings.Join(script, "\n"))
	bash.Dir = root
	bash.Env = append(os.Environ(), "PATH="+buildTools(t)+string(os.PathListSeparator)+os.Getenv("PATH"), "KUBECONFIG="+s.plane.Kubeconfig)
	out, err := bash.CombinedOutput()
	if err != nil {
		t.Fatalf("the commands of the page failed: %v\n%s", err, out)
	}
	for _, want := range []string{
		`joist-watcher +2/2`, `joist-lifecycle +2/2`, `nodepool.karpenter.sh/default created`, `ec2nodeclass.karpenter.k8s.aws/default created`, `nodepool.karpenter.sh/default +default`,
		`deployment.apps/inflate scaled`, `nodepool.karpenter.sh "default" deleted`, `release "joist" uninstalled`,
	} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("the output has no %s:\n%s", want, out)
		}
	}
}

// buildTools returns a folder with helm, kubectl and envsubst.
func buildTools(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	program, err := helm.Tool.Build(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(bin, "helm")); err != nil {
		t.Fatal(err)
	}
	buildProgram(t, "/integration", "./environment/kubectl", filepath.Join(bin, "kubectl"))
	// gettext's envsubst may not be installed.
	if err := os.WriteFile(filepath.Join(bin, "envsubst"), []byte("#!/bin/sh\nexec sed \"s/\\${CLUSTER_NAME}/$CLUSTER_NAME/g\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return bin
}

// buildProgram builds a command of a module into a file.
func buildProgram(t *testing.T, module, path, file string) {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", file, path)
	build.Dir = root + module
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", filepath.Base(file), err, out)
	}
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// tryPages sends the manifests of the tasks to the API server, which validates them with the installed CRDs and stores nothing.
func (s *site) tryPages() {
	s.Helper()
	pages, err := filepath.Glob(root + "/deploy/docs/tasks/*.md")
	s.check(err)
	client, err := dynamic.NewForConfig(s.plane.Config)
	s.check(err)
	tried := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		s.check(err)
		for _, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			tried++
			if err := tryManifest(s.Context(), client, block[1]); err != nil {
				s.Errorf("%s: %v\n%s", page, err, block[1])
			}
		}
	}
	if tried < 8 {
		s.Errorf("the pages of tasks have %d manifests, and at least 8 were there", tried)
	}
}

// tryManifest creates an object as a dry run, under another name.
func tryManifest(ctx context.Context, client dynamic.Interface, text string) error {
	var object unstructured.Unstructured
	if err := yaml.UnmarshalStrict([]byte(text), &object.Object); err != nil {
		return err
	}
	object.SetName("of-a-page")
	_, err := client.Resource(resources[object.GetKind()]).Create(ctx, &object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}})
	return err
}
