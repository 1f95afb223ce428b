package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/queues"
	"github.com/joist-autoscaler/joist/shared/aws/awshttp"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// clusterFlags are the flags that select a cluster.
type clusterFlags struct {
	name, prefix, interruption string
}

func (c *clusterFlags) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.name, "cluster", "", "name of the EKS cluster (default: $"+settings.ClusterName+" or $CLUSTER_NAME)")
	f.StringVar(&c.prefix, "name-prefix", "", "prefix of the queue names, if it is not the cluster name")
	f.StringVar(&c.interruption, "interruption-queue", "", "name of the interruption queue, if it is not the cluster name (default: $"+settings.Interruptions+")")
}

// clusterName returns the name of the cluster, or "".
func (c *clusterFlags) clusterName(env Env) string {
	return firstNonEmpty(c.name, env.lookupEnv(settings.ClusterName), env.lookupEnv("CLUSTER_NAME"))
}

// topologyPlan returns the names of the cluster's queues, rules and bus.
func (c *clusterFlags) topologyPlan(cmd *cobra.Command, env Env) (topology.Plan, error) {
	of := topology.Cluster{
		Name: c.clusterName(env), Prefix: c.prefix,
		InterruptionQueue: firstNonEmpty(c.interruption, env.lookupEnv(settings.Interruptions)),
	}
	if of.Name == "" {
		return topology.Plan{}, usageError(errors.New("no cluster given"), cmd.CommandPath()+" --cluster NAME")
	}
	return topology.NewPlan(of)
}

// selectQueues returns the queues with the given service names that have a DLQ,
// or all of them if names is empty.
func selectQueues(plan topology.Plan, names []string) ([]topology.Queue, error) {
	all := plan.DeadLetters()
	if len(names) == 0 {
		return all, nil
	}
	var out []topology.Queue
	for _, name := range names {
		at := slices.IndexFunc(all, func(q topology.Queue) bool { return q.Service == name })
		if at < 0 {
			var known []string
			for _, one := range all {
				known = append(known, one.Service)
			}
			return nil, usageError(fmt.Errorf("unknown queue %q (use %s)", name, joinChoices(known)), "--queue "+firstNonEmpty(nearestChoice(name, known), known[0]))
		}
		out = append(out, all[at])
	}
	return out, nil
}

// firstNonEmpty returns the first text that is not empty.
func firstNonEmpty(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// lookupEnv returns an environment variable, or "" if it is not set.
func (e Env) lookupEnv(name string) string {
	for _, pair := range e.Environ {
		if key, value, _ := strings.Cut(pair, "="); key == name {
			return value
		}
	}
	return ""
}

// openAccount loads the AWS configuration of the caller.
func (e Env) openAccount(ctx context.Context) (aws.Config, error) {
	if e.AWS == nil {
		return aws.Config{}, fault.F("opening AWS", fault.Invalid, "this build has no AWS client")
	}
	config, err := e.AWS(ctx)
	if err != nil {
		return aws.Config{}, err
	}
	return awshttp.WithSafeBodies(config), nil
}

// openQueues returns a finder for the queues of the caller's account, and the AWS
// configuration.
func (e Env) openQueues(ctx context.Context) (queues.QueueFinder, aws.Config, error) {
	config, err := e.openAccount(ctx)
	if err != nil {
		return queues.QueueFinder{}, aws.Config{}, err
	}
	return queues.QueueFinder{Config: config, SQS: sqs.NewFromConfig(config)}, config, nil
}

// apiVersion is the version of the commands' JSON output.
const apiVersion = "cli.joist.sh/v1"

// oneLine replaces each run of white space by one blank.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
