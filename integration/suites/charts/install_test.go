package charts

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/joist-autoscaler/joist/integration/environment/controlplane"
	"github.com/joist-autoscaler/joist/integration/environment/helm"
)

// site is a real control plane with nodes that Joist does not manage, and one that it
// manages.
type site struct {
	*testing.T
	plane *controlplane.ControlPlane
	kube  kubernetes.Interface
}

const managed = "managed"

func newSite(t *testing.T) *site {
	t.Helper()
	plane, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := &site{T: t, plane: plane, kube: kubernetes.NewForConfigOrDie(plane.Config)}
	s.namespace("karpenter", nil)
	s.namespace("joist", map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	s.node("first", map[string]string{corev1.LabelTopologyZone: "a"})
	s.node("second", map[string]string{corev1.LabelTopologyZone: "b"})
	s.node(managed, map[string]string{corev1.LabelTopologyZone: "c", "karpenter.sh/nodepool": "default"})
	return s
}

func (s *site) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *site) namespace(name string, labels map[string]string) {
	s.Helper()
	_, err := s.kube.CoreV1().Namespaces().Create(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	s.check(err)
}

func (s *site) node(name string, labels map[string]string) {
	s.Helper()
	node := controlplane.FakeNode(name, corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("50"),
	})
	maps.Copy(node.Labels, labels)
	_, err := s.kube.CoreV1().Nodes().Create(s.Context(), node, metav1.CreateOptions{})
	s.check(err)
}

// available waits until a service's Deployment has the number of ready pods.
func (s *site) available(service string, replicas int32) {
	s.Helper()
	var last *appsv1.Deployment
	err := wait.PollUntilContextTimeout(s.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		d, err := s.kube.AppsV1().Deployments("joist").Get(ctx, "joist-"+service, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		last = d
		return d.Status.ObservedGeneration == d.Generation && d.Status.ReadyReplicas == replicas && d.Status.Replicas == replicas, nil
	})
	if err != nil {
		s.Fatalf("joist-%s has not %d ready pods: %v\n%+v", service, replicas, err, last.Status)
	}
}

// TestInstall installs the charts into a namespace that enforces the restricted standard, runs helm test, upgrades to a
// seed's values, and uninstalls.
func TestInstall(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs a control plane")
	}
	t.Parallel()
	s := newSite(t)
	kubeconfig := s.plane.Kubeconfig
	definitions := helm.Release{Name: "joist-crd", Namespace: "joist", Chart: helm.Definitions}
	joist := helm.Release{Name: "joist", Namespace: "joist", Chart: helm.Joist, Set: needed}

	_, err := helm.Install(t.Context(), kubeconfig, definitions)
	s.check(err)
	s.besideKarpenter(joist)
	notes, err := helm.Install(t.Context(), kubeconfig, joist)
	s.check(err)
	if !strings.Contains(notes, "Joist watches the cluster prod in eu-west-1") || strings.Contains(notes, "WARNING") {
		t.Error(notes)
	}
	s.available("watcher", 2)
	s.available("lifecycle", 2)
	s.judgePlaces()
	s.judgeEnforced()
	s.quickstart()
	s.tryPages()
	s.judgeHelmTest(joist)

	seeds := joist
	seeds.Files, seeds.Set = []string{"testdata/values/seed-001.yaml"}, []string{"settings.region=ap-northeast-2", image, "affinity.nodeAffinity=null"}
	_, err = helm.Install(t.Context(), kubeconfig, seeds)
	s.check(err)
	s.available("watcher", 1)
	s.available("lifecycle", 1)

	_, err = helm.Uninstall(t.Context(), kubeconfig, joist)
	s.check(err)
	_, err = helm.Uninstall(t.Context(), kubeconfig, definitions)
	s.check(err)
	s.judgeLeft()
}

// besideKarpenter checks that the chart fails if it would use another Lease than the
// running Karpenter.
func (s *site) besideKarpenter(r helm.Release) {
	s.Helper()
	leases := s.kube.CoordinationV1().Leases("karpenter")
	_, err := leases.Create(s.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "karpenter-leader-election"}}, metav1.CreateOptions{})
	s.check(err)
	_, err = helm.Install(s.Context(), s.plane.Kubeconfig, r)
	if err == nil || !strings.Contains(err.Error(), "Try: --set settings.leaderElection.namespace=karpenter") {
		s.Fatalf("next to Karpenter: %v", err)
	}
	s.check(leases.Delete(s.Context(), "karpenter-leader-election", metav1.DeleteOptions{}))
}

// judgePlaces checks that a service's replicas are on two nodes, and none on a node that
// Joist manages.
func (s *site) judgePlaces() {
	s.Helper()
	pods, err := s.kube.CoreV1().Pods("joist").List(s.Context(), metav1.ListOptions{})
	s.check(err)
	var places []string
	for _, pod := range pods.Items {
		if pod.Spec.NodeName == managed {
			s.Errorf("%s runs on a node that Joist manages", pod.Name)
		}
		places = append(places, pod.Labels["app.kubernetes.io/component"]+" on "+pod.Spec.NodeName)
	}
	slices.Sort(places)
	if want := []string{"lifecycle on first", "lifecycle on second", "watcher on first", "watcher on second"}; !slices.Equal(places, want) {
		s.Errorf("got pods %q, want %q", places, want)
	}
}

// judgeEnforced checks that the namespace rejects pods with more privileges.
func (s *site) judgeEnforced() {
	s.Helper()
	pods := s.kube.CoreV1().Pods("joist")
	list, err := pods.List(s.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=watcher", Limit: 1})
	s.check(err)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "loose"}, Spec: list.Items[0].Spec}
	pod.Spec.Containers[0].SecurityContext.Capabilities = nil
	if _, err = pods.Create(s.Context(), pod, metav1.CreateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `violates PodSecurity "restricted`) {
		s.Errorf("a pod with capabilities was created: %v", err)
	}
}

// judgeLeft checks that only the CRDs remain, because deleting them would delete their
// objects.
func (s *site) judgeLeft() {
	s.Helper()
	groups, err := s.kube.Discovery().ServerGroups()
	s.check(err)
	if !slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == "karpenter.sh" }) {
		s.Error("the definitions were deleted")
	}
	list := metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=joist"}
	roles, err := s.kube.RbacV1().ClusterRoles().List(s.Context(), list)
	s.check(err)
	accounts, err := s.kube.CoreV1().ServiceAccounts("joist").List(s.Context(), list)
	s.check(err)
	leases, err := s.kube.RbacV1().Roles("kube-system").List(s.Context(), list)
	s.check(err)
	if n := len(roles.Items) + len(accounts.Items) + len(leases.Items); n > 0 {
		s.Errorf("%d objects remain", n)
	}
}
