package lifecycle

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/joist-autoscaler/joist/integration/environment/controlplane"
	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/kubecluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// site is a real control plane without kubelets, and one lifecycle with the permissions
// of its service account, run by its own host. The test plays kubelet, EC2 and the volume
// detacher.
type site struct {
	*testing.T
	plane   *controlplane.ControlPlane
	kube    kubernetes.Interface
	admin   *kubecluster.Client
	gate    host.Mutex
	service *lifecycle.Service
	id      event.Cluster
	asked   *asked
	blobs   *memblob.Store
	// cache and watches belong to lifecycle.
	cache   *kubecluster.Cache
	watches *watches
}

// asked are the instances whose termination was requested.
type asked struct {
	mu sync.Mutex
	of map[string]bool
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := prepare(t)
	s.run()
	return s
}

// prepare returns a site where lifecycle does not run yet.
func prepare(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, gate: host.NewMutex(), asked: &asked{of: map[string]bool{}}, id: event.Cluster{Name: "life", UID: "uid"}, watches: newWatches(), blobs: memblob.New(memblob.Options{Now: time.Now})}
	plane, err := controlplane.Start(t.Context(), controlplane.Options{CRDs: testbed.Root + "/deploy/charts/joist-crd/files", NoKwok: true})
	s.check(err)
	s.plane = plane
	s.kube = kubernetes.NewForConfigOrDie(plane.Config)
	s.admin, err = kubecluster.New(plane.Config, "test")
	s.check(err)
	_, err = s.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: testbed.Namespace}}, metav1.CreateOptions{})
	s.check(err)
	(&testbed.TestBed{T: t, Plane: plane}).InstallChart()
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// run starts lifecycle as its main function does.
func (s *site) run() {
	s.Helper()
	path, err := s.plane.KubeconfigAs("system:serviceaccount:joist:joist-lifecycle")
	s.check(err)
	config, err := kubecluster.Config(path, "joist-test/v0.1.0")
	s.check(err)
	config.Wrap(s.watches.wrap)
	client, err := kubecluster.New(config, "joist-lifecycle")
	s.check(err)
	cache, err := client.NewCache(kubecluster.CacheOptions{Kinds: []cluster.Kind{
		cluster.Pods, cluster.Nodes, cluster.DisruptionBudgets, cluster.VolumeAttachments, cluster.VolumeClaims,
		cluster.NodePools, cluster.NodeClaims, cluster.NodeClasses,
	}})
	s.check(err)
	s.cache = cache
	launcher := memqueue.New(memqueue.Options{Now: time.Now}).Queue("launcher", memqueue.QueueOptions{})
	s.service = lifecycle.New(lifecycle.Config{
		Client: client, Cache: cache, Blobs: s.blobs, Launcher: launcher, Cluster: s.id,
		Namespace: testbed.Namespace, KarpenterNamespace: "kube-system", Holder: "life", Region: "eu-west-1", Parallel: 32, Rest: lifecycle.ReconcileInterval, Now: time.Now,
	})
	loop := host.Loop{Reconcile: s.gate.WrapLocked(s.service.Step), Interval: lifecycle.ReconcileInterval, Changed: cache.Changed(), NextDue: s.service.NextRetry}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { cache.Run(ctx) })
	running.Go(func() { _ = loop.Run(ctx) })
	running.Go(func() { s.listen(ctx, launcher) })
	s.Cleanup(func() { stop(); running.Wait() })
}

// listen plays the launcher: it records the instances to terminate.
func (s *site) listen(ctx context.Context, q *memqueue.Queue) {
	for ctx.Err() == nil {
		messages, err := q.Receive(ctx, 10, time.Second, time.Hour)
		if err != nil {
			continue
		}
		for _, m := range messages {
			e, err := event.Decode(m.Body)
			if err != nil {
				continue
			}
			if ask, err := event.DecodeBody[event.TerminateRequested](e); err == nil && e.Type == event.TerminateRequestedType {
				s.asked.mu.Lock()
				s.asked.of[ask.InstanceID] = true
				s.asked.mu.Unlock()
			}
		}
	}
}

func (s *site) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// in returns the site for a subtest.
func (s *site) in(t *testing.T) *site {
	own := *s
	own.T = t
	return &own
}

// waitUntil waits for an effect of the control plane or lifecycle.
func (s *site) waitUntil(limit time.Duration, what string, holds func() bool) time.Duration {
	s.Helper()
	began := time.Now()
	for !holds() {
		if time.Since(began) > limit {
			s.Fatalf("after %s: still not %s", limit, what)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return time.Since(began)
}

// machine is a claim with a running instance and its node.
type machine struct {
	*site
	name, instance string
}

// machine creates a claim with a running instance and a node of the same name.
func (s *site) machine(name string, changes ...func(*karpenter.NodeClaim)) machine {
	s.Helper()
	m := machine{s, name, "i-" + strings.ReplaceAll(name, "-", "")}
	c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: name, Finalizers: []string{karpenter.TerminationFinalizer}, Annotations: map[string]string{karpenter.InstanceTaggedAnnotationKey: "true"},
		Labels: map[string]string{karpenter.NodePoolLabelKey: "default", corev1.LabelInstanceTypeStable: "m6i.large"},
	}}
	c.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "default"}
	c.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{}
	for _, change := range changes {
		change(c)
	}
	made, err := s.admin.Create(s.Context(), c)
	s.check(err)
	owned := true
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Finalizers: []string{karpenter.TerminationFinalizer},
		Labels:          map[string]string{karpenter.NodePoolLabelKey: "default", karpenter.LabelEC2NodeClass: "default", karpenter.NodeRegisteredLabelKey: "true", karpenter.NodeInitializedLabelKey: "true"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: name, UID: made.GetUID(), BlockOwnerDeletion: &owned}},
	}}
	node.Spec.ProviderID = "aws:///eu-west-1a/" + m.instance
	_, err = s.admin.Create(s.Context(), node)
	s.check(err)
	m.swap(cluster.NodeClaims, func(o cluster.Object) cluster.Object {
		c := o.(*karpenter.NodeClaim)
		c.Status.ProviderID, c.Status.NodeName = node.Spec.ProviderID, name
		for _, kind := range []string{karpenter.ConditionTypeLaunched, karpenter.ConditionTypeRegistered, karpenter.ConditionTypeInitialized} {
			c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: kind, Status: "True", Reason: kind, ObservedGeneration: c.Generation}, time.Now())
		}
		return c
	}, s.admin.UpdateStatus)
	return m
}

// swap changes the machine's claim or node, and retries conflicts.
func (m machine) swap(kind cluster.Kind, change func(cluster.Object) cluster.Object, write func(context.Context, cluster.Object) (cluster.Object, error)) {
	m.Helper()
	for {
		o, err := m.admin.Get(m.Context(), kind, cluster.Key{Name: m.name})
		m.check(err)
		if _, err = write(m.Context(), change(o)); !fault.Is(err, fault.Conflict) {
			m.check(err)
			return
		}
	}
}

// claim returns the machine's claim, or nil if it is deleted.
func (m machine) claim() *karpenter.NodeClaim {
	m.Helper()
	c, err := cluster.Get[*karpenter.NodeClaim](m.Context(), m.admin, cluster.NodeClaims, cluster.Key{Name: m.name})
	if fault.Is(err, fault.Missing) {
		return nil
	}
	m.check(err)
	return c
}

func (m machine) node() *corev1.Node {
	m.Helper()
	n, err := cluster.Get[*corev1.Node](m.Context(), m.admin, cluster.Nodes, cluster.Key{Name: m.name})
	if fault.Is(err, fault.Missing) {
		return nil
	}
	m.check(err)
	return n
}

// deleteClaim deletes the claim and waits for the taint.
func (m machine) deleteClaim() {
	m.Helper()
	m.check(m.admin.Delete(m.Context(), cluster.NodeClaims, cluster.Key{Name: m.name}, ""))
	m.waitForTaint()
}

func (m machine) waitForTaint() {
	m.Helper()
	took := m.waitUntil(20*time.Second, "tainted", func() bool {
		n := m.node()
		return n != nil && slices.Contains(n.Spec.Taints, karpenter.DisruptedTaint())
	})
	m.Logf("%s: tainted after %s", m.name, took.Round(time.Millisecond))
}

// condition returns a condition of the claim.
func (m machine) condition(kind string) metav1.Condition {
	m.Helper()
	if c := m.claim(); c != nil {
		found, _ := c.Status.Conditions.Get(kind)
		return found
	}
	return metav1.Condition{}
}

// requireTermination waits for the termination request, terminates the instance, and waits until node
// and claim are deleted.
func (m machine) requireTermination() {
	m.Helper()
	m.waitUntil(30*time.Second, "requested to terminate its instance", func() bool { return m.isTerminationRequested() })
	m.reportTerminated()
	m.waitUntil(20*time.Second, "removed, node and claim", func() bool { return m.node() == nil && m.claim() == nil })
}

func (m machine) isTerminationRequested() bool {
	m.asked.mu.Lock()
	defer m.asked.mu.Unlock()
	return m.asked.of[m.instance]
}

// reportTerminated reports that EC2 shows the instance as terminated.
func (m machine) reportTerminated() {
	m.Helper()
	e, err := event.Maker{Service: "test", Cluster: m.id}.New(time.Now(), event.InstanceGone{InstanceID: m.instance, Shown: time.Now()}, nil)
	m.check(err)
	m.waitUntil(20*time.Second, "notified that the instance is gone", func() bool {
		return m.service.ConcurrentHandler(m.gate)(m.Context(), e) == nil
	})
}

// pod runs a pod on the machine. Its owner is a ConfigMap instead of a Deployment.
func (m machine) pod(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	m.Helper()
	owner, err := m.kube.CoreV1().ConfigMaps("default").Create(m.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	m.check(err)
	yes, grace := true, int64(30)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, Labels: map[string]string{"app": name},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: owner.UID, Controller: &yes}},
	}}
	pod.Spec.NodeName, pod.Spec.TerminationGracePeriodSeconds = m.name, &grace
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	for _, change := range changes {
		change(pod)
	}
	pod, err = m.kube.CoreV1().Pods("default").Create(m.Context(), pod, metav1.CreateOptions{})
	m.check(err)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod, err = m.kube.CoreV1().Pods("default").UpdateStatus(m.Context(), pod, metav1.UpdateOptions{})
	m.check(err)
	return pod
}

// podDeletion reports whether the pod is being deleted, and its grace period in seconds.
func (m machine) podDeletion(name string) (bool, int64) {
	m.Helper()
	pod, err := m.kube.CoreV1().Pods("default").Get(m.Context(), name, metav1.GetOptions{})
	m.check(err)
	if pod.DeletionTimestamp == nil {
		return false, 0
	}
	return true, *pod.DeletionGracePeriodSeconds
}

// endPod plays the kubelet after the pod has ended.
func (m machine) endPod(name string) {
	m.Helper()
	now := int64(0)
	m.check(m.kube.CoreV1().Pods("default").Delete(m.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
}

// budget creates a PodDisruptionBudget with a minimum of available pods, and waits until
// its status is updated.
func (m machine) budget(name, app string, least int) {
	m.Helper()
	least32 := intstr.FromInt(least)
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}}
	b.Spec = policyv1.PodDisruptionBudgetSpec{MinAvailable: &least32, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
	budgets := m.kube.PolicyV1().PodDisruptionBudgets("default")
	_, err := budgets.Create(m.Context(), b, metav1.CreateOptions{})
	m.check(err)
	m.waitUntil(20*time.Second, "counted in a budget", func() bool {
		b, err := budgets.Get(m.Context(), name, metav1.GetOptions{})
		return err == nil && b.Status.ObservedGeneration == b.Generation && b.Status.CurrentHealthy > 0
	})
}

func (m machine) patchBudget(name string, patch map[string]any) {
	m.Helper()
	text, err := json.Marshal(patch)
	m.check(err)
	_, err = m.kube.PolicyV1().PodDisruptionBudgets("default").Patch(m.Context(), name, types.MergePatchType, text, metav1.PatchOptions{})
	m.check(err)
}

// waitForEvent waits for an Event on the node whose message has all of the words, and returns how
// long that took.
func (m machine) waitForEvent(limit time.Duration, reason string, words ...string) {
	m.Helper()
	var last string
	took := m.waitUntil(limit, reason+" reported with "+strings.Join(words, ", "), func() bool {
		events, err := m.kube.CoreV1().Events("default").List(m.Context(), metav1.ListOptions{FieldSelector: "reason=" + reason + ",involvedObject.name=" + m.name})
		m.check(err)
		return slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			last = e.Message
			return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(e.Message, word) })
		})
	})
	m.Logf("%s: after %s: %s", m.name, took.Round(time.Millisecond), last)
}

// TestMain runs all parallel subtests at the same time, also with few processors, because
// they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
