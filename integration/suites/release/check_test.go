package release

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/integration/release"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

const (
	quickstart = testbed.Root + "/deploy/quickstart"
	// replicas are the inflate Deployment's.
	replicas = 5
)

// inCluster are the services that the chart installs. functions are installed from zips.
var (
	inCluster = []string{"watcher", "lifecycle"}
	functions = []string{"planner", "disruption", "interruption", "catalog", "launcher", "spotrole"}
)

// metricsPorts are free ports for the metrics of the services in the cluster.
type metricsPorts map[string]int

func newPorts(t *testing.T) metricsPorts {
	t.Helper()
	free := metricsPorts{}
	for _, service := range inCluster {
		var config net.ListenConfig
		listener, err := config.Listen(t.Context(), "tcp", ":0")
		if err != nil {
			t.Fatal(err)
		}
		// The service binds the port after it is closed here.
		defer listener.Close()
		free[service] = listener.Addr().(*net.TCPAddr).Port
	}
	return free
}

func (p metricsPorts) environ(service string) []string {
	return []string{fmt.Sprintf("%s=%d", settings.MetricsPort, p[service])}
}

// run runs a program, checks its exit code, and returns its standard output.
func (d *dryRun) run(want int, program string, args ...string) string {
	d.Helper()
	var out, diagnostics bytes.Buffer
	command := exec.CommandContext(d.Context(), program, args...)
	command.Dir, command.Stdout, command.Stderr = d.TempDir(), &out, &diagnostics
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || command.ProcessState.ExitCode() != want {
		d.Fatalf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, out.String(), diagnostics.String())
	}
	return out.String()
}

// checkImages checks that the chart's Deployments have the release's images, by digest.
func (d *dryRun) checkImages(bed *testbed.TestBed) {
	d.Helper()
	want := map[string]string{}
	for _, image := range d.artifacts.Find(release.KindImage) {
		want[image.Name] = image.Digest
	}
	for _, service := range inCluster {
		deployment, err := bed.Kube.AppsV1().Deployments(testbed.Namespace).Get(d.Context(), "joist-"+service, metav1.GetOptions{})
		d.require(err)
		image := deployment.Spec.Template.Spec.Containers[0].Image
		if digest := want["joist-"+service]; digest == "" || !strings.HasPrefix(image, d.artifacts.Registry+"/") || !strings.HasSuffix(image, "@"+digest) {
			d.Errorf("the chart's Deployment of %s has the image %s, want %s in %s", service, image, digest, d.artifacts.Registry)
		}
	}
}

var buildInfo = regexp.MustCompile(`(?m)^joist_build_info\{[^}]*version="([^"]*)"[^}]*\} 1$`)

// checkBuilds checks that the running services have the version of the installed command.
func (d *dryRun) checkBuilds(bed *testbed.TestBed, p metricsPorts) {
	d.Helper()
	want := d.readVersion(d.joist)
	for _, service := range inCluster {
		var metrics string
		bed.WaitUntil(time.Minute, "the metrics of "+service, func() bool {
			metrics = readMetrics(bed, p[service])
			return buildInfo.MatchString(metrics)
		})
		if found := buildInfo.FindStringSubmatch(metrics); found[1] != want {
			d.Errorf("%s has version %q, and the command %s", service, found[1], want)
		}
	}
}

// readMetrics returns a service's metrics, or nothing before it serves them.
func readMetrics(bed *testbed.TestBed, port int) string {
	request, err := http.NewRequestWithContext(bed.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/metrics", port), nil)
	bed.RequireNoError(err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	bed.RequireNoError(err)
	return string(text)
}

func countRunning(bed *testbed.TestBed) int {
	n := 0
	for _, pod := range bed.Pods("inflate") {
		if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
			n++
		}
	}
	return n
}

func scale(bed *testbed.TestBed, n int) {
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, n)
	_, err := bed.Kube.AppsV1().Deployments("default").Patch(bed.Context(), "inflate", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	bed.RequireNoError(err)
}
