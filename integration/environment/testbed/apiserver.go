package testbed

import (
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/apiproxy"
)

// startProxies starts a proxy for each service in the cluster.
func (w *TestBed) startProxies() {
	w.Helper()
	w.Proxies = map[string]*apiproxy.Proxy{}
	for i, service := range inCluster {
		proxy, err := apiproxy.Start(w.Plane.Config, w.options.ProxySeed+uint64(i))
		w.RequireNoError(err)
		w.Cleanup(proxy.Close)
		w.Proxies[service] = proxy
	}
}

// RunWithAPIServer is RunInBackground for work that calls the API server without the proxies: it does not run while
// RestartAPIServer does.
func (w *TestBed) RunWithAPIServer(interval time.Duration, f func() error) {
	w.RunInBackground(interval, func() error {
		w.apiServer.RLock()
		defer w.apiServer.RUnlock()
		return f()
	})
}

// RestartAPIServer kills the API server and starts it again without its watch cache, and returns when it is ready.
func (w *TestBed) RestartAPIServer() {
	w.Helper()
	w.apiServer.Lock()
	defer w.apiServer.Unlock()
	w.RequireNoError(w.Plane.Restart(w.Context()))
}
