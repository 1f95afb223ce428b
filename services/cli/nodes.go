package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// nodesFlags are the flags that select the nodes to simulate.
type nodesFlags struct {
	scenario, snapshot, catalogue, store string
	live                                 liveFlags
}

// sourceFlags names the flags that read another source than the running cluster.
const sourceFlags = "--scenario FILE, or --snapshot FILE, or --store s3://BUCKET/PREFIX"

func (n *nodesFlags) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&n.scenario, "scenario", "", "scenario file (JSON; gzip if the name ends in .gz), or - for stdin")
	f.StringVar(&n.snapshot, "snapshot", "", "cluster snapshot file, as stored or decompressed")
	f.StringVar(&n.catalogue, "catalogue", "", "file of the catalogue that the snapshot refers to (default: the prices embedded in the command)")
	f.StringVar(&n.store, "store", "", "s3://BUCKET/PREFIX in which a cluster's services keep their documents, or a directory with a copy of it")
	n.live.addFlags(cmd)
}

// readNodes reads the selected source, by default the running cluster, and prints its notes to stderr.
// try is a correct form of the command without a cluster, for the error.
func (n *nodesFlags) readNodes(cmd *cobra.Command, env Env, try string) (simulate.Source, error) {
	out, err := n.readSource(cmd, env, try)
	if err != nil {
		return out, err
	}
	for _, note := range out.Notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "note: "+note)
	}
	return out, nil
}

// readSource is readNodes without printing the notes.
func (n *nodesFlags) readSource(cmd *cobra.Command, env Env, try string) (simulate.Source, error) {
	var out simulate.Source
	var err error
	switch {
	case n.countSources() > 1:
		return out, usageError(errors.New("--scenario, --snapshot and --store exclude each other"), try)
	case n.countSources() == 1 && n.live.changedFlag(cmd) != "":
		return out, usageError(fmt.Errorf("%s is for a running cluster, and excludes --scenario, --snapshot and --store", n.live.changedFlag(cmd)), try)
	case n.snapshot == "" && n.catalogue != "":
		return out, usageError(errors.New("--catalogue requires --snapshot: scenarios and stores have their own instance types and prices"), "--snapshot FILE --catalogue FILE")
	case n.countSources() == 0:
		reading, err := n.live.readCluster(cmd, env, try, nil)
		if err != nil {
			return out, err
		}
		out = reading.source()
	case n.store != "":
		if out, err = n.readLatest(cmd.Context(), env); err != nil {
			return out, err
		}
	case n.scenario != "":
		var s scenario.Scenario
		if s, err = readScenario(cmd, n.scenario); err != nil {
			return out, err
		}
		out = simulate.SourceFromScenario(&s)
	default:
		if out, err = n.readFiles(); err != nil {
			return out, err
		}
	}
	return out, nil
}

// openFleet returns the fleet of a source and prints its notes to stderr. A simulation
// consumes the fleet.
func openFleet(cmd *cobra.Command, from simulate.Source) *simulate.Fleet {
	f := from.Fleet()
	for _, note := range f.Notes() {
		fmt.Fprintln(cmd.ErrOrStderr(), "note: "+note)
	}
	return f
}

// countSources returns how many sources the flags name.
func (n nodesFlags) countSources() (count int) {
	for _, one := range []string{n.scenario, n.snapshot, n.store} {
		if one != "" {
			count++
		}
	}
	return count
}

// readFiles reads a snapshot and its catalogue from files.
func (n nodesFlags) readFiles() (simulate.Source, error) {
	var s planning.Snapshot
	if err := openDocument("snapshot", planning.SnapshotKind, n.snapshot, &s); err != nil {
		return simulate.Source{}, err
	}
	if s.Cluster == "" || s.TakenAt.IsZero() {
		return simulate.Source{}, fault.F("reading the snapshot", fault.Invalid, "%s is not a snapshot: it has no cluster name or no time", n.snapshot).
			WithHint(documentHint, planning.SnapshotKind)
	}
	if n.catalogue == "" {
		return withEmbeddedPrices(s)
	}
	var c catalog.Catalogue
	if err := openDocument("catalogue", catalog.Kind, n.catalogue, &c); err != nil {
		return simulate.Source{}, err
	}
	if err := c.Validate(); err != nil {
		return simulate.Source{}, fault.E("reading the catalogue "+n.catalogue, fault.Invalid, err).
			WithHint(documentHint, catalog.Kind)
	}
	return simulate.SourceFromCatalogue(s, c), nil
}

// withEmbeddedPrices combines a snapshot with the catalogue that is embedded in the command.
func withEmbeddedPrices(s planning.Snapshot) (simulate.Source, error) {
	at := slices.IndexFunc(s.Nodes, func(n planning.Node) bool { return n.Labels[corev1.LabelTopologyRegion] != "" })
	if at < 0 {
		return simulate.Source{}, fault.F("finding the prices of the snapshot", fault.Missing, "no node of the snapshot has a region label").
			WithHint("--catalogue FILE, the catalogue that the snapshot refers to")
	}
	region := s.Nodes[at].Labels[corev1.LabelTopologyRegion]
	c, err := catalog.EmbeddedCatalogue(region)
	if err != nil {
		return simulate.Source{}, fault.E("finding the prices of "+region, fault.Missing, err).
			WithHint("--catalogue FILE, the catalogue that the snapshot refers to; the command has prices for %s", strings.Join(catalog.Regions(), ", "))
	}
	out := simulate.SourceFromCatalogue(s, c)
	out.PricesFrom = pricesEmbedded
	out.Notes = append(out.Notes, fmt.Sprintf("instance types and prices are the embedded ones of %s, from %s; spot prices are regional averages", region, c.AsOf.Format("2006-01-02")))
	return out, nil
}

// documentHint is the hint of an error about a document. Its argument is the document's kind.
const documentHint = "give an object below %s/ in the bucket, as stored or decompressed"

// openDocument reads a document that was copied from the bucket.
func openDocument(what, kind, name string, doc any) error {
	info, err := os.Stat(name)
	if err == nil && info.Size() > blob.MaxDocument {
		return fault.F("reading the "+what, fault.Invalid, "%s has %d MiB, more than %d", name, info.Size()>>20, blob.MaxDocument>>20).WithHint(documentHint, kind)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return fileError(name, err).WithHint("check the path")
	}
	if len(data) == 0 {
		return fault.F("reading the "+what, fault.Invalid, "%s is empty", name).WithHint(documentHint, kind)
	}
	err = blob.DecodeFile(name, data, doc)
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = fmt.Errorf("%s is no %s: it has a JSON %s where another type is expected (field %q)", name, what, mismatch.Value, firstNonEmpty(mismatch.Field, "."))
	}
	if errors.Is(err, blob.ErrParts) {
		return fault.E("reading the "+what, fault.Invalid, err).WithHint("give the bucket or a copy of it with --store")
	}
	if err != nil {
		return fault.E("reading the "+what, fault.Invalid, err).WithHint(documentHint, kind)
	}
	return nil
}
