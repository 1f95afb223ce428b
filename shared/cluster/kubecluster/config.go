package kubecluster

import (
	"log/slog"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// The rate limits of a client, in requests per second. Evictions and Events have limits of their own, so that many of them
// delay no other call.
//
// What the API server can bear is for the API server to say: its API Priority and Fairness, which EKS does not let anyone
// turn off, queues the requests of each service account by itself and answers 429 when a queue is full, and both services
// retry those. It knows its load, and a client does not. The client's limit is for a fault of the client: it is what a plan
// for a thousand nodes needs, six writes a node within seconds. Most calls are made 32 at a time at most, so that a slow
// API server gets fewer.
const (
	QPS   = 1000
	Burst = 1000
	// PodQPS and PodBurst limit evictions, and again Events: there may be one for each pod.
	PodQPS   = 200
	PodBurst = 300
)

// Config returns the configuration for the API server from a kubeconfig file, or from the
// pod's service account if the path is empty. userAgent, such as "joist-lifecycle/v0.1.0", is
// in every request and in the API server's audit log.
func Config(kubeconfig, userAgent string) (*rest.Config, error) {
	config, err := readConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = userAgent
	return config, nil
}

func readConfig(kubeconfig string) (*rest.Config, error) {
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

// SetLogger sets the logger of client-go for the whole process. Without it client-go writes
// text to stderr.
func SetLogger(logger *slog.Logger) { klog.SetSlogLogger(logger) }
