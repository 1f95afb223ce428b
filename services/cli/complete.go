package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/deadletter"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/topology"
)

const (
	// completionTimeout is the time in which a cluster or AWS must answer: the user waits.
	completionTimeout = time.Second
	// completionsMax is the maximum number of objects that are read for a completion.
	completionsMax = 500
)

// completeFlag completes the value of a flag with fixed choices.
func completeFlag(cmd *cobra.Command, flag string, choices ...string) {
	setCompletion(cmd, flag, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
}

// setCompletion completes the value of a flag, if the command has it and has no completion for it.
func setCompletion(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if _, has := cmd.GetFlagCompletionFunc(flag); !has && cmd.Flags().Lookup(flag) != nil {
		_ = cmd.RegisterFlagCompletionFunc(flag, complete) // It fails only for other flags.
	}
}

// addCompletions completes the values of the flags of all commands by the flags' names. A failure to
// read a cluster or AWS is silent: there are then no suggestions.
func (e Env) addCompletions(root *cobra.Command) {
	byFlag := map[string]cobra.CompletionFunc{
		"cluster": e.completeRemote(e.clusterNames), "context": e.completeRemote(e.contextNames),
		"pool-delete": e.completeRemote(e.poolNames), "remove": e.completeRemote(e.nodeArguments),
		"match": completeMatch, "store": cobra.FixedCompletions([]string{"s3://"}, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace),
	}
	for flag, choices := range map[string][]string{"region": catalog.Regions(), "queue": serviceNames(), "rule": {"inbox", "audit"}} {
		byFlag[flag] = cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)
	}
	for flag, extensions := range map[string][]string{
		"filename": manifestExtensions, "pool-change": manifestExtensions, "with": manifestExtensions,
		"scenario": {"json", "gz"}, "snapshot": {"json", "zst"}, "catalogue": {"json", "zst"},
	} {
		byFlag[flag] = cobra.FixedCompletions(extensions, cobra.ShellCompDirectiveFilterFileExt)
	}
	for _, flag := range []string{"var", "variable", "price-limit", "spot-storm", "rate", "canary", "limit", "days", "nodes", "from", "to", "name-prefix", "cluster-name", "node-role"} {
		byFlag[flag] = cobra.NoFileCompletions
	}
	commands := []*cobra.Command{root}
	for len(commands) > 0 {
		cmd := commands[0]
		commands = append(commands[1:], cmd.Commands()...)
		for flag, complete := range byFlag {
			setCompletion(cmd, flag, complete)
		}
		if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 && !argumentUse.MatchString(cmd.Use) {
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
}

// argumentUse matches the usage of a command with an argument.
var argumentUse = regexp.MustCompile(`^\S+ \[?[A-Za-z]`)

// manifestExtensions are the extensions of files with manifests.
var manifestExtensions = []string{"yaml", "yml", "json"}

// completeRemote completes with names that are read within completionTimeout.
func (e Env) completeRemote(read func(ctx context.Context, cmd *cobra.Command) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, written string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		found := make(chan []string, 1)
		go func() { found <- read(ctx, cmd) }()
		var names []string
		select {
		case names = <-found:
		case <-ctx.Done():
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, written) })
		slices.Sort(names)
		return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
	}
}

// serviceNames returns the services that have a DLQ, as --queue accepts them.
func serviceNames() (names []string) {
	plan, err := topology.NewPlan(topology.Cluster{Name: "cluster"})
	if err != nil {
		return nil // Not reached: the name is valid.
	}
	for _, q := range plan.DeadLetters() {
		names = append(names, q.Service)
	}
	return names
}

// completeMatch completes --match: first its fields, then the values of a field.
func completeMatch(_ *cobra.Command, _ []string, written string) ([]string, cobra.ShellCompDirective) {
	if !strings.Contains(written, "=") {
		return []string{"type=", "kind=", "origin=", "disposition=", "id=", "reason="}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	var out []string
	for _, one := range []deadletter.Disposition{deadletter.Handle, deadletter.Noop, deadletter.Stale, deadletter.Poison} {
		out = append(out, "disposition="+string(one))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// contextNames returns the contexts of the kubeconfig.
func (e Env) contextNames(_ context.Context, cmd *cobra.Command) []string {
	if e.Contexts == nil {
		return nil
	}
	return e.Contexts(flagValue(cmd, "kubeconfig"))
}

// clusterARN matches the name that aws eks update-kubeconfig gives a context.
var clusterARN = regexp.MustCompile(`^arn:[^:]*:eks:[^:]*:[^:]*:cluster/(.+)$`)

// clusterNames returns the clusters of the account and region, or else those of the kubeconfig.
func (e Env) clusterNames(ctx context.Context, cmd *cobra.Command) (names []string) {
	if config, err := e.openAccount(ctx); err == nil {
		config.RetryMaxAttempts = 1
		if listed, err := eks.NewFromConfig(config).ListClusters(ctx, &eks.ListClustersInput{MaxResults: aws.Int32(100)}); err == nil {
			return listed.Clusters
		}
	}
	for _, name := range e.contextNames(ctx, cmd) {
		if found := clusterARN.FindStringSubmatch(name); found != nil {
			names = append(names, found[1])
		}
	}
	return names
}

// nodeArguments returns node/NAME of each node that the command would read.
func (e Env) nodeArguments(ctx context.Context, cmd *cobra.Command) (out []string) {
	for _, name := range e.objectNames(ctx, cmd, cluster.Nodes) {
		out = append(out, "node/"+name)
	}
	return out
}

// poolNames returns the NodePools that the command would read.
func (e Env) poolNames(ctx context.Context, cmd *cobra.Command) []string {
	return e.objectNames(ctx, cmd, cluster.NodePools)
}

// objectNames returns the names of nodes or NodePools in the files of the command line, or else in
// the cluster of the kubeconfig.
func (e Env) objectNames(ctx context.Context, cmd *cobra.Command, kind cluster.Kind) []string {
	from := nodesFlags{scenario: flagValue(cmd, "scenario"), snapshot: flagValue(cmd, "snapshot"), store: flagValue(cmd, "store")}
	if from.countSources() > 0 {
		silent := &cobra.Command{}
		silent.SetContext(ctx)
		silent.SetErr(io.Discard)
		return from.readNames(silent, e, kind)
	}
	read, err := e.openCluster(kubeFlags{kubeconfig: flagValue(cmd, "kubeconfig"), context: flagValue(cmd, "context")})
	if err != nil {
		return nil
	}
	path := "/api/v1/nodes"
	if kind == cluster.NodePools {
		path = "/apis/" + karpenter.Group + "/v1/nodepools"
	}
	text, err := read(ctx, fmt.Sprintf("%s?limit=%d", path, completionsMax))
	if err != nil {
		return nil
	}
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
		}
	}
	if json.Unmarshal(text, &list) != nil {
		return nil
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Metadata.Name)
	}
	return names
}

// readNames returns the names of the nodes or NodePools of a source.
func (n nodesFlags) readNames(cmd *cobra.Command, env Env, kind cluster.Kind) (names []string) {
	if n.scenario == "-" {
		return nil // A completion must not consume the terminal's input.
	}
	from, err := n.readNodes(cmd, env, "")
	if err != nil {
		return nil
	}
	if kind == cluster.NodePools {
		for _, pool := range from.Snapshot.NodePools {
			names = append(names, pool.Name)
		}
		return names
	}
	for i := range from.Snapshot.Nodes {
		names = append(names, from.Snapshot.Nodes[i].Name)
	}
	return names
}

// flagValue returns the value of a flag, or "" if the command does not have it.
func flagValue(cmd *cobra.Command, name string) string {
	if f := cmd.Flags().Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}
