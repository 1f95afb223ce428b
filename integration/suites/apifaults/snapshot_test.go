package apifaults

import (
	"context"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/services/watcher"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/kubecluster"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// requireSnapshot requires that the watcher's snapshot becomes equal to one of the API server's objects, which a new
// cache without a proxy reads.
func (r *run) requireSnapshot() {
	r.Helper()
	client, err := kubecluster.New(r.Plane.Config, "test")
	r.RequireNoError(err)
	ctx, cancel := context.WithCancel(r.Ctx)
	defer cancel()
	var difference string
	defer func() {
		if r.Failed() {
			r.Logf("the snapshot differs from the API server:\n%s", difference)
		}
	}()
	settings := r.readSnapshot().Settings
	fresh, err := client.NewCache(kubecluster.CacheOptions{
		Kinds: watcher.WatchedKinds(settings, false), Namespaces: map[cluster.Kind]string{cluster.ConfigMaps: testbed.Namespace}, Trim: watcher.Trims(false),
	})
	r.RequireNoError(err)
	go fresh.Run(ctx)
	r.WaitUntil(snapshotLimit, "a cache of the API server's objects", fresh.Synced)
	r.WaitUntil(snapshotLimit, "the watcher's snapshot to equal the API server's objects", func() bool {
		stored := r.readSnapshot()
		difference = gocmp.Diff(r.snapshotOf(fresh, stored), stored)
		return difference == ""
	})
}

// readSnapshot reads the last snapshot that the watcher stored.
func (r *run) readSnapshot() planning.Snapshot {
	r.Helper()
	store := clusterStore{r.Blobs}
	ref, err := blob.GetLatest(r.Ctx, store, planning.SnapshotKind)
	r.RequireNoError(err)
	snapshot, err := blob.Get[planning.Snapshot](r.Ctx, store, ref)
	r.RequireNoError(err)
	return snapshot
}

// snapshotOf returns the snapshot of a cache, with the time of the stored one and its values that are not objects.
func (r *run) snapshotOf(feed cluster.Feed, stored planning.Snapshot) planning.Snapshot {
	r.Helper()
	var matcher *repair.Matcher
	if stored.Repair != nil {
		var err error
		matcher, err = repair.NewMatcher(*stored.Repair)
		r.RequireNoError(err)
	}
	_, snapshot := watcher.CollectDocuments(watcher.Observation{
		Feed: feed, Cluster: r.ID, Catalogue: stored.Catalogue, Settings: stored.Settings, Unavailable: stored.Unavailable, Repair: matcher, Now: stored.TakenAt,
	})
	_, text, err := blob.Encode(planning.SnapshotKind, snapshot)
	r.RequireNoError(err)
	var decoded planning.Snapshot
	r.RequireNoError(blob.DecodeFile("the snapshot of the API server", text, &decoded))
	return decoded
}

// clusterStore reads the documents of the cluster, whose keys begin with its name.
type clusterStore struct{ blob.Store }

func (s clusterStore) Get(ctx context.Context, key string) ([]byte, error) {
	return s.Store.Get(ctx, testbed.ClusterName+"/"+key)
}
