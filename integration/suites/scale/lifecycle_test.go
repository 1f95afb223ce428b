package scale_test

import (
	"context"
	"time"

	"k8s.io/client-go/rest"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/kubecluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
)

// lifecycleKinds are the kinds that lifecycle's main watches.
var lifecycleKinds = []cluster.Kind{
	cluster.Pods, cluster.Nodes, cluster.DisruptionBudgets, cluster.VolumeAttachments, cluster.VolumeClaims,
	cluster.NodePools, cluster.NodeClaims, cluster.NodeClasses,
}

// runLifecycle runs lifecycle's reconciles as its main does, except that only Kubernetes' lists
// and watches are real.
func runLifecycle(ctx context.Context, url string) error {
	client, err := kubecluster.New(&rest.Config{Host: url}, "joist-lifecycle")
	if err != nil {
		return err
	}
	cache, err := client.NewCache(kubecluster.CacheOptions{Kinds: lifecycleKinds, Trim: lifecycle.Trims()})
	if err != nil {
		return err
	}
	service := lifecycle.New(lifecycle.Config{
		Client: statusClient{memcluster.New(memcluster.Options{Now: time.Now}).ClientFor("lifecycle"), client}, Cache: cache,
		Blobs: memblob.New(memblob.Options{Now: time.Now}), Launcher: deaf{"launches"},
		Cluster: event.Cluster{Name: "scale", UID: "uid"}, Namespace: "kube-system", KarpenterNamespace: "kube-system", Holder: "lifecycle",
		Catalogues: &blob.DocumentCache[catalog.Catalogue]{}, Region: "eu-west-1", ReservedCapacity: true, Parallel: 32,
		Rest: lifecycle.ReconcileInterval, Now: time.Now,
	})
	return runLoop(ctx, cache, host.Loop{Reconcile: service.Step, Interval: lifecycle.ReconcileInterval, NextDue: service.NextRetry}, service.Reconciled)
}

// statusClient writes statuses to the API server and everything else, such as Leases, to the memory.
type statusClient struct {
	cluster.Client
	statuses cluster.Client
}

func (c statusClient) UpdateStatus(ctx context.Context, object cluster.Object) (cluster.Object, error) {
	return c.statuses.UpdateStatus(ctx, object)
}
