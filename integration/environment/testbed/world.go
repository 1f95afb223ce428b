package testbed

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/joist-autoscaler/joist/integration/environment/controlplane"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/guard"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/stack"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/kubecluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// Names that tests share with the world.
const (
	// Region is where EC2 is.
	Region = "ap-northeast-2"
	// ClusterName is the EKS cluster's.
	ClusterName = "seoul"
	// Namespace is the one that Joist is installed into.
	Namespace = "joist"
	// Root is the repository, as seen from a package in a folder of integration, such as suites/charts.
	Root = "../../.."
)

// Options are the paces of a world; the zero value is a small and quick one.
type Options struct {
	// Boot is the mean time that an instance takes to boot, a second when zero.
	Boot time.Duration
	// Machines is how often booted instances become nodes and ended ones fall
	// silent, 20 ms when zero. Each look copies EC2's records of every instance.
	Machines time.Duration
	// Values are what helm is told beside what it must be, as name=value.
	Values []string
	// Audit has every request of the API server written down.
	Audit bool
	// Look is called whenever Wait looks, before its condition is asked.
	Look func()
	// Notice is told every event that EC2 and AWS Health emit, before it is on the
	// bus. Whoever moved EC2 waits for it.
	Notice func(raw []byte)
}

// World is one control plane, one AWS and one Joist.
type World struct {
	*testing.T
	// Ctx ends before anything of the world does.
	Ctx   context.Context
	Began time.Time

	Plane *controlplane.ControlPlane
	Kube  kubernetes.Interface
	Cache *kubecluster.Cache
	ID    event.Cluster

	Cloud     *memcloud.Cloud
	AWS       memcloud.World
	Catalogue catalog.Catalogue
	Broker    *memqueue.Broker
	Server    *fakeaws.Server

	// deployed is what the CDK app's template made, and guard judges by its policies.
	deployed stack.Stack
	guard    *guard.Guard

	options              Options
	processes, functions []*process
	// functionNames has the function of each process of functions.
	functionNames []string
	// dead are those that were killed and have successors.
	dead []*process
	// trouble takes what goes wrong beside the scenario.
	trouble chan error
	// beside counts what runs beside the scenario.
	beside sync.WaitGroup
	// told is all that was said. It is printed at the end, for several worlds may
	// run at the same time.
	told strings.Builder
}

// New starts everything but Joist.
func New(t *testing.T, o Options) *World {
	t.Helper()
	o.Boot, o.Machines = cmp.Or(o.Boot, bootMean), cmp.Or(o.Machines, machinesEvery)
	w := &World{T: t, Began: time.Now(), options: o, trouble: make(chan error, 100)}
	t.Cleanup(func() { fmt.Fprintf(t.Output(), "\n%s\n%s\n", t.Name(), w.told.String()) })
	w.startPlane()
	w.startAWS()
	// Whatever runs beside the scenario ends before what it talks to.
	var cancel context.CancelFunc
	w.Ctx, cancel = context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		w.beside.Wait()
	})
	w.beside.Go(func() { w.Cache.Run(w.Ctx) })
	w.Beside(o.Machines, w.machines())
	w.Beside(tickEvery, w.tick)
	return w
}

// Say adds a line to the story, with the seconds since the beginning.
func (w *World) Say(format string, args ...any) {
	fmt.Fprintf(&w.told, "%6.1fs  %s\n", time.Since(w.Began).Seconds(), fmt.Sprintf(format, args...))
}

// Story is all that was said.
func (w *World) Story() string { return w.told.String() }

// Beside calls f at once and then at each interval, until the world ends. An
// error of it fails the next Wait.
func (w *World) Beside(interval time.Duration, f func() error) {
	w.beside.Go(func() { w.every(interval, f) })
}

func (w *World) startPlane() {
	w.Helper()
	plane, err := controlplane.Start(w.Context(), controlplane.Options{CRDs: Root + "/deploy/charts/joist-crd/files", Audit: w.options.Audit})
	w.Check(err)
	w.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			w.Error(err)
		}
	})
	w.Plane = plane
	w.Kube, err = kubernetes.NewForConfig(plane.Config)
	w.Check(err)
	client, err := kubecluster.New(plane.Config, "e2e")
	w.Check(err)
	w.Cache, err = client.NewCache(kubecluster.CacheOptions{Kinds: []cluster.Kind{
		cluster.Pods, cluster.Nodes, cluster.NodeClaims, cluster.NodePools, cluster.NodeClasses,
	}})
	w.Check(err)
	system, err := w.Kube.CoreV1().Namespaces().Get(w.Context(), "kube-system", metav1.GetOptions{})
	w.Check(err)
	w.ID = event.Cluster{Name: ClusterName, UID: string(system.UID)}
	_, err = w.Kube.CoreV1().Namespaces().Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}, metav1.CreateOptions{})
	w.Check(err)
	w.Say("a control plane of five processes is ready")
}
