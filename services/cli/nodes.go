package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/internal/fleet"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/scenario"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// nodesFlags say about whose nodes a command is asked.
type nodesFlags struct{ scenario, snapshot, catalogue, store string }

// orCluster is how a command is asked about a cluster.
const orCluster = "--snapshot FILE, or --store s3://BUCKET/PREFIX"

func (n *nodesFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&n.scenario, "scenario", "", "file of a scenario as JSON, packed with gzip if its name ends in .gz, or - for stdin")
	f.StringVar(&n.snapshot, "snapshot", "", "file of a snapshot of a cluster, as it is stored or unpacked")
	f.StringVar(&n.catalogue, "catalogue", "", "file of the catalogue that the snapshot names (default: the prices that come with the command)")
	f.StringVar(&n.store, "store", "", "where the services of a cluster keep their documents, as s3://BUCKET/PREFIX, to ask about its latest snapshot")
}

// read reads what the flags name, and tells on stderr what was taken to be so. Try is
// the command as it should be.
func (n nodesFlags) read(cmd *cobra.Command, env Env, try string) (fleet.Source, error) {
	var out fleet.Source
	var err error
	switch {
	case n.given() != 1:
		return out, usage(errors.New("a scenario, a snapshot or a store is needed, and only one of them"), try)
	case n.snapshot == "" && n.catalogue != "":
		return out, usage(errors.New("scenarios and stores bring their own types and prices"), "--catalogue with --snapshot")
	case n.store != "":
		if out, err = n.latest(cmd.Context(), env); err != nil {
			return out, err
		}
	case n.scenario != "":
		var s scenario.Scenario
		if s, err = readScenario(cmd, n.scenario); err != nil {
			return out, err
		}
		out = fleet.FromScenario(&s)
	default:
		if out, err = n.cluster(); err != nil {
			return out, err
		}
	}
	for _, note := range out.Notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "note: "+note)
	}
	return out, nil
}

// settled is what can be played on, which is used up by that. It tells on stderr what was
// taken to be done.
func settled(cmd *cobra.Command, from fleet.Source) *fleet.Fleet {
	f := from.Fleet()
	for _, note := range f.Notes() {
		fmt.Fprintln(cmd.ErrOrStderr(), "note: "+note)
	}
	return f
}

// given is how many sources are named.
func (n nodesFlags) given() (count int) {
	for _, one := range []string{n.scenario, n.snapshot, n.store} {
		if one != "" {
			count++
		}
	}
	return count
}

// cluster reads a snapshot and its catalogue from files.
func (n nodesFlags) cluster() (fleet.Source, error) {
	var s scheduling.Snapshot
	if err := openDocument("snapshot", scheduling.SnapshotKind, n.snapshot, &s); err != nil {
		return fleet.Source{}, err
	}
	if s.Cluster == "" || s.Taken.IsZero() {
		return fleet.Source{}, fault.F("reading the snapshot", fault.Invalid, "%s is no snapshot: it names no cluster, or no time", n.snapshot).
			WithHint(documentHint, scheduling.SnapshotKind)
	}
	if n.catalogue == "" {
		return priced(s)
	}
	var c catalog.Catalogue
	if err := openDocument("catalogue", catalog.Kind, n.catalogue, &c); err != nil {
		return fleet.Source{}, err
	}
	if err := c.Validate(); err != nil {
		return fleet.Source{}, fault.E("reading the catalogue "+n.catalogue, fault.Invalid, err).
			WithHint(documentHint, catalog.Kind)
	}
	return fleet.FromCatalogue(s, c), nil
}

// priced is a snapshot with the catalogue that comes with the command.
func priced(s scheduling.Snapshot) (fleet.Source, error) {
	at := slices.IndexFunc(s.Nodes, func(n scheduling.Node) bool { return n.Labels[corev1.LabelTopologyRegion] != "" })
	if at < 0 {
		return fleet.Source{}, fault.F("finding the prices of the snapshot", fault.Missing, "no node of it says in which region it is").
			WithHint("give the catalogue that it names with --catalogue FILE")
	}
	region := s.Nodes[at].Labels[corev1.LabelTopologyRegion]
	c, err := catalog.Embedded(region)
	if err != nil {
		return fleet.Source{}, fault.E("finding the prices of "+region, fault.Missing, err).
			WithHint("give the catalogue that the snapshot names with --catalogue FILE; prices come with the command for %s", strings.Join(catalog.Regions(), ", "))
	}
	out := fleet.FromCatalogue(s, c)
	out.Notes = append(out.Notes, fmt.Sprintf("types and prices are those of %s that come with the command, of %s: a spot price is the average of the region", region, c.AsOf.Format("2006-01-02")))
	return out, nil
}

// documentHint says where documents of a kind are.
const documentHint = "take an object from below %s/ in the bucket, as it is stored or unpacked"

// openDocument reads a file that was taken out of the store.
func openDocument(what, kind, name string, doc any) error {
	info, err := os.Stat(name)
	if err == nil && info.Size() > blob.MaxDocument {
		err = fmt.Errorf("%s has %d bytes, more than any %s", name, info.Size(), what)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return fault.E("reading the "+what, fault.Missing, err).WithHint("look at the path")
	}
	if err := blob.Open(name, data, doc); err != nil {
		return fault.E("reading the "+what, fault.Invalid, err).WithHint(documentHint, kind)
	}
	return nil
}
