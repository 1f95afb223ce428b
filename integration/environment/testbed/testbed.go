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

	"github.com/joist-autoscaler/joist/integration/environment/apiproxy"
	"github.com/joist-autoscaler/joist/integration/environment/controlplane"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/authorization"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/stack"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/kubecluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// Names that tests and the test bed share.
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

// Options configure a TestBed; the zero value is small and fast.
type Options struct {
	// Boot is the mean boot time of an instance; a second if zero.
	Boot time.Duration
	// Join is the time from the launch of an instance to its node; the node joins as soon as the instance runs if it is zero.
	Join time.Duration
	// EvenSpot gives all spot pools the same spare capacity, so that EC2 launches the cheapest.
	EvenSpot bool
	// Machines is how often booted instances become nodes and terminated ones unreachable; 20 ms if zero. Each
	// time copies EC2's records of all instances.
	Machines time.Duration
	// Values are additional Helm values, as name=value.
	Values []string
	// Charts is a folder of a registry on loopback with packaged charts, such as oci://127.0.0.1:5000/charts, and
	// ChartVersion their version. The charts' own image repository remains. If Charts is empty, the charts of the work
	// tree are installed.
	Charts, ChartVersion string
	// CRDs is a folder with CustomResourceDefinitions; those of the work tree's chart if it is empty.
	CRDs string
	// Environ are additional variables of a service in the cluster.
	Environ func(service string) []string
	// Metrics makes each service serve its metrics on loopback (TestBed.ReadMetrics).
	Metrics bool
	// Outages is set if the test restarts the API server: background work then ignores errors and tries again.
	Outages bool
	// Audit enables the audit log of the API server.
	Audit bool
	// ProxySeed starts a proxy between each service in the cluster and the API server, which draws its faults from the seed.
	// Without a seed there is no proxy.
	ProxySeed uint64
	// LambdaEmulator is the program of AWS's runtime interface emulator (lambdaruntime.EmulatorTool), which then runs the
	// functions. Without it, package lambdaruntime runs them.
	LambdaEmulator string
	// Replicas is the number of processes of each service in the cluster; one if it is zero.
	Replicas int
	// AllowsDenial reports whether a request may be denied by the template's policies; nil allows none.
	AllowsDenial func(text string) bool
	// Look is called before each check of WaitUntil.
	Look func()
	// Notice is called with every event of EC2 and AWS Health before it is sent to the bus. EC2 waits for it.
	Notice func(raw []byte)
}

// TestBed is one control plane, one fake AWS and one installation of Joist.
type TestBed struct {
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
	// Blobs are the objects of the cluster's bucket.
	Blobs  *memblob.Store
	Server *fakeaws.Server
	// Proxies are the proxies of Options.ProxySeed, by service.
	Proxies map[string]*apiproxy.Proxy

	// deployed are the resources of the CDK app's template. authorizer checks requests against its policies.
	deployed   stack.Stack
	authorizer *authorization.Authorizer

	options              Options
	installation         Installation
	processes, functions []*process
	// metricsPorts are the ports of the services' metrics.
	metricsPorts map[string]int
	// karpenter is Karpenter's controller, or nil.
	karpenter *process
	// functionNames are the names of the processes in functions.
	functionNames []string
	// stoppedProcesses are processes that were replaced.
	stoppedProcesses []*process
	// backgroundErrors are errors of background work.
	backgroundErrors chan error
	// apiServer is locked while the API server restarts, and read-locked by background work that calls it.
	apiServer sync.RWMutex
	// background counts the background goroutines.
	background sync.WaitGroup
	// output protects log and errors.
	output sync.Mutex
	// log is printed at the end, because several test beds may run at the same time.
	log strings.Builder
	// errors are the messages of failures. They are printed after the log, because CI shows the end of a long output.
	errors []string
}

// New starts everything except Joist.
func New(t *testing.T, o Options) *TestBed {
	t.Helper()
	o.Boot, o.Machines = cmp.Or(o.Boot, bootMean), cmp.Or(o.Machines, machinesEvery)
	w := &TestBed{T: t, Began: time.Now(), options: o, backgroundErrors: make(chan error, 100)}
	t.Cleanup(func() {
		w.output.Lock()
		defer w.output.Unlock()
		fmt.Fprintf(t.Output(), "\n%s\n%s\n", t.Name(), w.log.String())
		for _, text := range w.errors {
			fmt.Fprintf(t.Output(), "failed at %s\n", text)
		}
	})
	w.startControlPlane()
	if o.ProxySeed != 0 {
		w.startProxies()
	}
	w.startAWS()
	// Background work ends before the servers that it uses.
	var cancel context.CancelFunc
	w.Ctx, cancel = context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		w.background.Wait()
	})
	w.background.Go(func() { w.Cache.Run(w.Ctx) })
	w.RunWithAPIServer(o.Machines, w.startMachines())
	w.RunInBackground(tickEvery, w.runTicks)
	return w
}

// Logf adds a line to the log, with the seconds since the start.
func (w *TestBed) Logf(format string, args ...any) {
	w.output.Lock()
	defer w.output.Unlock()
	fmt.Fprintf(&w.log, "%6.1fs  %s\n", time.Since(w.Began).Seconds(), fmt.Sprintf(format, args...))
}

// Error is T.Error, and repeats the message at the end.
func (w *TestBed) Error(args ...any) {
	w.Helper()
	w.keepError(fmt.Sprint(args...))
	w.T.Error(args...)
}

// Errorf is T.Errorf, and repeats the message at the end.
func (w *TestBed) Errorf(format string, args ...any) {
	w.Helper()
	w.keepError(fmt.Sprintf(format, args...))
	w.T.Errorf(format, args...)
}

// Fatalf is T.Fatalf, and repeats the message at the end.
func (w *TestBed) Fatalf(format string, args ...any) {
	w.Helper()
	w.keepError(fmt.Sprintf(format, args...))
	w.T.Fatalf(format, args...)
}

func (w *TestBed) keepError(text string) {
	w.output.Lock()
	defer w.output.Unlock()
	w.errors = append(w.errors, fmt.Sprintf("%.1fs: %s", time.Since(w.Began).Seconds(), text))
}

// RunInBackground calls f at once and then at each interval until the test bed ends. An error fails the next
// WaitUntil.
func (w *TestBed) RunInBackground(interval time.Duration, f func() error) {
	w.background.Go(func() { w.runEvery(interval, f) })
}

func (w *TestBed) startControlPlane() {
	w.Helper()
	o := controlplane.Options{CRDs: cmp.Or(w.options.CRDs, Root+"/deploy/charts/joist-crd/files"), Audit: w.options.Audit}
	if w.options.Charts != "" {
		o.CRDs = ""
	}
	plane, err := controlplane.Start(w.Context(), o)
	w.RequireNoError(err)
	w.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			w.Error(err)
		}
	})
	w.Plane = plane
	w.Kube, err = kubernetes.NewForConfig(plane.Config)
	w.RequireNoError(err)
	client, err := kubecluster.New(plane.Config, "e2e")
	w.RequireNoError(err)
	w.Cache, err = client.NewCache(kubecluster.CacheOptions{Kinds: []cluster.Kind{
		cluster.Pods, cluster.Nodes, cluster.NodeClaims, cluster.NodePools, cluster.NodeClasses,
	}})
	w.RequireNoError(err)
	system, err := w.Kube.CoreV1().Namespaces().Get(w.Context(), "kube-system", metav1.GetOptions{})
	w.RequireNoError(err)
	w.ID = event.Cluster{Name: ClusterName, UID: string(system.UID)}
	_, err = w.Kube.CoreV1().Namespaces().Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}, metav1.CreateOptions{})
	w.RequireNoError(err)
	if w.options.Charts != "" {
		w.installCRDs()
	}
	w.Logf("a control plane of five processes is ready")
}
