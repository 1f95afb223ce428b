package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
	"github.com/joist-autoscaler/joist/services/cli/internal/facts"
	"github.com/joist-autoscaler/joist/services/cli/internal/migrate"
	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// migrateFlags are the flags of `joist migrate`.
type migrateFlags struct {
	installation doctorFlags
	live         liveFlags
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
			"It also reads the pods of the live cluster, as joist plan and joist report do, and computes for each NodePool whether\n" +
			"Joist would plan other nodes on today's pods: nodes launched for pending pods, replaced because of drift, or removed by\n" +
			"consolidation within the budgets, with the cost before and after. It lists what it could not read, with the effect.\n\n" +
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
	f.StringVar(&flags.live.region, "region", "", "AWS region of the instance types and prices (default: that of the nodes, or $AWS_REGION)")
	f.BoolVar(&flags.live.offlinePrices, "offline-prices", false, "use the prices that are embedded in the command, not those of the AWS account")
	f.DurationVar(&flags.live.timeout, "timeout", readingTimeout, "maximum time for reading the objects of the cluster, and again for reading the pods and nodes of the plan")
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
	if err := flags.live.checkTimeout(); err != nil {
		return err
	}
	sources, err := flags.installation.factSources(cmd, env)
	if err != nil {
		return err
	}
	if sources.Kube, err = env.openCluster(flags.installation.kube); err != nil {
		return err
	}
	// A migration does not depend on the documents in the bucket and the programs of this machine.
	sources.Store, sources.Run, sources.ClusterTimeout = nil, nil, flags.live.timeout
	shown := startProgress(cmd, "reading cluster %s", sources.Plan.Cluster)
	known := facts.GatherMigration(cmd.Context(), sources, env.findJoistNamespace(cmd.Context(), sources.Kube, flags.controller))
	shown.Stop()
	if cmd.Context().Err() != nil {
		return errReadInterrupted
	}
	if s, unread := known.Unread[migrate.NodePools]; unread && s.Subject == facts.WholeCluster {
		return fault.F("reading cluster "+sources.Plan.Cluster, fault.Retry, "%s", s.Reason).WithHint("%s", firstNonEmpty(s.Fix, "check with kubectl get nodes"))
	}
	if err := flags.addPlan(cmd, env, &known); err != nil {
		return err
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

// addPlan plans today's pods and nodes of the live cluster. If the cluster cannot be read, the step is unknown.
func (m *migrateFlags) addPlan(cmd *cobra.Command, env Env, known *migrate.MigrationFacts) error {
	m.live.kubeconfig, m.live.context = m.installation.kube.kubeconfig, m.installation.kube.context
	var err error
	if known.Plan, err = m.planToday(cmd, env, *known); err == nil {
		return nil
	}
	if cmd.Context().Err() != nil {
		return errReadInterrupted
	}
	known.Unread[migrate.Today] = doctor.Skipped{Subject: string(migrate.Today), Reason: oneLine(awsfault.ErrorText(err)), Fix: firstNonEmpty(fault.FindHint(err), "joist report shows the same error alone")}
	return nil
}

// planToday computes the plan with the functions of joist plan and joist report.
func (m *migrateFlags) planToday(cmd *cobra.Command, env Env, known migrate.MigrationFacts) (*migrate.LivePlan, error) {
	m.live.listsUnread = true
	reading, err := m.live.readCluster(cmd, env, "kubectl get nodes shows whether the cluster can be read", nil)
	if err != nil {
		return nil, err
	}
	answer, err := reading.plan()
	if err != nil {
		return nil, err
	}
	asked := reading.source()
	drifted := known.MarkDrifted(&asked.Snapshot)
	costs, err := assessSource(cmd, env, asked, reading.spotToSpot)
	if err != nil {
		return nil, err
	}
	var managed []string
	for i := range asked.Snapshot.NodePools {
		managed = append(managed, asked.Snapshot.NodePools[i].Name)
	}
	out := migrate.NewLivePlan(report.NewPlan(answer, nil), costs, managed, drifted)
	return &out, nil
}

// formatText formats the report as text.
func (r migrationOutput) formatText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Cluster %s: %s.\n", r.Cluster, r.formatActive())
	b.WriteString("\nFrom Karpenter to Joist:\n" + formatSteps(r.Takeover))
	if len(r.NodePools) > 0 {
		b.WriteString("\n" + formatPools(r.NodePools))
	}
	if len(r.InstanceProfiles) > 0 {
		b.WriteString("\n" + formatProfiles(r.InstanceProfiles))
	}
	if len(r.Assumptions) > 0 {
		b.WriteString("\nAssumed: " + strings.Join(r.Assumptions, "\nAssumed: ") + "\n")
	}
	if r.Plan != nil {
		b.WriteString("\n" + formatLivePlan(r.Plan))
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
	case migrate.Both:
		return "Karpenter" + version + " and Joist act at the same time"
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

// formatProfiles lists instance profiles.
func formatProfiles(profiles []migrate.ProfileAdoption) string {
	var rows [][]string
	for _, p := range profiles {
		adopted := "no"
		if p.Adopted {
			adopted = "yes"
		}
		rows = append(rows, []string{p.Name, firstNonEmpty(p.NodeClass, "-"), p.Path, adopted, p.Detail})
	}
	return report.FormatColumns([]string{"INSTANCE PROFILE", "NODECLASS", "PATH", "ADOPTED", "DETAIL"}, rows)
}

// formatLivePlan formats what Joist would do with today's pods and nodes.
func formatLivePlan(p *migrate.LivePlan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "On today's pods, Joist would (computed on the live cluster at %s, as joist plan and joist report do):\n", p.Taken.UTC().Format("2006-01-02 15:04 MST"))
	var rows [][]string
	for i := range p.NodePools {
		one := &p.NodePools[i]
		would := "plan other nodes"
		if one.Unchanged {
			would = "plan the same nodes"
		}
		if one.KeptDrifted > 0 {
			would += fmt.Sprintf("; %d drifted kept, by a budget or another obstacle", one.KeptDrifted)
		}
		rows = append(rows, []string{
			one.Name, strconv.Itoa(one.NodesNow), strconv.Itoa(one.Launches), strconv.Itoa(len(one.Replaced)), strconv.Itoa(len(one.Consolidated)), strconv.Itoa(one.NodesAfter),
			fmt.Sprintf("$%.4f", one.PricePerHourNow), fmt.Sprintf("$%.4f", one.PricePerHourAfter), would,
		})
	}
	b.WriteString(report.FormatColumns([]string{"NODEPOOL", "NODES NOW", "FOR PENDING PODS", "DRIFT REPLACES", "CONSOLIDATION REMOVES", "NODES AFTER", "$/HOUR NOW", "$/HOUR AFTER", "JOIST WOULD"}, rows, 2, 3, 4, 5, 6, 7, 8))
	fmt.Fprintf(&b, "Pending pods: %d. All nodes: $%.4f an hour now, $%.4f after. %s.\n", p.PendingPods, p.PricePerHourNow, p.PricePerHourAfter, report.FormatPrices(p.Prices))
	for _, u := range p.Unplaced {
		fmt.Fprintf(&b, "Not planned by Joist: %s in namespace %s", formatObjects(u.Pods), u.Namespace)
		if len(u.Reasons) > 0 {
			fmt.Fprintf(&b, ": %s %s", u.Reasons[0].Rule, oneLine(u.Reasons[0].Detail))
		}
		b.WriteString("\n")
	}
	for _, u := range p.Unread {
		fmt.Fprintf(&b, "Not read: %s (%s): %s\n", u.Resource, u.Reason, u.Consequence)
	}
	for _, one := range p.Assumptions {
		b.WriteString("Assumed: " + oneLine(one) + "\n")
	}
	return b.String()
}
