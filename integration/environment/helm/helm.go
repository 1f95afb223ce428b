package helm

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"sync"

	"github.com/joist-autoscaler/joist/integration/environment/tool"
)

const (
	// root is the repository, relative to a package in a folder of integration, such as
	// suites/charts.
	root = "../../.."
	// Joist is the chart of the services in the cluster.
	Joist = root + "/deploy/charts/joist"
	// Definitions is the chart of the CRDs.
	Definitions = root + "/deploy/charts/joist-crd"

	// kubeVersion is the Kubernetes version for rendering without a cluster. A helm built
	// by the go command has an old default.
	kubeVersion = "--kube-version=1.36"
)

// Tool is the version of Helm that the tests and the release use.
var Tool = tool.GoTool{Package: "helm.sh/helm/v3/cmd/helm", Version: "v3.22.0"}

// Release has the arguments of helm.
type Release struct {
	// Name and Namespace are the release's. Chart is the chart's folder, or an oci:// reference in a registry on
	// loopback, with Version.
	Name, Namespace, Chart, Version string
	// Files are value files. Strings and Set are values as in --set-string and --set,
	// which override them.
	Files, Strings, Set []string
}

func (r Release) args(command string, flags ...string) []string {
	args := []string{command, r.Name, r.Chart, "--namespace", r.Namespace}
	if r.Version != "" {
		args = append(args, "--version", r.Version, "--plain-http")
	}
	for _, file := range r.Files {
		args = append(args, "--values", file)
	}
	for _, value := range r.Strings {
		args = append(args, "--set-string", value)
	}
	for _, value := range r.Set {
		args = append(args, "--set", value)
	}
	return append(args, flags...)
}

// Template renders a release without a cluster. A flag may set another --kube-version.
func Template(ctx context.Context, r Release, flags ...string) (string, error) {
	return helm(ctx, r.args("template", append([]string{kubeVersion}, flags...)...)...)
}

// Install installs or upgrades a release, and returns helm's output.
func Install(ctx context.Context, kubeconfig string, r Release) (string, error) {
	return helm(ctx, append([]string{"upgrade"}, r.args("--install", "--kubeconfig", kubeconfig)...)...)
}

// Test runs the test hooks of a release, and returns helm's output.
func Test(ctx context.Context, kubeconfig string, r Release) (string, error) {
	return helm(ctx, "test", r.Name, "--namespace", r.Namespace, "--kubeconfig", kubeconfig)
}

// Lint checks a chart. Warnings are errors.
func Lint(ctx context.Context, r Release) (string, error) {
	args := r.args("lint", "--strict", kubeVersion)
	// Unlike other commands, lint takes no name.
	return helm(ctx, append(args[:1], args[2:]...)...)
}

// Uninstall uninstalls a release, and returns helm's output.
func Uninstall(ctx context.Context, kubeconfig string, r Release) (string, error) {
	return helm(ctx, "uninstall", r.Name, "--namespace", r.Namespace, "--kubeconfig", kubeconfig)
}

// helm runs helm. Errors have its standard error.
func helm(ctx context.Context, args ...string) (string, error) {
	path, err := program()
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, path, args...)
	var out, trouble bytes.Buffer
	command.Stdout, command.Stderr = &out, &trouble
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("helm %s: %w\n%s", args[0], err, trouble.String())
	}
	return out.String(), nil
}

// program builds helm once per process at most.
var program = sync.OnceValues(func() (string, error) { return Tool.Build(context.Background(), root) })
