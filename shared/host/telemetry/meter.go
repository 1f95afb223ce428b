package telemetry

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/host/telemetry/emf"
)

// meters are the instruments of the catalogue. They are Prometheus instruments, so counting is an atomic addition.
type meters struct {
	registry *prometheus.Registry
	// registerer is the registry with the constant labels of all series.
	registerer prometheus.Registerer
	// instruments are keyed by the metric's name.
	instruments map[string]instrument
	sinkCache   *messageSinkCache
	// cloudWatch buffers the cluster's values for CloudWatch; nil sends nothing.
	cloudWatch *emf.Buffer
	cluster    string
}

// instrument returns the sink of the series with the given labels.
type instrument func(labels []string) (sink, error)

// sink records the values of one series.
type sink func(value float64)

// newMeters creates the instruments, with constant labels for all series. Without constant labels they also include
// the Go and process collectors.
func newMeters(all prometheus.Labels) (meters, error) {
	m := meters{
		registry: prometheus.NewRegistry(), instruments: make(map[string]instrument, len(metric.Catalogue)),
		sinkCache: &messageSinkCache{all: map[messageLabels]*messageSinks{}},
	}
	m.registerer = prometheus.WrapRegistererWith(all, m.registry)
	if len(all) == 0 {
		m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	for _, entry := range metric.Catalogue {
		if entry.PerObject {
			continue // CollectObjects adds them at each scrape.
		}
		if err := m.addMetric(entry); err != nil {
			return meters{}, fault.E("preparing metric "+entry.Name, fault.Bug, err)
		}
	}
	return m, nil
}

func (m meters) addMetric(entry metric.Metric) error {
	labels := make([]string, 0, len(entry.Labels))
	for _, l := range entry.Labels {
		labels = append(labels, l.Name)
	}
	switch entry.Kind {
	case metric.Counter:
		all := prometheus.NewCounterVec(prometheus.CounterOpts{Name: entry.Name, Help: entry.Help}, labels)
		m.instruments[entry.Name] = func(labels []string) (sink, error) {
			one, err := all.GetMetricWithLabelValues(labels...)
			return counterSink(one), err
		}
		return m.registerer.Register(all)
	case metric.Gauge:
		all := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: entry.Name, Help: entry.Help}, labels)
		m.instruments[entry.Name] = func(labels []string) (sink, error) {
			one, err := all.GetMetricWithLabelValues(labels...)
			if err != nil {
				return nil, err
			}
			return gaugeSink(all, one, labels), nil
		}
		return m.registerer.Register(all)
	case metric.Histogram:
		return m.addObserver(entry.Name, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: entry.Name, Help: entry.Help, Buckets: entry.Buckets}, labels))
	case metric.Summary:
		return m.addObserver(entry.Name, prometheus.NewSummaryVec(prometheus.SummaryOpts{Name: entry.Name, Help: entry.Help, Objectives: quantiles}, labels))
	default:
		return fmt.Errorf("kind %q is not known", entry.Kind)
	}
}

// addObserver adds a histogram or a summary.
func (m meters) addObserver(name string, all prometheus.ObserverVec) error {
	m.instruments[name] = func(labels []string) (sink, error) {
		one, err := all.GetMetricWithLabelValues(labels...)
		if err != nil {
			return nil, err
		}
		return one.Observe, nil
	}
	return m.registerer.Register(all)
}

// gaugeSink sets a gauge. NaN deletes the series.
func gaugeSink(all *prometheus.GaugeVec, one prometheus.Gauge, labels []string) sink {
	return func(value float64) {
		if math.IsNaN(value) {
			all.DeleteLabelValues(labels...)
			return
		}
		one.Set(value)
	}
}

// quantiles are Karpenter's, with its error (Karpenter: pkg/metrics/constants.go).
var quantiles = map[float64]float64{0: .01, .5: .01, .9: .01, .99: .01, 1: .01}

// counterSink adds to a counter. It ignores negative values, at which the counter would panic.
func counterSink(c prometheus.Counter) sink {
	return func(value float64) {
		if value > 0 {
			c.Add(value)
		}
	}
}

// recordValue adds to a counter, sets a gauge or observes a value in a histogram, with the label values in the order
// of the catalogue.
func (m meters) recordValue(entry metric.Metric, value float64, labels ...string) {
	m.sinkFor(entry, labels)(value)
}

// sinkFor returns the sink of a series. With wrong labels it discards the values.
func (m meters) sinkFor(entry metric.Metric, labels []string) sink {
	values := make([]string, len(entry.Labels))
	for i := range values {
		if i < len(labels) {
			values[i] = labels[i]
		}
		if values[i] == "" && !entry.Labels[i].Bare {
			values[i] = "none"
		}
	}
	if find := m.instruments[entry.Name]; find != nil {
		if found, err := find(values); err == nil {
			return m.withCloudWatch(entry, values, found)
		}
	}
	return func(float64) {}
}

// withCloudWatch returns a sink that also buffers the value for CloudWatch, if the metric is sent there.
func (m meters) withCloudWatch(entry metric.Metric, values []string, first sink) sink {
	if m.cloudWatch == nil || entry.CloudWatch == nil {
		return first
	}
	series := cloudWatchSeries(entry, m.cluster, values)
	return func(value float64) {
		first(value)
		m.cloudWatch.AddValue(series, value)
	}
}

// cloudWatchSeries returns the CloudWatch name, unit, aggregation and dimensions of a series.
func cloudWatchSeries(entry metric.Metric, cluster string, values []string) emf.Series {
	s := emf.Series{Name: entry.Name, Unit: cloudWatchUnit(entry.Unit)}
	switch entry.Kind {
	case metric.Counter:
		s.Aggregation = emf.Sum
	case metric.Gauge:
		s.Aggregation = emf.Last
	default:
		s.Aggregation = emf.Each
	}
	for _, name := range entry.CloudWatch {
		value := cluster
		if i := slices.IndexFunc(entry.Labels, func(l metric.Label) bool { return l.Name == name }); i >= 0 {
			value = values[i]
		}
		if value == "" {
			// CloudWatch drops a metric with an empty dimension value.
			value = "none"
		}
		s.Dimensions = append(s.Dimensions, emf.Dimension{Name: name, Value: value})
	}
	return s
}

// cloudWatchUnit converts a UCUM unit to CloudWatch's name.
func cloudWatchUnit(unit string) string {
	switch {
	case unit == "s":
		return "Seconds"
	case unit == "By":
		return "Bytes"
	case strings.HasPrefix(unit, "{") && strings.HasSuffix(unit, "}"):
		return "Count"
	default:
		return "None"
	}
}

// messageLabels are the labels of the metrics of every message.
type messageLabels struct{ service, typ, disposition, kind string }

// messageSinks are the sinks of the metrics of every message. refused is nil if there was no error.
type messageSinks struct{ count, took, age, refused sink }

// messageSinkCache caches them, because finding a series costs more than counting. The catalogue bounds its size.
type messageSinkCache struct {
	mu  sync.RWMutex
	all map[messageLabels]*messageSinks
}

// messageSinksFor returns the sinks of a message with one lookup.
func (m meters) messageSinksFor(h messageLabels) *messageSinks {
	m.sinkCache.mu.RLock()
	known := m.sinkCache.all[h]
	m.sinkCache.mu.RUnlock()
	if known != nil {
		return known
	}
	made := &messageSinks{
		count: m.sinkFor(metric.MessagesHandled, []string{h.service, h.typ, h.disposition}),
		took:  m.sinkFor(metric.HandlingTime, []string{h.service, h.typ}), age: m.sinkFor(metric.QueueAge, []string{h.service, h.typ}),
	}
	if h.kind != "" {
		made.refused = m.sinkFor(metric.HandlingErrors, []string{h.service, h.kind})
	}
	m.sinkCache.mu.Lock()
	defer m.sinkCache.mu.Unlock()
	m.sinkCache.all[h] = made
	return made
}

// handler serves the metrics as text, together with those of others.
func (m meters) handler(others ...*Telemetry) http.Handler {
	all := prometheus.Gatherers{m.registry}
	for _, other := range others {
		all = append(all, other.meters.registry)
	}
	return promhttp.HandlerFor(all, promhttp.HandlerOpts{})
}
