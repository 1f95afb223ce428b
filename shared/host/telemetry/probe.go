package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// Ports are the ports of metrics and probes; 0 disables one.
type Ports struct {
	Metrics, Health int
	// Profiles serves /debug/pprof/ on the port of the metrics; nil serves none.
	Profiles http.Handler
}

// Probes check the health of the process. A nil probe always succeeds.
type Probes struct {
	// Alive fails if only a restart helps.
	Alive func() error
	// Ready fails while the process cannot do its work.
	Ready func() error
}

// Serve listens on the ports and serves until the context ends. Meanwhile it writes to CloudWatch each minute, if
// configured.
func (t *Telemetry) Serve(ctx context.Context, ports Ports, probes Probes) error {
	go t.runCloudWatch(ctx)
	return errors.Join(
		t.serveHandler(ctx, ports.Metrics, "METRICS_PORT", t.metricsHandler(ports.Profiles)),
		t.serveHandler(ctx, ports.Health, "HEALTH_PROBE_PORT", probes.handler()),
	)
}

func (t *Telemetry) metricsHandler(profiles http.Handler) http.Handler {
	mux := http.NewServeMux()
	if profiles != nil {
		mux.Handle("GET /debug/pprof/", profiles)
	}
	mux.Handle("GET /metrics", t.meters.handler(t.clusters...))
	return mux
}

func (p Probes) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", probeHandler(p.Alive))
	mux.HandleFunc("GET /readyz", probeHandler(p.Ready))
	return mux
}

func probeHandler(probe func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if probe != nil {
			if err := probe(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
		}
		fmt.Fprintln(w, "ok")
	}
}

func (t *Telemetry) serveHandler(ctx context.Context, port int, variable string, handler http.Handler) error {
	if port == 0 {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(port)))
	if err != nil {
		return fault.E(fmt.Sprintf("listening on port %d", port), fault.Invalid, err).WithHint("set %s to a free port, or to 0", variable)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			t.ErrorLog().Report(time.Now(), fmt.Errorf("serving on port %d: %w", port, err))
		}
	}()
	return nil
}

// Heartbeat detects a component that makes no progress.
type Heartbeat struct {
	// Name is the component. Limit is how long it may make no progress.
	Name  string
	Limit time.Duration
	last  atomic.Int64
}

// Record records progress.
func (p *Heartbeat) Record() { p.last.Store(time.Now().UnixNano()) }

// Check returns an error if there was no progress for longer than Limit.
func (p *Heartbeat) Check() error {
	still := time.Since(time.Unix(0, p.last.Load()))
	if still > p.Limit {
		return fault.F("checking the pulse of "+p.Name, fault.Retry, "it has not moved for %s", still.Round(time.Second))
	}
	return nil
}
