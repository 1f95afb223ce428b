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
// The API server limits requests itself, by its load: API Priority and Fairness, which is always on in EKS, queues the requests of
// each service account separately and answers 429 if a queue is full. Services retry these requests. The client's limit is only
// for a defect of the client. It allows the writes for a plan with a thousand nodes within seconds. Most calls are made 32 at a time
// at most, so a slow API server gets fewer.
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
