package charts

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/helm"
	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/integration/environment/tool"
	"github.com/joist-autoscaler/joist/shared/host/settings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Both charts pass helm lint --strict.
func TestLint(t *testing.T) {
	t.Parallel()
	for _, r := range []helm.Release{
		{Chart: helm.Joist, Set: needed},
		{Chart: helm.Joist, Files: []string{"testdata/values/everything.yaml"}},
		{Chart: helm.Definitions},
	} {
		r.Namespace = "joist"
		if out, err := helm.Lint(t.Context(), r); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// Without /metrics there is nothing that helm test can request.
func TestNoTestPodWithoutMetrics(t *testing.T) {
	t.Parallel()
	if pods := rendered[*corev1.Pod](t, given{namespace: "joist", set: append(slices.Clone(needed), "controller.metrics.port=0")}); len(pods) > 0 {
		t.Errorf("%d test pods", len(pods))
	}
}

// The test pod meets the restricted standard, and has neither rights nor credentials.
func TestTestPodIsRestricted(t *testing.T) {
	t.Parallel()
	pod := (given{namespace: "joist", set: needed}).testPod(t)
	for _, problem := range unconfined(pod.Spec.Containers[0].SecurityContext) {
		t.Error(problem)
	}
	if pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken || pod.Spec.ServiceAccountName != "" {
		t.Errorf("the pod has the service account %q", pod.Spec.ServiceAccountName)
	}
}

// judgeHelmTest checks that helm test succeeds if the pod does, and fails if it fails. There are
// no kubelets: the test ends the pod, and runs its command against the services on this machine.
func (s *site) judgeHelmTest(r helm.Release) {
	s.Helper()
	var pod *corev1.Pod
	for _, phase := range []corev1.PodPhase{corev1.PodFailed, corev1.PodSucceeded} {
		ended := make(chan error, 1)
		go func() {
			_, err := helm.Test(s.Context(), s.plane.Kubeconfig, r)
			ended <- err
		}()
		pod = s.endTestPod(phase)
		if err := <-ended; (err == nil) != (phase == corev1.PodSucceeded) {
			s.Errorf("helm test with a pod that is %s: %v", phase, err)
		}
	}
	s.runTestPod(pod)
}

// endTestPod waits until the test pod runs, and sets its phase.
func (s *site) endTestPod(phase corev1.PodPhase) *corev1.Pod {
	s.Helper()
	pods := s.kube.CoreV1().Pods("joist")
	var pod *corev1.Pod
	err := wait.PollUntilContextTimeout(s.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		found, err := pods.Get(ctx, "joist-test", metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && found.Status.Phase != corev1.PodRunning {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		found.Status.Phase = phase
		pod, err = pods.UpdateStatus(ctx, found, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	s.check(err)
	return pod
}

// runTestPod runs the test pod's command against watcher and lifecycle, which run with the
// environment of their Deployments, and again after watcher has ended.
func (s *site) runTestPod(pod *corev1.Pod) {
	s.Helper()
	args := slices.Clone(pod.Spec.Containers[0].Args)
	var tester string
	var stop []func()
	for _, service := range []string{"watcher", "lifecycle"} {
		binary, err := testbed.BuildBinary(service)
		s.check(err)
		port, err := tool.FindFreePort(s.Context())
		s.check(err)
		stop = append(stop, s.run(binary, service, port))
		tester = binary
		host := "http://joist-" + service + ".joist.svc:8080/"
		at := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, host) })
		if at < 0 {
			s.Fatalf("the test pod has the arguments %q, want a URL that begins with %s", args, host)
		}
		args[at] = strings.Replace(args[at], host, fmt.Sprintf("http://127.0.0.1:%d/", port), 1)
	}
	runCommand := func(limit time.Duration) (string, error) {
		ctx, cancel := context.WithTimeout(s.Context(), limit)
		defer cancel()
		command := exec.CommandContext(ctx, tester, args...)
		command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
		out, err := command.CombinedOutput()
		return string(out), err
	}
	if out, err := runCommand(time.Minute); err != nil || strings.Count(out, "/metrics ok\n") != 2 {
		s.Errorf("the test pod's command: %v\n%s", err, out)
	}
	stop[0]()
	if out, err := runCommand(3 * time.Second); err == nil || !strings.Contains(out, "connection refused") {
		s.Errorf("the test pod's command without watcher: %v\n%s", err, out)
	}
	stop[1]()
}

// run runs a service with the environment of its Deployment, without AWS, until stop is called.
func (s *site) run(binary, service string, port int) (stop func()) {
	s.Helper()
	d, err := s.kube.AppsV1().Deployments("joist").Get(s.Context(), "joist-"+service, metav1.GetOptions{})
	s.check(err)
	environment := environ(d)
	environment[settings.Kubeconfig], environment[settings.Holder], environment[settings.Namespace] = s.plane.Kubeconfig, service, "joist"
	environment[settings.MetricsPort], environment[settings.HealthPort] = strconv.Itoa(port), "0"
	environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"], environment["AWS_ENDPOINT_URL"] = "test", "test", "http://127.0.0.1:1"
	command := exec.CommandContext(s.Context(), binary)
	for name, value := range environment {
		command.Env = append(command.Env, name+"="+value)
	}
	log, err := os.Create(filepath.Join(s.TempDir(), service+".log"))
	s.check(err)
	command.Stdout, command.Stderr = log, log
	s.check(command.Start())
	return func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if s.Failed() {
			text, _ := os.ReadFile(log.Name())
			s.Logf("%s:\n%s", service, text)
		}
	}
}
