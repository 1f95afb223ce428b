package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/records"
	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// snapshotAgeMax is the age above which a snapshot may be outdated. The watcher writes one at least
// every hour.
const snapshotAgeMax = 75 * time.Minute

// readLatest reads the latest snapshot of a cluster, and the catalogue that it refers to, from
// the bucket of the services.
func (n nodesFlags) readLatest(ctx context.Context, env Env) (simulate.Source, error) {
	store, err := n.openStore(ctx, env)
	if err != nil {
		return simulate.Source{}, err
	}
	ref, err := blob.GetLatest(ctx, store, planning.SnapshotKind)
	if fault.Is(err, fault.Missing) {
		return simulate.Source{}, fault.F("finding the latest snapshot in "+n.store, fault.Missing, "it has none").
			WithHint("check that the prefix is that of the cluster and that its watcher runs; the watcher writes snapshots only for clusters that have a node with a NodeClaim")
	}
	if err != nil {
		return simulate.Source{}, err
	}
	s, err := blob.Get[planning.Snapshot](ctx, store, ref)
	if err != nil {
		return simulate.Source{}, fmt.Errorf("reading the latest snapshot: %w", err)
	}
	if s.Catalogue.IsZero() {
		out, err := withEmbeddedPrices(s)
		out.Kind = "store"
		return out, err
	}
	c, err := blob.Get[catalog.Catalogue](ctx, store, s.Catalogue)
	if err != nil {
		return simulate.Source{}, fmt.Errorf("reading the catalogue of the latest snapshot: %w", err)
	}
	out := simulate.SourceFromCatalogue(s, c)
	out.Kind = "store"
	age := env.Now().Sub(s.TakenAt)
	out.Notes = append(out.Notes, fmt.Sprintf("the snapshot of %s is %s old; its prices are from %s", s.Cluster, formatAge(age), c.AsOf.Format(time.DateOnly)))
	if age > snapshotAgeMax {
		out.Notes = append(out.Notes, "the watcher writes a snapshot at least every hour, but has written none since: the cluster may have changed")
	}
	return out, nil
}

// openStore opens the bucket of the services, or a directory with a copy of it.
func (n nodesFlags) openStore(ctx context.Context, env Env) (blob.Store, error) {
	place, isS3 := strings.CutPrefix(n.store, "s3://")
	if info, err := os.Stat(n.store); !isS3 && err == nil && info.IsDir() {
		return records.Directory(n.store), nil
	}
	bucket, prefix, _ := strings.Cut(strings.Trim(place, "/"), "/")
	if !isS3 || bucket == "" {
		return nil, usageError(fmt.Errorf("invalid --store %q: it is neither s3://BUCKET/PREFIX nor a directory", n.store), "--store s3://BUCKET/PREFIX, the services' JOIST_BUCKET and JOIST_PREFIX, or a directory with a copy of it")
	}
	if env.Store == nil {
		return nil, fault.E("opening "+n.store, fault.Invalid, errNoStore).WithHint("--snapshot FILE")
	}
	return env.Store(ctx, bucket, prefix)
}

// errNoStore is the error of a build without S3.
var errNoStore = errors.New("this build has no S3 client")
