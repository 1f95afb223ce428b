package testbed

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/joist-autoscaler/joist/integration/environment/tool"
)

const (
	// karpenterPackage is Karpenter's own controller with the AWS provider, of the version in integration/go.mod.
	karpenterPackage = "github.com/aws/karpenter-provider-aws/cmd/controller"
	karpenterName    = "karpenter"
	// kwokPackage is Karpenter's controller with its kwok provider, which creates Nodes instead of instances.
	kwokPackage = "sigs.k8s.io/karpenter/kwok"
	kwokName    = "karpenter-kwok"
	// KarpenterNamespace is where Karpenter's Lease is.
	KarpenterNamespace = "kube-system"
	// karpenterAccess is the access key id that identifies Karpenter. The authorizer has no role for it, so that every
	// request is allowed.
	karpenterAccess = "AKIDKARPENTER"
)

// BuildKarpenter compiles Karpenter's controller into .cache and returns the folder.
var BuildKarpenter = sync.OnceValues(func() (string, error) { return buildKarpenter(karpenterName, karpenterPackage) })

// BuildKwokKarpenter compiles Karpenter's controller with the kwok provider into .cache and returns the folder.
var BuildKwokKarpenter = sync.OnceValues(func() (string, error) { return buildKarpenter(kwokName, kwokPackage) })

func buildKarpenter(name, from string) (string, error) {
	into, err := filepath.Abs(filepath.Join(Root, ".cache", "karpenter"))
	if err != nil {
		return "", fmt.Errorf("finding a folder for Karpenter: %w", err)
	}
	lock, err := lockFolder(into)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	command := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(into, name), from) //nolint:noctx // a build is not part of a test's time
	command.Dir = filepath.Join(Root, "integration")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building Karpenter: %w\n%s", err, out)
	}
	return into, nil
}

// StartKarpenter starts Karpenter's controller for the cluster and the fake AWS, with additional variables.
func (w *TestBed) StartKarpenter(dir string, environ ...string) {
	w.Helper()
	w.runKarpenter(dir, karpenterName, slices.Concat(w.Server.Environ(), []string{
		"AWS_ACCESS_KEY_ID=" + karpenterAccess, "AWS_REGION=" + Region,
		"AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
		"CLUSTER_NAME=" + ClusterName, "INTERRUPTION_QUEUE=" + ClusterName, "EKS_CONTROL_PLANE=true",
	}, environ))
}

// StartKwokKarpenter starts Karpenter's controller with the kwok provider, which uses no AWS and offers the instance types
// of a file.
func (w *TestBed) StartKwokKarpenter(dir, instanceTypes string) {
	w.Helper()
	w.runKarpenter(dir, kwokName, []string{"INSTANCE_TYPES_FILE_PATH=" + instanceTypes})
}

func (w *TestBed) runKarpenter(dir, name string, environ []string) {
	w.Helper()
	own := slices.Concat([]string{
		"HOME=" + w.TempDir(), "TMPDIR=" + os.TempDir(), "KUBECONFIG=" + w.Plane.Kubeconfig,
		"SYSTEM_NAMESPACE=" + KarpenterNamespace, "LEADER_ELECTION_NAMESPACE=" + KarpenterNamespace, "KUBERNETES_MIN_VERSION=1.19.0-0",
		"METRICS_PORT=0", "HEALTH_PROBE_PORT=0", "LOG_LEVEL=debug", "DISABLE_LEADER_ELECTION=false",
	}, environ)
	w.karpenter = startProgram(w.T, dir, name, own)
	w.Cleanup(func() {
		if w.karpenter != nil {
			w.karpenter.killProcess()
		}
	})
}

// StopKarpenter stops Karpenter's controller, as a Deployment of 0 replicas does, and returns its log. Karpenter ends with
// an error if it loses its Lease, and with the last error of its controllers, so the exit status is not checked.
func (w *TestBed) StopKarpenter() []string {
	w.Helper()
	p := w.karpenter
	w.karpenter = nil
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		w.Fatalf("stopping Karpenter: %v", err)
	}
	<-p.done
	text, err := os.ReadFile(p.log)
	w.RequireNoError(err)
	return strings.Split(string(text), "\n")
}

// StopInCluster stops the services in the cluster, as Deployments of 0 replicas do, and leaves the functions. It fails the
// test if a service does not stop cleanly.
func (w *TestBed) StopInCluster() {
	w.Helper()
	for _, p := range w.processes[:len(inCluster)] {
		if err := p.stopProcess(); err != nil {
			w.Error(err)
		}
	}
	w.stoppedProcesses = append(w.stoppedProcesses, w.processes[:len(inCluster)]...)
	w.processes = slices.Clone(w.processes[len(inCluster):])
}

// StartKarpenterWithMetrics starts Karpenter's controller with additional variables, and returns a function that reads how often
// one of its controllers has reconciled.
func (w *TestBed) StartKarpenterWithMetrics(dir string, environ ...string) (reconciled func(controller string) int) {
	w.Helper()
	port, err := tool.FindFreePort(w.Context())
	w.RequireNoError(err)
	w.StartKarpenter(dir, append(environ, "METRICS_PORT="+strconv.Itoa(port))...)
	return func(controller string) int {
		request, err := http.NewRequestWithContext(w.Ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/metrics", port), nil)
		w.RequireNoError(err)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0 // It does not listen yet.
		}
		defer answer.Body.Close()
		return countReconciles(answer.Body, controller)
	}
}

// countReconciles adds the successful results in the metric controller_runtime_reconcile_total.
func countReconciles(metrics io.Reader, controller string) int {
	n := 0
	lines := bufio.NewScanner(metrics)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "} ")
		if !strings.HasPrefix(name, `controller_runtime_reconcile_total{controller="`+controller+`"`) || strings.Contains(name, `result="error"`) {
			continue
		}
		if count, err := strconv.ParseFloat(value, 64); err == nil {
			n += int(count)
		}
	}
	return n
}
