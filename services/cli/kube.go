package cli

import (
	"context"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/deadletter"
	"github.com/joist-autoscaler/joist/services/cli/internal/kube"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/settings"
)

// kubeTime is how long Kubernetes may take to tell what letters meet.
const kubeTime = 10 * time.Second

// kubeFlags say which cluster of Kubernetes is asked.
type kubeFlags struct {
	kubeconfig, context string
	offline             bool
}

func (k *kubeFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&k.kubeconfig, "kubeconfig", "", "kubeconfig file (default: $"+settings.Kubeconfig+", or ~/.kube/config)")
	f.StringVar(&k.context, "context", "", "context of the kubeconfig (default: its current one)")
	f.BoolVar(&k.offline, "no-kubernetes", false, "do not look at Kubernetes")
}

// kube opens the cluster.
func (e Env) kube(flags kubeFlags) (kube.Reader, error) {
	if e.Kube == nil {
		return nil, fault.F("opening Kubernetes", fault.Invalid, "this build speaks to no Kubernetes")
	}
	return e.Kube(first(flags.kubeconfig, e.value(settings.Kubeconfig)), flags.context)
}

// fenceFlags say where the fence is that letters meet.
type fenceFlags struct {
	kube      kubeFlags
	namespace string
}

func (f *fenceFlags) add(cmd *cobra.Command) {
	f.kube.add(cmd)
	cmd.Flags().StringVar(&f.namespace, "namespace", "", "namespace of Joist in Kubernetes, where the outbox is that plans are held against (default: $"+settings.Namespace+", or joist)")
}

// world reads what letters meet, when the first one asks.
func (e Env) world(ctx context.Context, flags fenceFlags) func() (deadletter.World, error) {
	if flags.kube.offline || e.Kube == nil {
		return nil
	}
	return sync.OnceValues(func() (deadletter.World, error) {
		read, err := e.kube(flags.kube)
		if err != nil {
			return deadletter.World{}, err
		}
		ctx, cancel := context.WithTimeout(ctx, kubeTime)
		defer cancel()
		return deadletter.ReadWorld(ctx, read, first(flags.namespace, e.value(settings.Namespace), "joist"))
	})
}
