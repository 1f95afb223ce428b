package memworkload

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Options configure the model. A duration of 0 means at once unless noted otherwise.
type Options struct {
	// ClusterName is the cluster's name that user data must have; empty accepts any.
	ClusterName string
	// Machine returns the resources of an instance type. Nil knows no type.
	Machine func(instanceType string) (Machine, bool)
	// JoinAfter is from Boot to the Node, ReadyAfter from the Node to Ready.
	JoinAfter, ReadyAfter time.Duration
	// StartAfter is from the binding of a pod to Ready. StopAfter is from the deletion of
	// a pod to the end of its containers, at most its grace period; 0 means the whole
	// grace period.
	StartAfter, StopAfter time.Duration
	// SilentAfter is from the end of an instance to its Node's Ready=Unknown.
	SilentAfter time.Duration
	// ForgetAfter is from the end of an instance to the removal of its Node by
	// the cloud's controller; zero leaves the Node to others.
	ForgetAfter time.Duration
	// OrphanAfter is how long a pod outlives its Node.
	OrphanAfter time.Duration
	// PublishAfter is from the Node's Ready to the ResourceSlices of its devices.
	PublishAfter time.Duration
	// ClaimTemplates are the ResourceClaimTemplates of every namespace, by name.
	ClaimTemplates map[string]resourcev1.ResourceClaimSpec
}

// Typical returns typical durations on EC2.
func Typical(clusterName string, machine func(string) (Machine, bool)) Options {
	return Options{
		ClusterName: clusterName, Machine: machine,
		JoinAfter: 25 * time.Second, ReadyAfter: 10 * time.Second,
		StartAfter: 2 * time.Second, StopAfter: 2 * time.Second,
		SilentAfter: 40 * time.Second, OrphanAfter: 40 * time.Second,
	}
}

// Kubernetes runs the controllers.
type Kubernetes struct {
	server  *memcluster.Server
	options Options
	view    *memcluster.Cache

	sets     map[types.UID]replicaSet // every ReplicaSet that ever was
	attempts map[string]int           // pods made so far, by what they are for
	machines map[string]*machine      // by instance id
	orphans  map[types.UID]time.Time  // pods without a node, and since when

	now     time.Time
	next    time.Time // when time alone gives something to do
	quiet   bool      // the last pass saw nothing new once it had begun
	changes int
	// The pods and nodes of a pass, read again after each controller that wrote.
	pods  []*corev1.Pod
	nodes []*corev1.Node
}

// New returns the controllers of a server.
func New(server *memcluster.Server, options Options) *Kubernetes {
	return &Kubernetes{
		server: server, options: options,
		view: server.NewCache(memcluster.CacheOptions{Uncopied: true, Kinds: []cluster.Kind{
			cluster.Pods, cluster.Nodes, cluster.Deployments, cluster.DaemonSets,
			cluster.DeviceClasses, cluster.ResourceSlices, cluster.ResourceClaims,
		}}),
		sets: map[types.UID]replicaSet{}, attempts: map[string]int{},
		machines: map[string]*machine{}, orphans: map[types.UID]time.Time{},
		quiet: true,
	}
}

// Step makes one pass at a moment and reports how many objects it changed. It
// does nothing while nothing changed and nothing is due.
func (k *Kubernetes) Step(ctx context.Context, now time.Time) (int, error) {
	if k.view.Advance(now) == 0 && k.quiet && (k.next.IsZero() || now.Before(k.next)) {
		return 0, nil
	}
	k.now, k.changes, k.next, k.quiet = now, 0, time.Time{}, true
	parts := []struct {
		name string
		act  func(context.Context) error
	}{
		{"joining machines", k.joinMachines},
		{"watching nodes", k.syncNodes},
		{"evicting from tainted nodes", k.evictTainted},
		{"collecting garbage", k.collectGarbage},
		{"stopping pods", k.stopPods},
		{"running Deployments", k.syncDeployments},
		{"running DaemonSets", k.syncDaemonSets},
		{"publishing devices", k.publishDevices},
		{"generating resource claims", k.syncClaims},
		{"scheduling", k.schedulePods},
		{"starting pods", k.startPods},
	}
	k.read()
	for _, part := range parts {
		if k.view.Advance(now) > 0 {
			// The parts before this one have not seen it.
			k.quiet = false
			k.read()
		}
		if err := part.act(ctx); err != nil {
			k.quiet = false
			return k.changes, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return k.changes, nil
}

// Settle calls Step until nothing changes.
func (k *Kubernetes) Settle(ctx context.Context, now time.Time) error {
	const limit = 100
	for range limit {
		n, err := k.Step(ctx, now)
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
	}
	return fault.F("settling", fault.Bug, "objects still change after %d steps without time passing", limit)
}

// Next is when the next Step has something to do: now after a change, or when the first
// delay ends, or never (the zero time).
func (k *Kubernetes) Next() time.Time {
	if !k.quiet {
		return k.now
	}
	news := k.view.NextDelivery()
	if k.next.IsZero() || !news.IsZero() && news.Before(k.next) {
		return news
	}
	return k.next
}

// read reads pods and nodes from the cache.
func (k *Kubernetes) read() {
	k.pods = cluster.ListCached[*corev1.Pod](k.view, cluster.Pods)
	k.nodes = cluster.ListCached[*corev1.Node](k.view, cluster.Nodes)
}

// isDue reports whether a time has come. If not, Next considers it.
func (k *Kubernetes) isDue(at time.Time) bool {
	if !at.After(k.now) {
		return true
	}
	if k.next.IsZero() || at.Before(k.next) {
		k.next = at
	}
	return false
}

// countWrite counts a write. It ignores errors because the object has changed or is gone:
// the next pass sees that.
func (k *Kubernetes) countWrite(err error) error {
	if fault.Is(err, fault.Missing, fault.Conflict) {
		return nil
	}
	if err == nil {
		k.changes++
	}
	return err
}

// createObject creates an object as the actor.
func (k *Kubernetes) createObject(ctx context.Context, actor string, object cluster.Object) error {
	_, err := k.server.AsKubernetes(actor).Create(ctx, object)
	return k.countWrite(err)
}

func (k *Kubernetes) setStatus(ctx context.Context, actor string, object cluster.Object) error {
	_, err := k.server.AsKubernetes(actor).UpdateStatus(ctx, object)
	return k.countWrite(err)
}

func (k *Kubernetes) removePod(ctx context.Context, actor string, pod *corev1.Pod) error {
	return k.countWrite(k.server.AsKubernetes(actor).Delete(ctx, cluster.Pods, cluster.KeyOf(pod), pod.UID))
}

func (k *Kubernetes) killPod(ctx context.Context, actor string, pod *corev1.Pod) error {
	return k.countWrite(k.server.AsKubernetes(actor).DeletePod(ctx, cluster.KeyOf(pod), pod.UID, 0))
}

func (k *Kubernetes) deployments() []*appsv1.Deployment {
	return cluster.ListCached[*appsv1.Deployment](k.view, cluster.Deployments)
}

func (k *Kubernetes) daemonSets() []*appsv1.DaemonSet {
	return cluster.ListCached[*appsv1.DaemonSet](k.view, cluster.DaemonSets)
}
