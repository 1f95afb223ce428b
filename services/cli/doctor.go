package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
	"github.com/joist-autoscaler/joist/services/cli/internal/facts"
	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// doctorFlags are the flags of `joist doctor`.
type doctorFlags struct {
	cluster         clusterFlags
	nodeRole, store string
	kube            kubeFlags
	variables       []string
	format          string
}

func doctorCommand(env Env) *cobra.Command {
	var flags doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor --cluster NAME",
		Short: "Find problems of a cluster's installation, with a fix for each",
		Long: "Doctor checks the queues, rules, functions, roles, subnets and documents of a cluster in AWS, its Deployments, Lease,\n" +
			"CRDs and aws-auth in Kubernetes, and this machine, in at most " + facts.Timeout.String() + ". It prints each problem with its fix, and changes\n" +
			"nothing. It lists the checks that it was not allowed to run, with the permission to grant.\n\n" +
			"Exit codes: 0 no problems found, 2 findings, 1 an error, or no findings while AWS or Kubernetes could not be checked\n" +
			"at all (--no-kubernetes skips Kubernetes).",
		Example: "  joist doctor --cluster prod\n" +
			"  joist doctor --cluster prod --variable KARPENTER_VERSION -o json",
		Args: cobra.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd, env, flags) }
	flags.cluster.addFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&flags.nodeRole, "node-role", "", "name of the node role (default: KarpenterNodeRole-NAME)")
	f.StringVar(&flags.store, "store", "", "s3://BUCKET/PREFIX in which the services keep documents (default: $"+settings.Bucket+" and $"+settings.Prefix+", or the bucket of the stack)")
	flags.kube.addFlags(cmd)
	f.StringArrayVar(&flags.variables, "variable", nil, "variable that must be set in this shell, such as KARPENTER_VERSION in the commands of a guide; may be repeated")
	formatFlag(cmd, &flags.format, "table", "json")
	return cmd
}

// examination is the output of `joist doctor -o json`.
type examination struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Cluster    string           `json:"cluster"`
	Findings   []doctor.Finding `json:"findings"`
	Skipped    []doctor.Skipped `json:"skipped"`
}

func runDoctor(cmd *cobra.Command, env Env, flags doctorFlags) error {
	sources, err := flags.factSources(cmd, env)
	if err != nil {
		return err
	}
	var unopened []doctor.Skipped
	if !flags.kube.offline {
		if sources.Kube, err = env.openCluster(flags.kube); err != nil {
			unopened = append(unopened, doctor.Skipped{Subject: facts.WholeCluster, Reason: oneLine(awsfault.ErrorText(err)), Fix: firstNonEmpty(fault.FindHint(err), "--kubeconfig, or --no-kubernetes")})
		}
	}
	shown := startProgress(cmd, "checking cluster %s", sources.Plan.Cluster)
	known, unseen := facts.Gather(cmd.Context(), sources)
	shown.Stop()
	if err := cmd.Context().Err(); err != nil {
		return errReadInterrupted
	}
	known.Environ = env.lookupEnvs(flags.variables)
	out := examination{apiVersion, "DoctorReport", sources.Plan.Cluster, orEmpty(doctor.Examine(known)), orEmpty(append(unopened, unseen...))}
	incomplete := out.incompleteError()
	if wholes := out.uncheckedPlatforms(); len(wholes) == 2 || len(wholes) == 1 && flags.kube.offline {
		return incomplete // Only this machine was checked.
	}
	if flags.format == "json" {
		err = printJSON(cmd.OutOrStdout(), out)
	} else {
		err = out.printText(cmd.OutOrStdout())
	}
	switch {
	case err != nil:
		return err
	case len(out.Findings) > 0:
		return errChanges
	}
	return incomplete
}

// uncheckedPlatforms returns the skipped entries for AWS as a whole or Kubernetes as a whole.
func (e examination) uncheckedPlatforms() []doctor.Skipped {
	var out []doctor.Skipped
	for _, u := range e.Skipped {
		if u.Subject == facts.WholeAWS || u.Subject == facts.WholeCluster {
			out = append(out, u)
		}
	}
	return out
}

// incompleteError returns an error if no fact about AWS, or no fact about Kubernetes, could be
// checked.
func (e examination) incompleteError() error {
	var why, fixes []string
	for _, u := range e.uncheckedPlatforms() {
		why, fixes = append(why, u.Subject+" ("+u.Reason+")"), append(fixes, u.Fix)
	}
	if len(why) == 0 {
		return nil
	}
	return fault.F("checking cluster "+e.Cluster, fault.Invalid, "could not check %s", strings.Join(why, " or ")).WithHint("%s", strings.Join(slices.DeleteFunc(fixes, func(fix string) bool { return fix == "" }), "; "))
}

// factSources returns what to check, from the flags and the environment.
func (d *doctorFlags) factSources(cmd *cobra.Command, env Env) (facts.Sources, error) {
	plan, err := d.cluster.topologyPlan(cmd, env)
	if err != nil {
		return facts.Sources{}, err
	}
	s := facts.Sources{
		Plan: plan, NodeRole: firstNonEmpty(d.nodeRole, "KarpenterNodeRole-"+plan.Prefix), AWS: env.openAccount, Store: env.Store, Run: env.Run, Now: env.Now,
		Bucket: env.lookupEnv(settings.Bucket), Prefix: firstNonEmpty(env.lookupEnv(settings.Prefix), plan.Cluster),
		NoEKS: strings.EqualFold(env.lookupEnv(settings.ControlPlane), "false"),
	}
	if d.store != "" {
		place, isS3 := strings.CutPrefix(d.store, "s3://")
		if s.Bucket, s.Prefix, _ = strings.Cut(strings.Trim(place, "/"), "/"); !isS3 || s.Bucket == "" {
			return s, usageError(fmt.Errorf("invalid --store %q: it must be s3://BUCKET/PREFIX", d.store), "--store s3://BUCKET/PREFIX, the services' "+settings.Bucket+" and "+settings.Prefix)
		}
	}
	if s.Store == nil {
		s.Store = func(context.Context, string, string) (blob.Store, error) {
			return nil, fault.F("opening a bucket", fault.Invalid, "this build has no S3 client")
		}
	}
	return s, nil
}

// lookupEnvs returns the values of environment variables, with "" for unset ones.
func (e Env) lookupEnvs(names []string) map[string]string {
	out := map[string]string{}
	for _, name := range names {
		out[name] = e.lookupEnv(name)
	}
	return out
}

// printText prints the examination as text.
func (e examination) printText(w io.Writer) error {
	var b strings.Builder
	problems := 0
	for _, f := range e.Findings {
		shade := yellow
		if f.Severity == doctor.Problem {
			problems++
			shade = red
		}
		if err := printPainted(w, paint(w, shade, string(f.Severity)), fmt.Sprintf("  %s (%s)\n    %s\n    Fix: %s\n", f.Subject, f.Check, f.Message, f.Fix)); err != nil {
			return err
		}
	}
	if len(e.Skipped) > 0 {
		b.WriteString("Not checked:\n")
		for _, u := range e.Skipped {
			fmt.Fprintf(&b, "  - %s: %s\n", u.Subject, u.Reason)
			if u.Fix != "" {
				fmt.Fprintf(&b, "    Fix: %s\n", u.Fix)
			}
		}
	}
	switch {
	case len(e.Findings) > 0:
		fmt.Fprintf(&b, "%s and %s in cluster %s%s.\n", simulate.FormatCount(problems, "problem"), simulate.FormatCount(len(e.Findings)-problems, "warning"), e.Cluster, formatSkipped(len(e.Skipped)))
	case len(e.uncheckedPlatforms()) > 0:
		fmt.Fprintf(&b, "No problems found in what could be checked of cluster %s%s.\n", e.Cluster, formatSkipped(len(e.Skipped)))
	default:
		fmt.Fprintf(&b, "No problems found in cluster %s%s.\n", e.Cluster, formatSkipped(len(e.Skipped)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// formatSkipped formats the number of checks that could not run.
func formatSkipped(n int) string {
	if n == 0 {
		return ""
	}
	return " (" + simulate.FormatCount(n, "check") + " skipped)"
}
