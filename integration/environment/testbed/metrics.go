package testbed

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/joist-autoscaler/joist/integration/environment/tool"
	"github.com/joist-autoscaler/joist/shared/host/profiling"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// metricsEnvironment returns the variable of a service's port of metrics, if the options ask for it.
func (w *TestBed) metricsEnvironment(service string) []string {
	w.Helper()
	if !w.options.Metrics {
		return nil
	}
	port, err := tool.FindFreePort(w.Context())
	w.RequireNoError(err)
	if w.metricsPorts == nil {
		w.metricsPorts = map[string]int{}
	}
	w.metricsPorts["joist-"+service] = port
	return []string{settings.MetricsPort + "=" + strconv.Itoa(port)}
}

// ReadMetrics reads the metrics of a service by its process name (Options.Metrics). It fails while the service starts.
func (w *TestBed) ReadMetrics(name string) (map[string]*dto.MetricFamily, error) {
	text, err := w.readMetricsPort(name, "/metrics")
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(text))
}

// ReadProfile returns the heap or goroutine profile of a service of the cluster for go tool pprof. The service needs
// ENABLE_PROFILING (Options.Environ).
func (w *TestBed) ReadProfile(name, profile string) ([]byte, error) {
	return w.readMetricsPort(name, profiling.Path+profile+"?gc=1")
}

// readMetricsPort returns the answer of a service on its port of metrics.
func (w *TestBed) readMetricsPort(name, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(w.Ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", w.metricsPorts[name], path), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading %s of %s: %w", path, name, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200s", response.Status, text)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s of %s: %w", path, name, err)
	}
	return text, nil
}
