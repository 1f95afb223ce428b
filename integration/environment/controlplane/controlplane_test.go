package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// TestControlPlane checks that the five programs work together: a node becomes ready, and
// a Deployment's pods are scheduled to it, run, and are removed.
func TestControlPlane(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs five programs, and builds them when none are cached")
	}
	ctx, lap := t.Context(), stopwatch(t)
	_, err := Build(ctx, os.Stderr)
	check(t, err)
	lap("programs found or built")

	cp, err := Start(ctx, Options{CRDs: "testdata/crds"})
	check(t, err)
	t.Cleanup(func() { _ = cp.Stop() })
	lap("control plane ready for pods")
	client := kubernetes.NewForConfigOrDie(cp.Config)

	t.Run("deployment", func(t *testing.T) { testDeployment(ctx, t, client, lap) })
	t.Run("crd", func(t *testing.T) { testCRD(ctx, t, cp) })
	t.Run("rights", func(t *testing.T) { testRights(ctx, t, cp) })
	t.Run("version", func(t *testing.T) {
		version, err := client.Discovery().ServerVersion()
		check(t, err)
		if version.Major != "1" || version.Minor != "36" || !strings.HasPrefix(version.GitVersion, "v1.36.") {
			t.Errorf("the server reports %#v, which clients parse", version)
		}
	})
	t.Run("death", func(t *testing.T) { testDeath(t, cp) }) // last: it stops the control plane
}

func testDeployment(ctx context.Context, t *testing.T, client kubernetes.Interface, lap func(string)) {
	const replicas = 5
	nodes, deployments := client.CoreV1().Nodes(), client.AppsV1().Deployments("default")
	_, err := nodes.Create(ctx, FakeNode("one", corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("4"),
		corev1.ResourceMemory: resource.MustParse("8Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}), metav1.CreateOptions{})
	check(t, err)
	eventually(ctx, t, "a ready node without taints", func() error {
		node, err := nodes.Get(ctx, "one", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(node.Spec.Taints) > 0 || !nodeReady(node) {
			return fmt.Errorf("got taints %v, conditions %v", node.Spec.Taints, node.Status.Conditions)
		}
		return nil
	})
	lap("node ready")

	_, err = deployments.Create(ctx, pauseDeployment("inflate", replicas), metav1.CreateOptions{})
	check(t, err)
	eventually(ctx, t, "all pods running", func() error { return running(ctx, client, replicas) })
	lap("5 pods running")

	patch := []byte(`{"spec":{"replicas":0}}`)
	_, err = deployments.Patch(ctx, "inflate", "application/merge-patch+json", patch, metav1.PatchOptions{})
	check(t, err)
	eventually(ctx, t, "no pods", func() error { return running(ctx, client, 0) })
	lap("scaled to 0")
}

func testCRD(ctx context.Context, t *testing.T, cp *ControlPlane) {
	client, err := dynamic.NewForConfig(cp.Config)
	check(t, err)
	beams := schema.GroupVersionResource{Group: "test.joist.dev", Version: "v1", Resource: "beams"}
	list, err := client.Resource(beams).List(ctx, metav1.ListOptions{})
	check(t, err)
	if len(list.Items) != 0 {
		t.Errorf("a new kind has %d objects", len(list.Items))
	}
}

// testRights checks that RBAC applies to an impersonated user, and not to the admin.
func testRights(ctx context.Context, t *testing.T, cp *ControlPlane) {
	path, err := cp.KubeconfigAs("system:serviceaccount:default:nobody")
	check(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", path)
	check(t, err)
	_, err = kubernetes.NewForConfigOrDie(config).CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("listing nodes without permission returned %v, want status %d", err, http.StatusForbidden)
	}
}

// testDeath checks that Stop reports a program that exited, and keeps only its logs.
func testDeath(t *testing.T, cp *ControlPlane) {
	check(t, cp.Err())
	for _, p := range cp.processes {
		if p.name == kwok {
			p.kill()
		}
	}
	<-cp.Died()
	err := cp.Stop()
	if err == nil || !strings.Contains(err.Error(), "kwok ended: signal: killed") {
		t.Errorf("Stop returned %v after kwok was killed", err)
	}
	for _, p := range cp.processes {
		<-p.done
	}
	if isFile(cp.Kubeconfig) {
		t.Errorf("%s stays", cp.Kubeconfig)
	}
	if !isFile(cp.Logs + "/kwok.log") {
		t.Error("the log of the killed program is missing")
	}
	check(t, os.RemoveAll(cp.Logs))
}

// TestStartReportsExitedProgram checks that Start does not wait for a program that has exited,
// and that the error names the program and shows its log.
func TestStartReportsExitedProgram(t *testing.T) {
	assets := t.TempDir()
	for _, name := range append(programs(), kwokStages) {
		script := "#!/bin/sh\necho " + name + " has a bad day\nexit 3\n"
		check(t, os.WriteFile(assets+"/"+name, []byte(script), 0o755))
	}
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	logs := t.TempDir()
	_, err := Start(t.Context(), Options{Logs: logs})
	if err == nil {
		t.Fatal("the control plane started although etcd exited")
	}
	for _, want := range []string{"etcd ended: exit status 3", logs + "/etcd.log", "etcd has a bad day"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
}

func running(ctx context.Context, client kubernetes.Interface, want int) error {
	pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	got := 0
	for _, pod := range pods.Items {
		if pod.Status.Phase == corev1.PodRunning && pod.Spec.NodeName == "one" {
			got++
		}
	}
	if got != want || len(pods.Items) != want {
		return fmt.Errorf("%d pods, %d of them running", len(pods.Items), got)
	}
	return nil
}

func nodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func pauseDeployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name:  "pause",
					Image: "registry.k8s.io/pause:3.10", // never pulled
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
						corev1.ResourceCPU: resource.MustParse("100m"),
					}},
				}}},
			},
		},
	}
}

func eventually(ctx context.Context, t *testing.T, what string, ask func() error) {
	t.Helper()
	check(t, await(ctx, what, time.Minute, func(context.Context) error { return ask() }))
}

func stopwatch(t *testing.T) func(what string) {
	last := time.Now()
	return func(what string) {
		t.Helper()
		now := time.Now()
		t.Logf("%-30s %6.2f s", what, now.Sub(last).Seconds())
		last = now
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
