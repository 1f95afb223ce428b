package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/joist-autoscaler/joist/integration/environment/controlplane"
	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/kubecluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// liveUser is a ServiceAccount that may list everything except PodDisruptionBudgets and volumes.
const liveUser = "system:serviceaccount:default:reader"

// liveCluster is a real API server with the objects of a cluster that Karpenter runs, and the command
// joist.
type liveCluster struct {
	t     *testing.T
	plane *controlplane.ControlPlane
	joist string
}

// newLiveCluster starts the API server, creates the objects and builds the command.
func newLiveCluster(t *testing.T) *liveCluster {
	t.Helper()
	plane, err := controlplane.Start(t.Context(), controlplane.Options{CRDs: testbed.Root + "/deploy/charts/joist-crd/files", NoKwok: true, Audit: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	out := &liveCluster{t: t, plane: plane, joist: filepath.Join(t.TempDir(), "joist")}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", out.joist, "./services/cli/cmd/joist")
	build.Dir = testbed.Root
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building joist: %v\n%s", err, text)
	}
	out.createObjects(testbed.Root + "/services/cli/testdata/live/cluster.yaml")
	return out
}

// createObjects creates the objects of a file with their status.
func (l *liveCluster) createObjects(file string) {
	l.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		l.t.Fatal(err)
	}
	client, err := kubecluster.New(l.plane.Config, "test")
	if err != nil {
		l.t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			l.t.Fatal(err)
		}
		kind := cluster.Kinds[slices.IndexFunc(cluster.Kinds, func(k cluster.Kind) bool { return k.APIVersion() == head.APIVersion && k.Kind == head.Kind })]
		object, withStatus := kind.New(), kind.New()
		for _, into := range []cluster.Object{object, withStatus} {
			if err := yaml.Unmarshal([]byte(document), into); err != nil {
				l.t.Fatal(err)
			}
			into.SetUID("")
			into.SetOwnerReferences(nil) // The garbage collector would delete pods of owners that do not exist.
		}
		created, err := client.Create(l.t.Context(), object)
		if fault.Is(err, fault.Conflict) {
			continue // kube-system exists.
		}
		if err != nil {
			l.t.Fatal(err)
		}
		if !kind.Status || kind == cluster.Namespaces || kind == cluster.DisruptionBudgets || kind == cluster.Deployments {
			continue
		}
		withStatus.SetResourceVersion(created.GetResourceVersion())
		withStatus.SetUID(created.GetUID())
		if err := l.updateStatus(client, kind, withStatus); err != nil {
			l.t.Fatal(err)
		}
	}
}

// updateStatus writes a status. A controller may have written another one in between.
func (l *liveCluster) updateStatus(client *kubecluster.Client, kind cluster.Kind, object cluster.Object) error {
	return wait.PollUntilContextTimeout(l.t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		current, err := client.Get(ctx, kind, cluster.KeyOf(object))
		if err != nil {
			return false, err
		}
		object.SetResourceVersion(current.GetResourceVersion())
		_, err = client.UpdateStatus(ctx, object)
		if fault.Is(err, fault.Conflict) {
			return false, nil
		}
		return true, err
	})
}

// waitSettled waits until no node has the taint of a node that is not ready, the scheduler has rejected
// the pending pod, and the PodDisruptionBudget has a status.
func (l *liveCluster) waitSettled(kube kubernetes.Interface) {
	l.t.Helper()
	err := wait.PollUntilContextTimeout(l.t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		nodes, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		pod, err := kube.CoreV1().Pods("shop").Get(ctx, "batch-1", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		budget, err := kube.PolicyV1().PodDisruptionBudgets("shop").Get(ctx, "database", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		tainted := slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool { return len(n.Spec.Taints) > 0 })
		rejected := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Reason == corev1.PodReasonUnschedulable })
		return !tainted && rejected && budget.Status.CurrentHealthy == 1, nil
	})
	if err != nil {
		l.t.Fatalf("waiting for the controllers: %v", err)
	}
}

// run runs the command with a kubeconfig.
func (l *liveCluster) run(kubeconfig string, args ...string) (stdout, stderr string, code int) {
	l.t.Helper()
	var out, errs bytes.Buffer
	command := exec.CommandContext(l.t.Context(), l.joist, append(args, "--kubeconfig", kubeconfig, "--offline-prices")...)
	command.Stdout, command.Stderr = &out, &errs
	err := command.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		l.t.Fatal(err)
	}
	return out.String(), errs.String(), code
}

// liveReport is the part of the report that is checked.
type liveReport struct {
	Cluster string
	Now     struct{ Nodes, ManagedNodes, Pods int }
	After   struct{ Nodes int }
	Pending struct{ Pods, Nodes int }
	Saving  struct{ PerHour float64 }
	Bound   *struct{ PerHour float64 }

	Obstacles []struct{ Name string }
	Unread    []struct{ Resource, Check string }
}

// TestLiveCluster runs the command against a real API server: it answers with all permissions and with
// a part of them, names what it may not read, and writes nothing.
func TestLiveCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs a control plane")
	}
	l := newLiveCluster(t)
	kube, err := kubernetes.NewForConfig(l.plane.Config)
	if err != nil {
		t.Fatal(err)
	}
	l.waitSettled(kube)

	report := func(kubeconfig string) liveReport {
		stdout, stderr, code := l.run(kubeconfig, "report", "-o", "json")
		var out liveReport
		if err := json.Unmarshal([]byte(stdout), &out); err != nil || code != 0 {
			t.Fatalf("exit code %d, %v: %s", code, err, stderr)
		}
		return out
	}
	// The pods of the Deployment of Karpenter are pending too.
	got := report(l.plane.Kubeconfig)
	if got.Cluster != "shop-prod" || got.Now.Nodes != 7 || got.Now.ManagedNodes != 6 || got.Pending.Pods != 3 || got.Pending.Nodes != 1 || got.After.Nodes != 4 ||
		got.Saving.PerHour < 0.8 || got.Bound == nil || len(got.Obstacles) != 2 || len(got.Unread) != 0 {
		t.Errorf("the report is %+v", got)
	}
	if stdout, stderr, code := l.run(l.plane.Kubeconfig, "plan"); code != 2 || !strings.Contains(stdout, "1 node to launch for 1 pod") {
		t.Errorf("plan: exit code %d\n%s%s", code, stdout, stderr)
	}
	if stdout, stderr, code := l.run(l.plane.Kubeconfig, "consolidate"); code != 0 || !strings.Contains(stdout, "shop-prod: 8 nodes") {
		t.Errorf("consolidate: exit code %d\n%s%s", code, stdout, stderr)
	}

	denied, err := l.plane.KubeconfigAs("system:serviceaccount:default:stranger")
	if err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := l.run(denied, "report"); code != 1 || !strings.Contains(stderr, "you may not list nodepools.karpenter.sh, nodes, pods, which every answer needs") {
		t.Errorf("without permissions: exit code %d: %s", code, stderr)
	}
	restricted := l.restrictedUser(kube)
	got = report(restricted)
	var unread []string
	for _, u := range got.Unread {
		unread = append(unread, u.Resource)
	}
	if !slices.Equal(unread, []string{"deployments.apps", "poddisruptionbudgets.policy", "persistentvolumes"}) || len(got.Obstacles) != 1 || got.Now.Nodes != 7 {
		t.Errorf("with a part of the permissions: %+v", got)
	}
	l.checkCalls()
}

// restrictedUser returns the kubeconfig of a ServiceAccount with a part of the permissions.
func (l *liveCluster) restrictedUser(kube kubernetes.Interface) string {
	l.t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods", "nodes", "namespaces", "persistentvolumeclaims"}, Verbs: []string{"list"}},
		{APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, Verbs: []string{"list"}},
		{APIGroups: []string{"storage.k8s.io"}, Resources: []string{"storageclasses", "csinodes", "volumeattachments"}, Verbs: []string{"list"}},
		{APIGroups: []string{"karpenter.sh", "karpenter.k8s.aws"}, Resources: []string{"*"}, Verbs: []string{"list"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "reader"}},
	}
	_, err := kube.RbacV1().ClusterRoles().Create(l.t.Context(), role, metav1.CreateOptions{})
	if err == nil {
		_, err = kube.RbacV1().ClusterRoleBindings().Create(l.t.Context(), binding, metav1.CreateOptions{})
	}
	if err != nil {
		l.t.Fatal(err)
	}
	file, err := l.plane.KubeconfigAs(liveUser)
	if err != nil {
		l.t.Fatal(err)
	}
	// The authorizer needs a moment to see the role.
	err = wait.PollUntilContextTimeout(l.t.Context(), 100*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		_, _, code := l.run(file, "report")
		return code == 0, nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return file
}

// checkCalls checks in the audit log that the restricted user has only listed objects.
func (l *liveCluster) checkCalls() {
	l.t.Helper()
	calls, err := l.plane.Calls()
	if err != nil {
		l.t.Fatal(err)
	}
	seen := 0
	for call := range calls {
		if call.User != liveUser {
			continue
		}
		seen++
		if call.Verb != "list" && call.Verb != "get" {
			l.t.Errorf("the command called %+v", call)
		}
	}
	if seen == 0 {
		l.t.Error("the audit log has no call of the command")
	}
}
