package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/manifest"
)

// planFlags are the flags of `joist plan`.
type planFlags struct {
	files    []string
	scenario string
	live     liveFlags
	cluster  string
	expand   bool
	vars     []string
	format   string
	// priceLimit is in US dollars an hour; "" is no limit.
	priceLimit string
}

func planCommand(env Env) *cobra.Command {
	var flags planFlags
	cmd := &cobra.Command{
		Use:   "plan [--context NAME | -f FILE... | --scenario FILE]",
		Short: "Plan the nodes for the pods of a running cluster or of some manifests",
		Long: "Plan reads the cluster of the kubeconfig, which Joist or Karpenter may run, and plans nodes for its pending pods. It\n" +
			"only gets and lists objects and changes nothing. Prices are those of the AWS account if there are credentials, and\n" +
			"else the embedded ones of the command. It prints the nodes that would be launched with their prices, and the\n" +
			"unschedulable pods with the reasons.\n\n" +
			"With -f it reads NodePools, EC2NodeClasses and workloads from manifests. It then needs no cluster and no AWS account:\n" +
			"the prices are the embedded ones, and values normally read from a cluster are assumed and listed.\n\n" +
			"With --scenario it reads a planning benchmark, which has its own instance types and prices, and also prints the\n" +
			"time that planning took.\n\n" +
			"Exit codes: 0 nothing to launch and every pod is schedulable, 2 nodes to launch or unschedulable pods, 1 an error.\n" +
			"With --scenario: 0 a plan was made, 1 an error.",
		Example: "  joist plan --context prod\n" +
			"  joist plan -f nodepool.yaml -f inflate.yaml --region eu-central-1\n" +
			"  " + simulate.KubectlGetAll + " |\n    joist plan -f - --region eu-central-1\n" +
			"  joist plan --scenario b-1000.json -o json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usageError(fmt.Errorf("unexpected argument %q: give files with -f", args[0]), "joist plan -f "+args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return runPlan(cmd, env, flags) },
	}
	f := cmd.Flags()
	f.StringArrayVarP(&flags.files, "filename", "f", nil, "file or directory of manifests, or - for stdin; may be repeated")
	f.StringVar(&flags.scenario, "scenario", "", "planning benchmark file (JSON; gzip if the name ends in .gz), or - for stdin")
	flags.live.addFlags(cmd)
	f.StringVar(&flags.cluster, "cluster-name", "cluster", "name of the EKS cluster")
	f.BoolVar(&flags.expand, "expand", false, "replace ${NAME} in the files from the environment")
	f.StringArrayVar(&flags.vars, "var", nil, "replace ${NAME} in the files, as NAME=value; may be repeated")
	f.StringVar(&flags.priceLimit, "price-limit", "", "maximum cost of all launched nodes in US dollars per hour, like JOIST_PRICE_LIMIT of the services (default: no limit)")
	formatFlag(cmd, &flags.format, "table", "wide", "json")
	return cmd
}

func runPlan(cmd *cobra.Command, env Env, flags planFlags) error {
	switch {
	case flags.scenario != "" && len(flags.files) > 0:
		return usageError(errors.New("--scenario and -f exclude each other"), "--scenario or -f")
	case flags.scenario != "" && flags.priceLimit != "":
		return usageError(errors.New("--price-limit excludes --scenario: a scenario has its own limits"), "annotation "+policy.PriceLimit+" on its NodePools")
	case len(flags.files)+len(flags.scenario) > 0 && flags.live.changedFlag(cmd) != "":
		return usageError(fmt.Errorf("%s is for a running cluster, and excludes -f and --scenario", flags.live.changedFlag(cmd)), "joist plan -f nodepool.yaml -f deployment.yaml")
	case flags.scenario != "":
		return planScenario(cmd, env, flags.scenario, flags.format)
	case len(flags.files) == 0:
		return planCluster(cmd, env, flags)
	}
	return planManifests(cmd, env, flags)
}

// planCluster plans the nodes for the pending pods of the running cluster.
func planCluster(cmd *cobra.Command, env Env, flags planFlags) error {
	limit, err := parseDollars("--price-limit", flags.priceLimit)
	if err != nil {
		return err
	}
	reading, err := flags.live.readCluster(cmd, env, "joist plan -f nodepool.yaml -f deployment.yaml", limit)
	if err != nil {
		return err
	}
	running := startProgress(cmd, "planning the nodes for the pending pods")
	defer running.Stop()
	answer, err := reading.plan()
	running.Stop()
	if err != nil {
		return err
	}
	return printPlan(cmd, answer, nil, flags.format)
}

// planManifests plans the nodes for the manifests of files, with the embedded prices.
func planManifests(cmd *cobra.Command, env Env, flags planFlags) error {
	region, err := chooseRegion(env, flags.live.region)
	if err != nil {
		return err
	}
	limit, err := parseDollars("--price-limit", flags.priceLimit)
	if err != nil {
		return err
	}
	vars, err := collectVars(env, flags)
	if err != nil {
		return err
	}
	documents, err := readManifests(cmd.InOrStdin(), flags.files, vars)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(documents, isPlanned) {
		return usageError(fmt.Errorf("no NodePool, workload, Pod or Node in %s", strings.Join(flags.files, ", ")), "joist plan -f nodepool.yaml -f deployment.yaml")
	}
	warnings := collectWarnings(documents)
	for _, warning := range warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning: "+warning)
	}
	running := startProgress(cmd, "planning the nodes for %d objects", len(documents))
	defer running.Stop()
	answer, err := simulate.Plan(simulate.PlanRequest{
		Objects: manifest.Objects(documents), Region: region, Cluster: flags.cluster, Now: env.Now(), PriceLimit: limit,
	})
	if err != nil {
		return fmt.Errorf("planning: %w", err)
	}
	running.Stop()
	return printPlan(cmd, answer, warnings, flags.format)
}

// printPlan prints a plan, and its warnings also to stderr.
func printPlan(cmd *cobra.Command, answer simulate.PlanResult, warnings []string, format string) (err error) {
	for _, warning := range answer.Built.Plan.Warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning: "+warning.String())
	}
	shown := report.NewPlan(answer, warnings)
	if format == "json" {
		err = printJSON(cmd.OutOrStdout(), shown)
	} else {
		err = report.PrintPlan(cmd.OutOrStdout(), shown)
	}
	if err == nil && shown.HasChanges() {
		return errChanges
	}
	return err
}

// chooseRegion returns the region of the flag or, like the AWS tools, of the environment.
func chooseRegion(env Env, flag string) (string, error) {
	region := flag
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		if region == "" {
			region = env.variables()[name]
		}
	}
	known := strings.Join(catalog.Regions(), ", ")
	switch {
	case region == "":
		return "", usageError(errors.New("no region given"), "--region, with one of "+known)
	case !slices.Contains(catalog.Regions(), region):
		return "", usageError(fmt.Errorf("no prices for region %q (use %s)", region, joinChoices(catalog.Regions())), "--region "+firstNonEmpty(nearestChoice(region, catalog.Regions()), "us-east-1"))
	}
	return region, nil
}

func (env Env) variables() map[string]string {
	out := map[string]string{}
	for _, one := range env.Environ {
		name, value, _ := strings.Cut(one, "=")
		out[name] = value
	}
	return out
}

// collectVars returns the values of placeholders. --var takes precedence over the environment.
func collectVars(env Env, flags planFlags) (map[string]string, error) {
	out := map[string]string{}
	if flags.expand {
		out = env.variables()
	}
	for _, one := range flags.vars {
		name, value, ok := strings.Cut(one, "=")
		if !ok || name == "" {
			return nil, usageError(fmt.Errorf("invalid --var %q: it must be NAME=value", one), "--var CLUSTER_NAME=my-cluster")
		}
		out[name] = value
	}
	return out, nil
}

// parseDollars parses the value of a flag in US dollars per hour, or returns nil if it is
// empty.
func parseDollars(flag, text string) (*float64, error) {
	if text == "" {
		return nil, nil
	}
	v, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 1) {
		return nil, usageError(fmt.Errorf("invalid %s %q: it must be an amount of US dollars", flag, text), flag+" 2.50")
	}
	return &v, nil
}

// collectWarnings returns the warnings about manifests, including warnings about manifests that
// planning ignores.
func collectWarnings(documents []manifest.Document) []string {
	var out []string
	for _, d := range documents {
		if !isPlanned(d) {
			out = append(out, fmt.Sprintf("%s: %s of %s is ignored: planning does not use it", d.Place, d.Kind.Kind, d.Kind.APIVersion()))
		}
	}
	for _, warning := range manifest.Lint(documents) {
		out = append(out, warning.String())
	}
	return out
}

// isPlanned reports whether planning uses a document.
func isPlanned(d manifest.Document) bool {
	return d.Object != nil && slices.Contains(plannedKinds, d.Kind)
}

// plannedKinds are the kinds that planning uses.
var plannedKinds = []cluster.Kind{
	cluster.NodePools, cluster.NodeClasses, cluster.Nodes, cluster.CSINodes, cluster.Namespaces, cluster.PriorityClasses,
	cluster.Pods, cluster.Deployments, cluster.ReplicaSets, cluster.StatefulSets, manifest.Jobs, manifest.CronJobs, cluster.DaemonSets,
	cluster.VolumeClaims, cluster.Volumes, cluster.StorageClasses,
	cluster.DeviceClasses, cluster.ResourceSlices, cluster.ResourceClaims, manifest.ResourceClaimTemplates,
}
