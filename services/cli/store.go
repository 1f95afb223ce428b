package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/fleet"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// old is an age at which a snapshot is not the cluster's any more: the watcher writes
// one an hour at least.
const old = 75 * time.Minute

// latest reads the latest snapshot of a cluster, and the catalogue that it names, from
// where its services keep them.
func (n nodesFlags) latest(ctx context.Context, env Env) (fleet.Source, error) {
	place, isS3 := strings.CutPrefix(n.store, "s3://")
	bucket, prefix, _ := strings.Cut(strings.Trim(place, "/"), "/")
	if !isS3 || bucket == "" {
		return fleet.Source{}, usage(fmt.Errorf("%q is no place of documents", n.store), "--store s3://BUCKET/PREFIX, as the services have them in JOIST_BUCKET and JOIST_PREFIX")
	}
	if env.Store == nil {
		return fleet.Source{}, fault.E("opening "+n.store, fault.Invalid, errors.New("this build reads no buckets")).WithHint("--snapshot FILE")
	}
	store, err := env.Store(ctx, bucket, prefix)
	if err != nil {
		return fleet.Source{}, err
	}
	ref, err := blob.Latest(ctx, store, scheduling.SnapshotKind)
	if fault.Is(err, fault.Missing) {
		return fleet.Source{}, fault.E("looking for the latest snapshot in "+n.store, fault.Missing, err).
			WithHint("see whether the prefix is that of the cluster, and whether its watcher runs; it shows clusters that have a node with a NodeClaim")
	}
	if err != nil {
		return fleet.Source{}, err
	}
	s, err := blob.Get[scheduling.Snapshot](ctx, store, ref)
	if err != nil {
		return fleet.Source{}, fmt.Errorf("reading the latest snapshot: %w", err)
	}
	if s.Catalogue.IsZero() {
		return priced(s)
	}
	c, err := blob.Get[catalog.Catalogue](ctx, store, s.Catalogue)
	if err != nil {
		return fleet.Source{}, fmt.Errorf("reading the catalogue of the latest snapshot: %w", err)
	}
	out := fleet.FromCatalogue(s, c)
	age := env.Now().Sub(s.Taken)
	out.Notes = append(out.Notes, fmt.Sprintf("the snapshot of %s was taken %s ago, and its prices are of %s", s.Cluster, age.Round(time.Second), c.AsOf.Format(time.DateTime)))
	if age > old {
		out.Notes = append(out.Notes, "the watcher has written none since, as it does each hour at least: the cluster may be another by now")
	}
	return out, nil
}
