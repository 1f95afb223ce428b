package kubecluster

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// How fast a client may call, in requests per second. Evictions and Events
// may be as many again: a storm of them holds up no other call.
const (
	QPS   = 200
	Burst = 300
)

// Config reads how to reach the API server: from a kubeconfig file, or from the
// pod's own service account when the path is empty.
func Config(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fault.E("reading the pod's service account", fault.Denied, err).
				WithHint("run inside a pod with a service account, or set KUBECONFIG")
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fault.E("reading the kubeconfig "+kubeconfig, fault.Denied, err).
			WithHint("set KUBECONFIG to a file that kubectl accepts")
	}
	return config, nil
}
