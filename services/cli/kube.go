package cli

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/deadletter"
	"github.com/joist-autoscaler/joist/services/cli/internal/kube"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// kubeTimeout bounds how long Kubernetes is read to predict the result of a replay.
const kubeTimeout = 10 * time.Second

// kubeFlags are the flags that select a Kubernetes cluster.
type kubeFlags struct {
	kubeconfig, context string
	offline             bool
}

func (k *kubeFlags) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&k.kubeconfig, "kubeconfig", "", "kubeconfig file (default: $"+settings.Kubeconfig+", or ~/.kube/config)")
	f.StringVar(&k.context, "context", "", "kubeconfig context (default: the current context)")
	f.BoolVar(&k.offline, "no-kubernetes", false, "do not read Kubernetes")
}

// openCluster opens the Kubernetes cluster.
func (e Env) openCluster(flags kubeFlags) (kube.Reader, error) {
	if e.Kube == nil {
		return nil, fault.F("opening Kubernetes", fault.Invalid, "this build has no Kubernetes client")
	}
	path := e.lookupEnv(settings.Kubeconfig)
	if strings.ContainsRune(path, filepath.ListSeparator) {
		path = "" // Without a path client-go merges the files of the variable, as kubectl does.
	}
	return e.Kube(firstNonEmpty(flags.kubeconfig, path), flags.context)
}

// clusterStateFlags are the flags that select the cluster state which predictions are checked
// against.
type clusterStateFlags struct {
	kube      kubeFlags
	namespace string
}

func (f *clusterStateFlags) addFlags(cmd *cobra.Command) {
	f.kube.addFlags(cmd)
	cmd.Flags().StringVar(&f.namespace, "namespace", "", "namespace in which Joist runs; its ConfigMap joist-outbox is read (default: $"+settings.Namespace+", or joist)")
}

// clusterStateReader returns a function that reads the cluster state at its first call, or nil
// without Kubernetes.
func (e Env) clusterStateReader(ctx context.Context, flags clusterStateFlags) func() (deadletter.ClusterState, error) {
	if flags.kube.offline || e.Kube == nil {
		return nil
	}
	return sync.OnceValues(func() (deadletter.ClusterState, error) {
		read, err := e.openCluster(flags.kube)
		if err != nil {
			return deadletter.ClusterState{}, err
		}
		ctx, cancel := context.WithTimeout(ctx, kubeTimeout)
		defer cancel()
		return deadletter.ReadClusterState(ctx, read, firstNonEmpty(flags.namespace, e.lookupEnv(settings.Namespace), "joist"))
	})
}
