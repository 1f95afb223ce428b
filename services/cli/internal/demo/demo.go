// Package demo scales the inflate Deployment 0→5→0 with the real services and simulated Kubernetes,
// EC2, SQS and EventBridge, in simulated time. It needs no AWS account and no cluster. The same
// seed gives the same output.
package demo

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/manifest"
)

//go:embed manifests/*.yaml
var manifests embed.FS

// Command returns the command `joist demo`.
func Command() *cobra.Command {
	var seed int64
	var verbose bool
	var record string
	command := &cobra.Command{
		Use:   "demo",
		Short: "Simulate the inflate Deployment scaling 0→5→0, without an AWS account or a cluster",
		Long: "Demo runs every service of Joist in this process, with simulated Kubernetes, EC2, SQS and EventBridge,\n" +
			"in virtual time. The same seed always gives the same result.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return Run(c.Context(), c.OutOrStdout(), RunOptions{Seed: seed, Verbose: verbose, Record: record})
		},
	}
	command.Flags().Int64Var(&seed, "seed", 1, "random seed")
	command.Flags().BoolVarP(&verbose, "verbose", "v", false, "print every message that a service handles")
	command.Flags().StringVar(&record, "record", "", "directory to write the documents and logs of the services to, for joist explain and joist trace")
	return command
}

// RunOptions configure a run.
type RunOptions struct {
	Seed int64
	// Verbose prints every message that a service handles.
	Verbose bool
	// Record is the directory for the documents and logs; empty writes none.
	Record string
}

// Run runs the demo and prints its output.
func Run(ctx context.Context, out io.Writer, o RunOptions) error {
	w := newRunner(out, o.Verbose)
	recorder := newRecorder()
	env, err := embedded.New(embedded.Options{
		Seed: o.Seed, Cluster: "demo", Region: "ap-northeast-2", CacheDelay: 30 * time.Millisecond,
		Log: func(l host.LogLine) {
			w.recordMessage(l)
			recorder.recordLine(l)
		},
	})
	if err != nil {
		return err
	}
	w.env = env
	if err := applyManifests(ctx, env); err != nil {
		return err
	}
	err = w.runScenario(ctx)
	if o.Record == "" {
		return err
	}
	return errors.Join(err, recorder.write(ctx, env, o.Record))
}

// applyManifests reads and applies the embedded manifests.
func applyManifests(ctx context.Context, env *embedded.EmbeddedCluster) error {
	var objects []cluster.Object
	for _, name := range []string{"nodepool.yaml", "inflate.yaml"} {
		data, err := manifests.ReadFile("manifests/" + name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		documents, err := manifest.Read(name, data, manifest.Expand(map[string]string{
			"EKS_CLUSTER_NAME": env.Cluster, "KARPENTER_NODE_ROLE": env.AWS.Role,
		}))
		if err != nil {
			return err
		}
		objects = append(objects, manifest.Objects(documents)...)
	}
	for _, o := range objects {
		if kind, _ := cluster.KindOf(o); kind.Namespaced && o.GetNamespace() == "" {
			o.SetNamespace("default")
		}
	}
	return env.Apply(ctx, objects...)
}
