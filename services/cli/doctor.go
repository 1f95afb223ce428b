package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
	"github.com/joist-autoscaler/joist/services/cli/internal/facts"
	"github.com/joist-autoscaler/joist/shared/awsfault"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/settings"
)

// doctorFlags are those of `joist doctor`.
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
		Short: "Find what is wrong with a cluster's installation, each with its remedy",
		Long: "Doctor checks the queues, rules, functions, roles, subnets and documents of a cluster in AWS, its Deployments, Lease,\n" +
			"CRDs and aws-auth in Kubernetes, and this machine, in at most " + facts.Limit.String() + ". It prints what is wrong and how to fix it, and\n" +
			"changes nothing. It lists what it was not allowed to check, with the permission to grant.\n\n" +
			"Exit codes: 0 no problems in what was checked, 2 there are findings, 1 an error, or nothing of AWS or of Kubernetes\n" +
			"could be checked and there are no findings (--no-kubernetes leaves Kubernetes out).",
		Example: "  joist doctor --cluster prod\n" +
			"  joist doctor --cluster prod --variable KARPENTER_VERSION -o json",
		Args: cobra.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return examine(cmd, env, flags) }
	flags.cluster.add(cmd)
	f := cmd.Flags()
	f.StringVar(&flags.nodeRole, "node-role", "", "name of the role of nodes (default: KarpenterNodeRole-NAME)")
	f.StringVar(&flags.store, "store", "", "where the services keep documents, as s3://BUCKET/PREFIX (default: $"+settings.Bucket+" and $"+settings.Prefix+", or the bucket that the stack makes)")
	flags.kube.add(cmd)
	f.StringArrayVar(&flags.variables, "variable", nil, "variable that has to be set in this shell, such as KARPENTER_VERSION for the commands of a guide; may be repeated")
	formatFlag(cmd, &flags.format, "table", "json")
	return cmd
}

// examination is what `joist doctor -o json` prints.
type examination struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Cluster    string           `json:"cluster"`
	Findings   []doctor.Finding `json:"findings"`
	Unseen     []doctor.Unseen  `json:"unseen"`
}

func examine(cmd *cobra.Command, env Env, flags doctorFlags) error {
	sources, err := flags.sources(cmd, env)
	if err != nil {
		return err
	}
	var unopened []doctor.Unseen
	if !flags.kube.offline {
		if sources.Kube, err = env.kube(flags.kube); err != nil {
			unopened = append(unopened, doctor.Unseen{What: facts.WholeCluster, Why: oneLine(awsfault.Text(err)), Fix: first(fault.HintOf(err), "--kubeconfig, or --no-kubernetes")})
		}
	}
	known, unseen := facts.Gather(cmd.Context(), sources)
	known.Environ = env.values(flags.variables)
	out := examination{apiVersion, "Examination", sources.Plan.Cluster, orEmpty(doctor.Examine(known)), orEmpty(append(unopened, unseen...))}
	incomplete := out.incomplete()
	if wholes := out.wholes(); len(wholes) == 2 || len(wholes) == 1 && flags.kube.offline {
		return incomplete // Nothing was checked but this machine.
	}
	if flags.format == "json" {
		err = printJSON(cmd.OutOrStdout(), out)
	} else {
		_, err = io.WriteString(cmd.OutOrStdout(), out.text())
	}
	switch {
	case err != nil:
		return err
	case len(out.Findings) > 0:
		return errChanges
	}
	return incomplete
}

// wholes are the entries of AWS and of Kubernetes where nothing of them could be checked.
func (e examination) wholes() []doctor.Unseen {
	var out []doctor.Unseen
	for _, u := range e.Unseen {
		if u.What == facts.WholeAWS || u.What == facts.WholeCluster {
			out = append(out, u)
		}
	}
	return out
}

// incomplete is the error of an examination that could check nothing of AWS or of Kubernetes, or nil.
func (e examination) incomplete() error {
	var why, fixes []string
	for _, u := range e.wholes() {
		why, fixes = append(why, u.What+" ("+u.Why+")"), append(fixes, u.Fix)
	}
	if len(why) == 0 {
		return nil
	}
	return fault.F("checking cluster "+e.Cluster, fault.Invalid, "could not check %s", strings.Join(why, " or ")).WithHint("%s", strings.Join(fixes, "; "))
}

// sources are what is looked at, as far as it is known without asking anybody.
func (d *doctorFlags) sources(cmd *cobra.Command, env Env) (facts.Sources, error) {
	plan, err := d.cluster.plan(cmd, env)
	if err != nil {
		return facts.Sources{}, err
	}
	s := facts.Sources{
		Plan: plan, NodeRole: first(d.nodeRole, "KarpenterNodeRole-"+plan.Prefix), AWS: env.account, Store: env.Store, Run: env.Run, Now: env.Now,
		Bucket: env.value(settings.Bucket), Prefix: first(env.value(settings.Prefix), plan.Cluster),
	}
	if d.store != "" {
		place, isS3 := strings.CutPrefix(d.store, "s3://")
		if s.Bucket, s.Prefix, _ = strings.Cut(strings.Trim(place, "/"), "/"); !isS3 || s.Bucket == "" {
			return s, usage(fmt.Errorf("%q is no place of documents", d.store), "--store s3://BUCKET/PREFIX, as the services have them in "+settings.Bucket+" and "+settings.Prefix)
		}
	}
	if s.Store == nil {
		s.Store = func(context.Context, string, string) (blob.Store, error) {
			return nil, fault.F("opening a bucket", fault.Invalid, "this build reads no buckets")
		}
	}
	return s, nil
}

// values are those of variables, of those that are not set, too.
func (e Env) values(names []string) map[string]string {
	out := map[string]string{}
	for _, name := range names {
		out[name] = e.value(name)
	}
	return out
}

// text is the examination for people.
func (e examination) text() string {
	var b strings.Builder
	problems := 0
	for _, f := range e.Findings {
		if f.Severity == doctor.Problem {
			problems++
		}
		fmt.Fprintf(&b, "%s  %s (%s)\n    %s\n    Fix: %s\n", f.Severity, f.Subject, f.Check, f.What, f.Fix)
	}
	if len(e.Unseen) > 0 {
		b.WriteString("Not checked:\n")
		for _, u := range e.Unseen {
			fmt.Fprintf(&b, "  - %s: %s\n", u.What, u.Why)
			if u.Fix != "" {
				fmt.Fprintf(&b, "    Fix: %s\n", u.Fix)
			}
		}
	}
	switch {
	case len(e.Findings) > 0:
		fmt.Fprintf(&b, "%d problems and %d warnings in cluster %s.\n", problems, len(e.Findings)-problems, e.Cluster)
	case len(e.Unseen) > 0:
		fmt.Fprintf(&b, "No problems found in what was checked of cluster %s (%d not checked).\n", e.Cluster, len(e.Unseen))
	default:
		fmt.Fprintf(&b, "No problems found in cluster %s.\n", e.Cluster)
	}
	return b.String()
}
