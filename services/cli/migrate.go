package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/facts"
	"github.com/joist-autoscaler/joist/services/cli/internal/migrate"
	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// migrateFlags are the flags of `joist migrate`.
type migrateFlags struct {
	installation doctorFlags
	check        bool
	controller   string
	format       string
}

func migrateCommand(env Env) *cobra.Command {
	var flags migrateFlags
	cmd := &cobra.Command{
		Use:   "migrate --check --cluster NAME",
		Short: "List the steps from Karpenter to Joist and back, with the state of each",
		Long: "Migrate --check reads a cluster that Karpenter or Joist manages and lists the steps of the takeover, in order, and of the\n" +
			"way back. It changes nothing. Each step is done, ready (with its command), blocked (with the remedy), or unknown, if a\n" +
			"permission is missing, which it names. For each NodePool it lists how many nodes are adopted, and which of them would drift.\n\n" +
			"It needs a kubeconfig. The AWS steps need the permissions of joist doctor; without credentials they are unknown.\n\n" +
			"Exit codes: 0 Joist has taken over and every step is done, 2 steps remain, 1 an error.",
		Example: "  joist migrate --check --cluster prod\n" +
			"  joist migrate --check --cluster prod -o json",
		Args: cobra.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runMigrate(cmd, env, flags) }
	f := cmd.Flags()
	f.BoolVar(&flags.check, "check", false, "list the steps and change nothing; required")
	flags.installation.cluster.addFlags(cmd)
	f.StringVar(&flags.installation.nodeRole, "node-role", "", "name of the node role (default: KarpenterNodeRole-NAME)")
	f.StringVar(&flags.installation.kube.kubeconfig, "kubeconfig", "", "kubeconfig file (default: $"+settings.Kubeconfig+", or ~/.kube/config)")
	f.StringVar(&flags.installation.kube.context, "context", "", "kubeconfig context (default: the current context)")
	controllerNamespaceFlag(cmd, &flags.controller, "the steps name it, also if Joist is not installed yet", findJoistDefault)
	formatFlag(cmd, &flags.format, "text", "json")
	return cmd
}

// migrationOutput is the output of `joist migrate --check -o json`.
type migrationOutput struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Cluster    string `json:"cluster"`
	migrate.MigrationReport
}

func runMigrate(cmd *cobra.Command, env Env, flags migrateFlags) error {
	if !flags.check {
		return usageError(errors.New("joist migrate only checks: it changes nothing"), cmd.CommandPath()+" --check")
	}
	sources, err := flags.installation.factSources(cmd, env)
	if err != nil {
		return err
	}
	if sources.Kube, err = env.openCluster(flags.installation.kube); err != nil {
		return err
	}
	// A migration does not depend on the documents in the bucket and the programs of this machine.
	sources.Store, sources.Run = nil, nil
	shown := startProgress(cmd, "reading cluster %s", sources.Plan.Cluster)
	known := facts.GatherMigration(cmd.Context(), sources, env.findJoistNamespace(cmd.Context(), sources.Kube, flags.controller))
	shown.Stop()
	if cmd.Context().Err() != nil {
		return errReadInterrupted
	}
	if s, unread := known.Unread[migrate.NodePools]; unread && s.Subject == facts.WholeCluster {
		return fault.F("reading cluster "+sources.Plan.Cluster, fault.Retry, "%s", s.Reason).WithHint("%s", firstNonEmpty(s.Fix, "check with kubectl get nodes"))
	}
	out := migrationOutput{apiVersion, "MigrationReport", sources.Plan.Cluster, migrate.Check(known)}
	if flags.format == "json" {
		err = printJSON(cmd.OutOrStdout(), out)
	} else {
		_, err = io.WriteString(cmd.OutOrStdout(), out.formatText())
	}
	if err == nil && !out.Completed() {
		return errChanges
	}
	return err
}

// formatText formats the report as text.
func (r migrationOutput) formatText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Cluster %s: %s.\n", r.Cluster, r.formatActive())
	b.WriteString("\nFrom Karpenter to Joist:\n" + formatSteps(r.Takeover))
	if len(r.NodePools) > 0 {
		b.WriteString("\n" + formatPools(r.NodePools))
	}
	b.WriteString("\nBack to Karpenter:\n" + formatSteps(r.Return))
	return b.String()
}

func (r migrationOutput) formatActive() string {
	version := ""
	if r.KarpenterVersion != "" {
		version = " " + r.KarpenterVersion
	}
	switch r.Active {
	case migrate.Karpenter:
		return "Karpenter" + version + " acts"
	case migrate.Joist:
		return "Joist acts"
	case migrate.Neither:
		return "neither Karpenter nor Joist acts"
	}
	return "whether Karpenter or Joist acts is unknown"
}

// formatSteps numbers the steps, with the remedy below each that needs one.
func formatSteps(steps []migrate.MigrationStep) string {
	var b strings.Builder
	for i, s := range steps {
		fmt.Fprintf(&b, "%3d  %-8s %s\n              %s\n", i+1, s.State, s.Step, oneLine(s.Detail))
		if len(s.Objects) > 0 && s.State != migrate.Done {
			fmt.Fprintf(&b, "              Objects: %s\n", formatObjects(s.Objects))
		}
		if s.Fix != "" {
			fmt.Fprintf(&b, "              Try: %s\n", oneLine(s.Fix))
		}
	}
	return b.String()
}

// objectsShown is the maximum number of objects that a step names in text.
const objectsShown = 5

func formatObjects(objects []string) string {
	if more := len(objects) - objectsShown; more > 0 {
		return fmt.Sprintf("%s and %d more (-o json)", strings.Join(objects[:objectsShown], ", "), more)
	}
	return strings.Join(objects, ", ")
}

func formatPools(pools []migrate.PoolAdoption) string {
	var rows [][]string
	for _, p := range pools {
		drifted := "-"
		if n := len(p.Drifted); n > 0 {
			drifted = fmt.Sprintf("%d, first %s: %s", n, p.Drifted[0].NodeClaim, p.Drifted[0].Reason)
		}
		adopted := strconv.Itoa(p.NodeClaims)
		if !p.Managed {
			adopted = "0 (other provider)"
		}
		rows = append(rows, []string{p.Name, adopted, strconv.Itoa(p.Nodes), strconv.Itoa(p.Rehashed), drifted})
	}
	return report.FormatColumns([]string{"NODEPOOL", "ADOPTED NODECLAIMS", "NODES", "NEW HASHES", "DRIFTED"}, rows)
}
