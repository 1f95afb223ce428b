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

// clusterFlags say of which cluster a verb speaks.
type clusterFlags struct {
	name, prefix, interruption string
}

func (c *clusterFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.name, "cluster", "", "name of the EKS cluster (default: $"+settings.ClusterName+" or $CLUSTER_NAME)")
	f.StringVar(&c.prefix, "name-prefix", "", "prefix of the queue names, if it is not the cluster name")
	f.StringVar(&c.interruption, "interruption-queue", "", "name of the interruption queue, if it is not the cluster name (default: $"+settings.Interruptions+")")
}

// plan names what carries the cluster's events.
func (c *clusterFlags) plan(cmd *cobra.Command, env Env) (topology.Plan, error) {
	of := topology.Cluster{
		Name: firstNonEmpty(c.name, env.lookupEnv(settings.ClusterName), env.lookupEnv("CLUSTER_NAME")), Prefix: c.prefix,
		InterruptionQueue: firstNonEmpty(c.interruption, env.lookupEnv(settings.Interruptions)),
	}
	if of.Name == "" {
		return topology.Plan{}, usageError(errors.New("no cluster given"), cmd.CommandPath()+" --cluster NAME")
	}
	return topology.Of(of)
}

// selectQueues narrows what has dead letters to those that are named: services, or the audit log.
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
			return nil, usageError(fmt.Errorf("unknown queue %q", name), "--queue with one of "+strings.Join(known, ", "))
		}
		out = append(out, all[at])
	}
	return out, nil
}

// firstNonEmpty is the first text that says something.
func firstNonEmpty(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// lookupEnv reads a variable of the environment.
func (e Env) lookupEnv(name string) string {
	for _, pair := range e.Environ {
		if key, value, _ := strings.Cut(pair, "="); key == name {
			return value
		}
	}
	return ""
}

// openAccount opens AWS as whoever runs the command.
func (e Env) openAccount(ctx context.Context) (aws.Config, error) {
	if e.AWS == nil {
		return aws.Config{}, fault.F("opening AWS", fault.Invalid, "this build has no AWS client")
	}
	config, err := e.AWS(ctx)
	if err != nil {
		return aws.Config{}, err
	}
	return awshttp.Steady(config), nil
}

// openQueues opens the queues of an account.
func (e Env) openQueues(ctx context.Context) (queues.Places, aws.Config, error) {
	config, err := e.openAccount(ctx)
	if err != nil {
		return queues.Places{}, aws.Config{}, err
	}
	return queues.Places{Config: config, SQS: sqs.NewFromConfig(config)}, config, nil
}

// apiVersion is that of the JSON which verbs print.
const apiVersion = "cli.joist.sh/v1"

// oneLine is a text without line breaks.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
