package lifecycle

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/kubecluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// estate is a real control plane with its garbage collector, and one lifecycle that has
// exactly the permissions of its service account.
type estate struct {
	*testbed.TestBed
	admin   *kubecluster.Client
	pools   dynamic.NamespaceableResourceInterface
	mu      sync.Mutex
	service *lifecycle.Service
	config  lifecycle.Config
}

func newEstate(t *testing.T, options testbed.Options) *estate {
	t.Helper()
	e := &estate{TestBed: testbed.New(t, options)}
	e.InstallChart()
	var err error
	e.admin, err = kubecluster.New(e.Plane.Config, "test")
	e.RequireNoError(err)
	raw, err := dynamic.NewForConfig(e.Plane.Config)
	e.RequireNoError(err)
	e.pools = raw.Resource(schema.GroupVersionResource{Group: karpenter.Group, Version: "v1", Resource: "nodepools"})
	client := e.lifecycleClient()
	cache, err := client.NewCache(kubecluster.CacheOptions{Kinds: []cluster.Kind{
		cluster.Pods, cluster.Nodes, cluster.DisruptionBudgets, cluster.VolumeAttachments, cluster.VolumeClaims,
		cluster.NodePools, cluster.NodeClaims, cluster.NodeClasses,
	}})
	e.RequireNoError(err)
	e.config = lifecycle.Config{
		Client: client, Cache: cache, Blobs: memblob.New(memblob.Options{Now: time.Now}), Launcher: memqueue.New(memqueue.Options{Now: time.Now}).Queue("launcher", memqueue.QueueOptions{}),
		Cluster: e.ID, Namespace: testbed.Namespace, KarpenterNamespace: "kube-system", Holder: "life", Region: testbed.Region, Now: time.Now,
	}
	ctx, cancel := context.WithCancel(e.Ctx)
	running := make(chan struct{})
	go func() {
		defer close(running)
		cache.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-running
	})
	e.RunInBackground(100*time.Millisecond, e.step)
	return e
}

func (e *estate) lifecycleClient() *kubecluster.Client {
	e.Helper()
	path, err := e.Plane.KubeconfigAs("system:serviceaccount:joist:joist-lifecycle")
	e.RequireNoError(err)
	config, err := kubecluster.Config(path, "joist-test/v0.1.0")
	e.RequireNoError(err)
	client, err := kubecluster.New(config, "joist-lifecycle")
	e.RequireNoError(err)
	return client
}

func (e *estate) step() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.service == nil {
		return nil
	}
	return e.service.Step(e.Ctx)
}

// still pauses lifecycle's reconciles during do.
func (e *estate) still(do func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	do()
}

// sees reports whether lifecycle's cache has the node.
func (e *estate) sees(node string) bool {
	_, ok := e.config.Cache.Get(cluster.Nodes, cluster.Key{Name: node})
	return ok
}

// restart starts a new process with another configuration.
func (e *estate) restart(gate lifecycle.DeletionApproval, legacy repair.PolicySet) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.config.DeletionApproval, e.config.LegacyRepair = gate, legacy
	e.service = lifecycle.New(e.config)
}
