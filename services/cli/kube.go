package cli

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	kube       kubeFlags
	controller string
}

func (f *clusterStateFlags) addFlags(cmd *cobra.Command) {
	f.kube.addFlags(cmd)
	controllerNamespaceFlag(cmd, &f.controller, "its ConfigMap joist-outbox is read", findJoistDefault)
}

// The flags about namespaces, which mean the same in all commands.
const (
	podNamespace        = "namespace"
	controllerNamespace = "controller-namespace"
	// findJoistDefault is the default of findJoistNamespace.
	findJoistDefault = "$" + settings.Namespace + ", or that of the Deployment of lifecycle, or joist"
)

// podNamespaceFlag adds -n, which is the namespace of the pod that the command is about, as in kubectl.
func podNamespaceFlag(cmd *cobra.Command, value *string) {
	cmd.Flags().StringVarP(value, podNamespace, "n", "default", "namespace of the pod")
}

// controllerNamespaceFlag adds the flag of the namespace in which Joist or Karpenter runs. use is what the
// command reads there.
func controllerNamespaceFlag(cmd *cobra.Command, value *string, use, standard string) {
	cmd.Flags().StringVar(value, controllerNamespace, "", "namespace in which Joist or Karpenter runs: "+use+" (default: "+standard+")")
}

// findJoistNamespace returns the namespace in which Joist runs: the given one, or that of the environment, or
// that of lifecycle's Deployment, or joist if the caller may not list Deployments.
func (e Env) findJoistNamespace(ctx context.Context, read kube.Reader, given string) string {
	if named := firstNonEmpty(given, e.lookupEnv(settings.Namespace)); named != "" {
		return named
	}
	found, err := kube.List[metav1.PartialObjectMetadata](ctx, read, "/apis/apps/v1/deployments?labelSelector=app.kubernetes.io/component%3Dlifecycle")
	if err != nil || len(found) == 0 {
		return "joist"
	}
	return found[0].Namespace
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
		return deadletter.ReadClusterState(ctx, read, e.findJoistNamespace(ctx, read, flags.controller))
	})
}
