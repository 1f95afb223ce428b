package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/offline"
	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/services/cli/internal/workload"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/manifest"
	"github.com/joist-autoscaler/joist/shared/policy"
)

// planFlags are those of `joist plan`.
type planFlags struct {
	files    []string
	scenario string
	region   string
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
		Use:   "plan {-f FILE... | --scenario FILE}",
		Short: "Say which nodes would be launched for the pods of some manifests, and why some find none",
		Long: "Plan reads NodePools, EC2NodeClasses and workloads from manifests and says which nodes would be launched,\n" +
			"at what price, and which pods would find no place, for which reason. It needs neither a cluster nor an\n" +
			"account: prices come with the command, and what a cluster would have found out is assumed aloud.\n\n" +
			"With --scenario it reads a planning benchmark instead, which brings its own instance types and prices, and\n" +
			"says also what planning took.\n\n" +
			"Exit codes: 0 nothing to launch and every pod has a place, 2 nodes to launch or pods without a place,\n" +
			"1 an error. With --scenario: 0 a plan was made, 1 an error.",
		Example: "  joist plan -f nodepool.yaml -f inflate.yaml --region eu-central-1\n" +
			"  " + workload.GetAll + " |\n    joist plan -f - --region eu-central-1\n" +
			"  joist plan --scenario b-1000.json -o json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usage(fmt.Errorf("plan takes its files with -f, and %q stands alone", args[0]), "joist plan -f "+args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return plan(cmd, env, flags) },
	}
	f := cmd.Flags()
	f.StringArrayVarP(&flags.files, "filename", "f", nil, "file of manifests, directory of such files, or - for stdin; may be repeated")
	f.StringVar(&flags.scenario, "scenario", "", "file of a planning benchmark as JSON, packed with gzip if its name ends in .gz, or - for stdin")
	f.StringVar(&flags.region, "region", "", "AWS region whose types and prices count (default: AWS_REGION or AWS_DEFAULT_REGION)")
	f.StringVar(&flags.cluster, "cluster-name", "cluster", "name of the EKS cluster")
	f.BoolVar(&flags.expand, "expand", false, "fill in ${NAME} in the files from the environment")
	f.StringArrayVar(&flags.vars, "var", nil, "fill in ${NAME} in the files, as NAME=value; may be repeated")
	f.StringVar(&flags.priceLimit, "price-limit", "", "what all nodes that are launched may cost together, in US dollars an hour, as JOIST_PRICE_LIMIT says it to the services (default: no limit)")
	formatFlag(cmd, &flags.format, "table", "json")
	return cmd
}

func plan(cmd *cobra.Command, env Env, flags planFlags) error {
	switch {
	case flags.scenario != "" && len(flags.files) > 0:
		return usage(errors.New("a scenario and manifests are given"), "one of --scenario and -f")
	case flags.scenario != "" && flags.priceLimit != "":
		return usage(errors.New("a scenario brings its own limits, and --price-limit is given"), "annotation "+policy.PriceLimit+" on its NodePools")
	case flags.scenario != "":
		return planScenario(cmd, env, flags.scenario, flags.format)
	case len(flags.files) == 0:
		return nothingToRead()
	}
	return planManifests(cmd, env, flags)
}

// planManifests plans for what is written in files, at the offline catalogue's prices.
func planManifests(cmd *cobra.Command, env Env, flags planFlags) error {
	region, err := regionOf(env, flags.region)
	if err != nil {
		return err
	}
	limit, err := dollarsOf("--price-limit", flags.priceLimit)
	if err != nil {
		return err
	}
	vars, err := varsOf(env, flags)
	if err != nil {
		return err
	}
	documents, err := readAll(cmd.InOrStdin(), flags.files, vars)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(documents, plans) {
		return usage(fmt.Errorf("no object of a plan is in %s: no NodePool, workload, Pod or Node", strings.Join(flags.files, ", ")), "joist plan -f nodepool.yaml -f deployment.yaml")
	}
	warnings := warningsOf(documents)
	for _, warning := range warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning: "+warning)
	}
	answer, err := offline.Ask(offline.Question{
		Objects: manifest.Objects(documents), Region: region, Cluster: flags.cluster, Now: env.Now(), PriceLimit: limit,
	})
	if err != nil {
		return fmt.Errorf("planning: %w", err)
	}
	for _, warning := range answer.Built.Plan.Warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning: "+warning.String())
	}
	shown := report.Of(answer, warnings)
	if flags.format == "json" {
		err = printJSON(cmd.OutOrStdout(), shown)
	} else {
		err = report.Table(cmd.OutOrStdout(), shown)
	}
	if err == nil && shown.Changes() {
		return errChanges
	}
	return err
}

// regionOf takes the region from the flag or, as the AWS tools do, from the
// environment.
func regionOf(env Env, flag string) (string, error) {
	region := flag
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		if region == "" {
			region = env.variables()[name]
		}
	}
	known := strings.Join(catalog.Regions(), ", ")
	switch {
	case region == "":
		return "", usage(errors.New("no region is given"), "--region, with one of "+known)
	case !slices.Contains(catalog.Regions(), region):
		return "", usage(fmt.Errorf("there are no prices of region %q", region), "--region, with one of "+known)
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

// varsOf collects what placeholders stand for; --var goes before the environment.
func varsOf(env Env, flags planFlags) (map[string]string, error) {
	out := map[string]string{}
	if flags.expand {
		out = env.variables()
	}
	for _, one := range flags.vars {
		name, value, ok := strings.Cut(one, "=")
		if !ok || name == "" {
			return nil, usage(fmt.Errorf("--var %q is no NAME=value", one), "--var CLUSTER_NAME=my-cluster")
		}
		out[name] = value
	}
	return out, nil
}

// dollarsOf reads what a flag says in US dollars an hour; nil where it says nothing.
func dollarsOf(flag, text string) (*float64, error) {
	if text == "" {
		return nil, nil
	}
	v, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 1) {
		return nil, usage(fmt.Errorf("%s %q is no amount of US dollars", flag, text), flag+" 2.50")
	}
	return &v, nil
}

// warningsOf collects what the reader warns of, and what planning leaves out.
func warningsOf(documents []manifest.Document) []string {
	var out []string
	for _, d := range documents {
		if !plans(d) {
			out = append(out, fmt.Sprintf("%s: %s of %s plays no part in planning, and is left out", d.Place, d.Kind.Kind, d.Kind.APIVersion()))
		}
	}
	for _, warning := range manifest.Lint(documents) {
		out = append(out, warning.String())
	}
	return out
}

// plans reports whether a document has a part in planning.
func plans(d manifest.Document) bool { return d.Object != nil && slices.Contains(planned, d.Kind) }

// planned are the kinds that a plan of manifests depends on.
var planned = []cluster.Kind{
	cluster.NodePools, cluster.NodeClasses, cluster.Nodes, cluster.CSINodes, cluster.Namespaces, cluster.PriorityClasses,
	cluster.Pods, cluster.Deployments, cluster.ReplicaSets, cluster.StatefulSets, manifest.Jobs, manifest.CronJobs, cluster.DaemonSets,
	cluster.VolumeClaims, cluster.Volumes, cluster.StorageClasses,
}

// nothingToRead is the error of a plan without manifests.
func nothingToRead() error {
	return usage(errors.New("no file is given"), "joist plan -f nodepool.yaml -f deployment.yaml")
}
