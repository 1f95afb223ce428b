package telemetry

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/attribute"
	export "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// meters are the instruments of the catalogue.
type meters struct {
	registry   *prometheus.Registry
	provider   *sdk.MeterProvider
	counters   map[string]metric.Float64Counter
	histograms map[string]metric.Float64Histogram
	sinks      *sinks
	// ordinary has an *ordinary for each service, type and verdict.
	ordinary *sync.Map
}

func newMeters() (meters, error) {
	m := meters{
		registry: prometheus.NewRegistry(),
		counters: map[string]metric.Float64Counter{}, histograms: map[string]metric.Float64Histogram{},
		sinks: &sinks{all: map[series]*sink{}}, ordinary: &sync.Map{},
	}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	// The catalogue's names are Prometheus' own already.
	exporter, err := export.New(export.WithRegisterer(m.registry), export.WithoutScopeInfo(), export.WithoutTargetInfo(),
		export.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithoutSuffixes))
	if err != nil {
		return meters{}, fault.E("preparing metrics", fault.Bug, err)
	}
	m.provider = sdk.NewMeterProvider(sdk.WithReader(exporter))
	meter := m.provider.Meter("joist")
	for _, entry := range Catalogue {
		if err := m.add(meter, entry); err != nil {
			return meters{}, fault.E("preparing metric "+entry.Name, fault.Bug, err)
		}
	}
	return m, nil
}

func (m meters) add(meter metric.Meter, entry Metric) (err error) {
	switch entry.Kind {
	case Counter:
		m.counters[entry.Name], err = meter.Float64Counter(entry.Name, metric.WithUnit(entry.Unit), metric.WithDescription(entry.Help))
	case Histogram:
		m.histograms[entry.Name], err = meter.Float64Histogram(entry.Name, metric.WithUnit(entry.Unit), metric.WithDescription(entry.Help),
			metric.WithExplicitBucketBoundaries(entry.Buckets...))
	default:
		err = fmt.Errorf("kind %q is not known", entry.Kind)
	}
	return err
}

// record adds to a counter or notes a value in a histogram, with the label
// values in the order of the catalogue.
func (m meters) record(ctx context.Context, entry Metric, value float64, labels ...string) {
	m.of(entry, labels).record(ctx, value)
}

// series is one metric with its label values.
type series struct {
	metric string
	values [labelsMax]string
}

// labelsMax is the most labels that an entry of the catalogue has.
const labelsMax = 3

// sink is where the values of one series go.
type sink struct {
	counter   metric.Float64Counter
	add       []metric.AddOption
	histogram metric.Float64Histogram
	note      []metric.RecordOption
}

func (s *sink) record(ctx context.Context, value float64) {
	if s.counter != nil {
		s.counter.Add(ctx, value, s.add...)
	}
	if s.histogram != nil {
		s.histogram.Record(ctx, value, s.note...)
	}
}

// sinks remembers the sink of each series, for making its options costs more than
// recording does. The catalogue bounds how many there are.
type sinks struct {
	mu  sync.RWMutex
	all map[series]*sink
}

func (m meters) of(entry Metric, labels []string) *sink {
	key := series{metric: entry.Name}
	copy(key.values[:], labels)
	m.sinks.mu.RLock()
	known := m.sinks.all[key]
	m.sinks.mu.RUnlock()
	if known != nil {
		return known
	}
	set := make([]attribute.KeyValue, 0, len(entry.Labels))
	for i, label := range entry.Labels {
		text := "none"
		if i < len(labels) && labels[i] != "" {
			text = labels[i]
		}
		set = append(set, attribute.String(label.Name, text))
	}
	with := metric.WithAttributeSet(attribute.NewSet(set...))
	made := &sink{
		counter: m.counters[entry.Name], add: []metric.AddOption{with},
		histogram: m.histograms[entry.Name], note: []metric.RecordOption{with},
	}
	m.sinks.mu.Lock()
	defer m.sinks.mu.Unlock()
	m.sinks.all[key] = made
	return made
}

// ordinary are the sinks of what every message counts.
type ordinary struct{ count, took, age *sink }

// handled finds them with one look.
func (m meters) handled(service, typ, verdict string) *ordinary {
	key := [...]string{service, typ, verdict}
	if known, ok := m.ordinary.Load(key); ok {
		return known.(*ordinary)
	}
	made := &ordinary{
		count: m.of(Handled, []string{service, typ, verdict}),
		took:  m.of(Took, []string{service, typ}), age: m.of(Age, []string{service, typ}),
	}
	m.ordinary.Store(key, made)
	return made
}

// handler serves the metrics as text.
func (m meters) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
