package scale_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/joist-autoscaler/joist/services/watcher"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/kubecluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// serverVariable and serviceVariable are set in the service's process, to the URL of its API
// server and to its name.
const (
	serverVariable  = "JOIST_SCALE_SERVER"
	serviceVariable = "JOIST_SCALE_SERVICE"
)

// watched are the kinds that the watcher's main watches without feature gates.
var watched = []cluster.Kind{
	cluster.Pods, cluster.Nodes, cluster.Namespaces, cluster.DaemonSets, cluster.DisruptionBudgets,
	cluster.VolumeClaims, cluster.Volumes, cluster.StorageClasses, cluster.CSINodes, cluster.VolumeAttachments,
	cluster.NodePools, cluster.NodeClaims, cluster.NodeClasses, cluster.ConfigMaps,
}

func TestMain(m *testing.M) {
	if url := os.Getenv(serverVariable); url != "" {
		run := map[string]func(context.Context, string) error{"watcher": watch, "lifecycle": runLifecycle}[os.Getenv(serviceVariable)]
		if err := run(context.Background(), url); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// deaf accepts and drops all messages and logs their number per queue.
type deaf struct{ name string }

func (d deaf) Send(_ context.Context, messages ...queue.Outgoing) error {
	fmt.Println("sent", len(messages), d.name)
	return nil
}

// narrow keeps only the catalogue's pointer and drops snapshots.
type narrow struct{ *memblob.Store }

func (n narrow) Put(ctx context.Context, key string, data []byte) error {
	if strings.HasPrefix(key, "snapshot") {
		fmt.Println("stored", len(data), "bytes")
		return nil
	}
	return n.Store.Put(ctx, key, data)
}

// watch runs the watcher as its main does, except that only Kubernetes is real.
func watch(ctx context.Context, url string) error {
	client, err := kubecluster.New(&rest.Config{Host: url}, "joist-watcher")
	if err != nil {
		return err
	}
	cache, err := client.NewCache(kubecluster.CacheOptions{
		Kinds: watched, Namespaces: map[cluster.Kind]string{cluster.ConfigMaps: "kube-system"}, Trim: watcher.Trims(false),
	})
	if err != nil {
		return err
	}
	blobs := narrow{memblob.New(memblob.Options{Now: time.Now})}
	ref, err := blob.Put(ctx, blobs, time.Now(), catalog.Kind, catalog.Catalogue{Region: "eu-west-1", AsOf: time.Now()})
	if err != nil {
		return err
	}
	if err := blob.SetLatest(ctx, blobs, ref); err != nil {
		return err
	}
	service := watcher.New(watcher.Config{
		Client: memcluster.New(memcluster.Options{Now: time.Now}).ClientFor("watcher"), Cache: cache, Blobs: blobs,
		Planner: deaf{"batches"}, Disruption: deaf{"snapshots"}, Catalog: deaf{"questions"},
		Cluster: event.Cluster{Name: "scale", UID: "uid"}, Namespace: "kube-system", KarpenterNamespace: "kube-system", Holder: "watcher",
		Now: time.Now,
	})
	return runLoop(ctx, cache, host.Loop{Reconcile: service.Step, Interval: watcher.StepInterval, NextDue: service.NextStep, MinPause: service.MinPause}, service.Reconciled)
}

// runLoop runs a service's loop and its cache, and prints when the first reconcile with a synced
// cache ends.
func runLoop(ctx context.Context, cache *kubecluster.Cache, loop host.Loop, reconciled func() bool) error {
	began := time.Now()
	var once sync.Once
	loop.Changed = cache.Changed()
	loop.ErrorLog = &host.RateLimitedLog{Write: func(err error, _ int) {
		// Until then it logs that it waits for the watches.
		if cache.Synced() {
			fmt.Println("background error:", err)
		}
	}}
	loop.OnReconciled = func(took time.Duration, _ error) {
		if reconciled() {
			once.Do(func() {
				fmt.Println("synced after", time.Since(began).Round(time.Millisecond), "and a step of", took.Round(time.Millisecond))
			})
		}
	}
	return host.RunTogether(ctx, loop.Run, func(ctx context.Context) error {
		cache.Run(ctx)
		return nil
	})
}
