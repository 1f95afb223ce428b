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

// The commands of the pages that install a chart, and the first part of the stack's HelmCommand.
var (
	installsCRDs   = regexp.MustCompile("helm upgrade --install joist-crd [^\n`&]*")
	upgradesJoist  = regexp.MustCompile("helm upgrade (?:--install )?joist (?:oci|deploy)[^\n`]*")
	releasedCharts = strings.NewReplacer("oci://ghcr.io/joist-autoscaler/charts/", "deploy/charts/", "--version 0.1.0", "")
)

// TestPagesInstallCRDs runs all commands of the pages and of the stack that install the chart joist-crd, one after the other,
// in clusters in which Karpenter's charts have installed the CRDs. Helm refuses a second release of them, and CRDs of no release.
func TestPagesInstallCRDs(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs a control plane")
	}
	t.Parallel()
	commands := readInstallCommands(t)
	s := newSite(t)
	environ := append(os.Environ(), "PATH="+buildTools(t)+string(os.PathListSeparator)+os.Getenv("PATH"), "KUBECONFIG="+s.plane.Kubeconfig)
	run := func(t *testing.T, command string) {
		t.Helper()
		bash := exec.CommandContext(t.Context(), "bash", "-euc", command)
		bash.Dir, bash.Env = root, environ
		if out, err := bash.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
	for name, karpenter := range map[string]string{
		"CRDs of Karpenter's chart":   "kubectl create -f deploy/charts/joist-crd/files",
		"the release karpenter-crd":   "helm install karpenter-crd deploy/charts/joist-crd --namespace kube-system",
		"a cluster without Karpenter": "kubectl get nodes",
	} {
		t.Run(name, func(t *testing.T) {
			run(t, karpenter)
			for _, command := range commands {
				run(t, command)
			}
			run(t, "helm uninstall joist-crd --namespace joist && kubectl delete secrets --namespace kube-system -l owner=helm && kubectl delete crd --all")
		})
	}
}

// readInstallCommands returns the commands that install the chart joist-crd. Each command for either chart must name the
// namespace joist: the objects of a release in another namespace are those of another release.
func readInstallCommands(t *testing.T) (commands []string) {
	t.Helper()
	files := []string{root + "/README.md", root + "/infra/stack/testdata/terraform.template.json"}
	for _, pattern := range []string{"/deploy/*.md", "/deploy/docs/*.md", "/deploy/charts/*/README.md"} {
		pages, err := filepath.Glob(root + pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, pages...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := installsCRDs.FindAllString(string(text), -1)
		commands = append(commands, found...)
		for _, command := range append(found, upgradesJoist.FindAllString(string(text), -1)...) {
			if !strings.Contains(command, "--namespace joist") {
				t.Errorf("%s: %s does not name the namespace joist", file, command)
			}
		}
	}
	if len(commands) < 7 {
		t.Errorf("%d commands install the chart joist-crd, and at least 7 did: %q", len(commands), commands)
	}
	for i, command := range commands {
		commands[i] = releasedCharts.Replace(command)
	}
	return commands
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
