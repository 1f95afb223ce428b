package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/live"
	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/services/planner"
	"github.com/joist-autoscaler/joist/services/watcher"
	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// LiveCluster is a cluster that can be read.
type LiveCluster = live.RunningCluster

// liveFlags are the flags that select a running cluster and its prices.
type liveFlags struct {
	kubeconfig, context, controller, region string
	offlinePrices                           bool
	timeout                                 time.Duration
	// listsUnread is set by a command whose output lists what could not be read; the others warn on stderr.
	listsUnread bool
}

// liveHelp is the part of the help about running clusters.
const liveHelp = "Without --scenario, --snapshot and --store it reads the cluster of the kubeconfig, which Joist or Karpenter may run.\n" +
	"It only gets and lists objects and changes nothing. Prices are those of the AWS account if there are credentials,\n" +
	"and else the embedded ones of the command.\n\n"

// readingTimeout is the default of --timeout.
const readingTimeout = 2 * time.Minute

// pricesTimeout limits the reading of the account's prices.
const pricesTimeout = 90 * time.Second

func (l *liveFlags) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.kubeconfig, "kubeconfig", "", "kubeconfig file of the running cluster (default: $"+settings.Kubeconfig+", or ~/.kube/config)")
	f.StringVar(&l.context, "context", "", "kubeconfig context of the running cluster (default: the current context)")
	controllerNamespaceFlag(cmd, &l.controller, "its settings are read", "that of its Deployment")
	f.StringVar(&l.region, "region", "", "AWS region of the instance types and prices (default: that of the nodes, or $AWS_REGION)")
	f.BoolVar(&l.offlinePrices, "offline-prices", false, "use the prices that are embedded in the command, not those of the AWS account")
	f.DurationVar(&l.timeout, "timeout", readingTimeout, "maximum time for reading the running cluster")
}

// liveFlagNames are the flags that only a running cluster has.
var liveFlagNames = []string{"kubeconfig", "context", controllerNamespace, "offline-prices", "timeout"}

// changedFlag returns a flag of a running cluster that the user has set, or "".
func (l *liveFlags) changedFlag(cmd *cobra.Command) string {
	at := slices.IndexFunc(liveFlagNames, func(name string) bool { return cmd.Flags().Changed(name) })
	if at < 0 {
		return ""
	}
	return "--" + liveFlagNames[at]
}

// clusterReading is a running cluster as the services would see it.
type clusterReading struct {
	batch     planning.Batch
	snapshot  planning.Snapshot
	catalogue catalog.Catalogue
	// ref refers to the batch.
	ref event.Ref
	// pricesFrom is the source of the prices.
	pricesFrom  string
	unread      []live.Unread
	assumptions []string
	// spotToSpot is the feature gate of the controller.
	spotToSpot bool
}

// readCluster reads the running cluster and its prices, and prints what could not be read to stderr,
// unless listsUnread is set.
// try is a correct form of the command without a cluster. limit replaces the price limit of the
// settings; nil leaves it.
func (l *liveFlags) readCluster(cmd *cobra.Command, env Env, try string, limit *float64) (clusterReading, error) {
	var out clusterReading
	if err := l.checkTimeout(); err != nil {
		return out, err
	}
	from, err := l.openCluster(cmd, env, try)
	if err != nil {
		return out, err
	}
	running := startProgress(cmd, "reading the cluster")
	defer running.Stop()
	state, err := live.Read(cmd.Context(), from, live.ReadOptions{
		Namespace: l.controller, Timeout: l.timeout, Progress: func(text string) { running.Update("%s", text) },
	})
	if err != nil {
		return out, err
	}
	region, err := l.findRegion(env, state, from)
	if err != nil {
		return out, err
	}
	if limit != nil {
		state.Controller.Settings.Scheduling.PriceLimit = limit
	}
	out.unread, out.assumptions = state.Unread, state.Assumptions
	identity := state.Identify(from)
	if err := out.readPrices(cmd.Context(), env, region, l.offlinePrices, identity.Name, running); err != nil {
		return out, err
	}
	out.spotToSpot = state.Controller.Settings.Scheduling.Gates.SpotToSpotConsolidation
	if err := out.collect(state, identity, env.Now()); err != nil {
		return out, err
	}
	running.Stop()
	if l.listsUnread {
		return out, nil
	}
	for _, u := range out.unread {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s was not read (%s): %s\n", u.Resource, u.Reason, u.Consequence)
		if u.Check != "" {
			fmt.Fprintln(cmd.ErrOrStderr(), "  check the permission with: "+u.Check)
		}
	}
	return out, nil
}

// checkTimeout returns an error if --timeout leaves no time.
func (l *liveFlags) checkTimeout() error {
	if l.timeout <= 0 {
		return usageError(fmt.Errorf("invalid --timeout %s: it must be positive", l.timeout), "--timeout 2m")
	}
	return nil
}

// openCluster opens the cluster. Without any flag the user may not have meant a running cluster, so an
// error names the other sources too.
func (l *liveFlags) openCluster(cmd *cobra.Command, env Env, try string) (live.RunningCluster, error) {
	if env.Live == nil {
		return live.RunningCluster{}, fault.F("opening Kubernetes", fault.Invalid, "no source given, and this build has no Kubernetes client").WithHint("%s", try)
	}
	from, err := env.Live(l.kubeconfig, l.context)
	if err != nil && l.changedFlag(cmd) == "" {
		hint := strings.Join(slices.DeleteFunc([]string{fault.FindHint(err), try}, func(s string) bool { return s == "" }), "; or without a cluster: ")
		return from, fault.E("opening the running cluster", fault.Invalid, errors.New(awsfault.ErrorText(err))).WithHint("%s", hint)
	}
	return from, err
}

// findRegion returns the region of --region, of the nodes, of the cluster's address, or of the
// environment.
func (l *liveFlags) findRegion(env Env, state live.ClusterContent, from live.RunningCluster) (string, error) {
	region := firstNonEmpty(l.region, state.Region(), from.Region, env.lookupEnv("AWS_REGION"), env.lookupEnv("AWS_DEFAULT_REGION"))
	if region == "" {
		return "", usageError(errors.New("the region of the cluster is unknown: no node has a region label or an AWS provider ID"), "--region, with one of "+strings.Join(catalog.Regions(), ", "))
	}
	return region, nil
}

// readPrices sets the catalogue: the account's own one, or else the embedded one.
func (r *clusterReading) readPrices(ctx context.Context, env Env, region string, offline bool, name string, running *progress) error {
	r.pricesFrom = pricesEmbedded
	if !offline && env.Catalogue != nil {
		running.Update("reading the prices of %s", region)
		limited, cancel := context.WithTimeout(ctx, pricesTimeout)
		defer cancel()
		found, warnings, err := env.Catalogue(limited, region)
		switch {
		case err == nil:
			r.pricesFrom, r.catalogue = pricesAccount, found
			r.assumptions = append(r.assumptions, warnings...)
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			r.assumptions = append(r.assumptions, "the embedded prices, because those of the AWS account cannot be read: "+oneLine(awsfault.ErrorText(err)))
		}
	}
	if r.pricesFrom == pricesEmbedded {
		found, err := catalog.EmbeddedCatalogue(region)
		if err != nil {
			return fault.E("finding the prices of "+region, fault.Missing, err).
				WithHint("AWS credentials that may read the prices of %s, or --region with one of %s", region, strings.Join(catalog.Regions(), ", "))
		}
		r.catalogue = found
		r.assumptions = append(r.assumptions, describeEmbedded(found, env.Now()))
	}
	r.catalogue.Cluster = simulate.PlaceholderFacts(name)
	return nil
}

// The sources of prices.
const (
	pricesAccount  = "account"
	pricesEmbedded = "embedded"
)

// describeEmbedded describes the embedded prices with their age.
func describeEmbedded(c catalog.Catalogue, now time.Time) string {
	return fmt.Sprintf("embedded instance types and prices of %s, from %s (%d days old); spot prices are regional averages",
		c.Region, c.AsOf.Format(time.DateOnly), int(now.Sub(c.AsOf).Hours()/24))
}

// collect makes the documents of the watcher from the objects.
func (r *clusterReading) collect(state live.ClusterContent, identity event.Cluster, now time.Time) error {
	prices, _, err := blob.Encode(catalog.Kind, r.catalogue)
	if err != nil {
		return fmt.Errorf("writing the catalogue: %w", err)
	}
	config := state.Controller.Settings
	repairs, err := config.NewRepairMatcher()
	if err != nil {
		r.assumptions = append(r.assumptions, "no node repair, because its settings cannot be read: "+oneLine(err.Error()))
	}
	r.batch, r.snapshot = watcher.CollectDocuments(watcher.Observation{
		Feed: state.Feed, Cluster: identity, Catalogue: prices, Settings: config.Scheduling, Unavailable: state.Unavailable,
		DefaultConstraints: config.DefaultConstraints, Repair: repairs, Outbox: "cli", Seq: 1, Now: now,
	})
	if claims := len(r.batch.Unplanned); claims > 0 && state.Controller.Name != live.Joist {
		r.batch.Unplanned = nil
		r.assumptions = append(r.assumptions, fmt.Sprintf("%d NodeClaims without an instance become nodes with the capacity that they request", claims))
	}
	for _, pool := range cluster.ListCached[*karpenter.NodePool](state.Feed, cluster.NodePools) {
		if !pool.IsManaged() {
			r.assumptions = append(r.assumptions, fmt.Sprintf("NodePool %s is left to its own provider, because its node class is not an EC2NodeClass", pool.Name))
		}
	}
	r.assumptions = append(r.assumptions, simulate.AssumeClasses(&r.batch.Snapshot, r.catalogue)...)
	simulate.AssumeClasses(&r.snapshot, r.catalogue)
	r.ref, _, err = blob.Encode(planning.BatchKind, r.batch)
	if err != nil {
		return fmt.Errorf("writing the batch: %w", err)
	}
	return nil
}

// source returns the reading as a source of simulations.
func (r *clusterReading) source() simulate.Source {
	out := simulate.SourceFromCatalogue(r.snapshot, r.catalogue)
	out.Kind, out.PricesFrom, out.Notes, out.Unread = "cluster", r.pricesFrom, r.assumptions, r.unread
	return out
}

// plan returns the plan that the planner would make.
func (r *clusterReading) plan() (simulate.PlanResult, error) {
	built, err := planner.Plan(r.batch, r.ref, r.catalogue)
	if err != nil {
		return simulate.PlanResult{}, fmt.Errorf("planning: %w", err)
	}
	return simulate.PlanResult{Batch: r.batch, Catalogue: r.catalogue, Built: built, Assumptions: r.assumptions}, nil
}
