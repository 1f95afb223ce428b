// Package demo plays the inflate Deployment going 0→5→0 through every service,
// over the models, in virtual time: what the README promises a stranger who has
// neither an AWS account nor a cluster. The services are the real ones; a seed
// gives the same story every time.
package demo

import (
	"context"
	"embed"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/manifest"
)

//go:embed manifests/*.yaml
var manifests embed.FS

// Command is `joist demo`.
func Command() *cobra.Command {
	var seed int64
	var verbose bool
	command := &cobra.Command{
		Use:   "demo",
		Short: "Simulate the inflate Deployment scaling 0→5→0, without an AWS account or a cluster",
		Long: "Demo runs every service of Joist in this process, with simulated Kubernetes, EC2, SQS and EventBridge,\n" +
			"in virtual time. The same seed always gives the same result.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return Play(c.Context(), c.OutOrStdout(), seed, verbose)
		},
	}
	command.Flags().Int64Var(&seed, "seed", 1, "random seed")
	command.Flags().BoolVarP(&verbose, "verbose", "v", false, "print every message that a service handles")
	return command
}

// Play tells the story of a seed.
func Play(ctx context.Context, out io.Writer, seed int64, verbose bool) error {
	w := newWatch(out, verbose)
	world, err := embedded.New(embedded.Options{
		Seed: seed, Cluster: "demo", Region: "ap-northeast-2", CacheDelay: 30 * time.Millisecond, Log: w.line,
	})
	if err != nil {
		return err
	}
	w.world = world
	if err := apply(ctx, world); err != nil {
		return err
	}
	return w.play(ctx)
}

// apply reads the manifests as a person's files are read, and applies them.
func apply(ctx context.Context, world *embedded.World) error {
	var objects []cluster.Object
	for _, name := range []string{"nodepool.yaml", "inflate.yaml"} {
		data, err := manifests.ReadFile("manifests/" + name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		documents, err := manifest.Read(name, data, manifest.Expand(map[string]string{
			"EKS_CLUSTER_NAME": world.Cluster, "KARPENTER_NODE_ROLE": world.AWS.Role,
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
	return world.Apply(ctx, objects...)
}
