package lifecycle_test

import (
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle"
)

// configureService starts a new process with another configuration.
func (s *testCluster) configureService(change func(*lifecycle.Config)) {
	s.t.Helper()
	config := lifecycle.Config{
		Client: s.ClientFor("lifecycle"), Cache: s.cache, Blobs: s.blobs, Launcher: s.launcher, Cluster: clusterIdentity,
		Namespace: namespace, KarpenterNamespace: namespace, Holder: "pod-1", Region: "eu-west-1",
		Now: func() time.Time { return s.now },
	}
	change(&config)
	s.svc = lifecycle.New(config)
}
