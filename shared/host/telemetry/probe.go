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

// Ports are where metrics and probes are served; 0 serves nothing.
type Ports struct {
	Metrics, Health int
}

// Probes answer whether the process is well. A nil one is always well.
type Probes struct {
	// Alive fails when only a restart helps.
	Alive func() error
	// Ready fails while the process cannot do its work.
	Ready func() error
}

// Serve listens on the ports, and serves until the context ends. Meanwhile CloudWatch is
// told each minute, where it is told at all.
func (t *Telemetry) Serve(ctx context.Context, ports Ports, probes Probes) error {
	go t.keepTelling(ctx)
	return errors.Join(
		t.listen(ctx, ports.Metrics, "METRICS_PORT", t.metrics()),
		t.listen(ctx, ports.Health, "HEALTH_PROBE_PORT", probes.handler()),
	)
}

func (t *Telemetry) metrics() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", t.meters.handler(t.others...))
	return mux
}

func (p Probes) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", answer(p.Alive))
	mux.HandleFunc("GET /readyz", answer(p.Ready))
	return mux
}

func answer(probe func() error) http.HandlerFunc {
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

func (t *Telemetry) listen(ctx context.Context, port int, variable string, handler http.Handler) error {
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
			t.Trouble().Happened(time.Now(), fmt.Errorf("serving on port %d: %w", port, err))
		}
	}()
	return nil
}

// Pulse tells whether something still moves.
type Pulse struct {
	// Name is what moves, Limit how long it may stand still.
	Name  string
	Limit time.Duration
	last  atomic.Int64
}

// Beat notes that it moved.
func (p *Pulse) Beat() { p.last.Store(time.Now().UnixNano()) }

// Alive reports one that has stood still for too long.
func (p *Pulse) Alive() error {
	still := time.Since(time.Unix(0, p.last.Load()))
	if still > p.Limit {
		return fault.F("checking the pulse of "+p.Name, fault.Retry, "it has not moved for %s", still.Round(time.Second))
	}
	return nil
}
