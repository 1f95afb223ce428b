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
	sets       *sets
}

func newMeters() (meters, error) {
	m := meters{
		registry: prometheus.NewRegistry(),
		counters: map[string]metric.Float64Counter{}, histograms: map[string]metric.Float64Histogram{},
		sets: &sets{all: map[series]options{}},
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
	with := m.sets.of(entry, labels)
	if counter, ok := m.counters[entry.Name]; ok {
		counter.Add(ctx, value, with.add...)
	}
	if histogram, ok := m.histograms[entry.Name]; ok {
		histogram.Record(ctx, value, with.record...)
	}
}

// series is one metric with its label values.
type series struct {
	metric string
	values [labelsMax]string
}

// labelsMax is the most labels that an entry of the catalogue has.
const labelsMax = 3

// options are what a series is recorded with.
type options struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

// sets remembers the options of each series, for making them costs more than
// recording does. The catalogue bounds how many there are.
type sets struct {
	mu  sync.RWMutex
	all map[series]options
}

func (s *sets) of(entry Metric, labels []string) options {
	key := series{metric: entry.Name}
	copy(key.values[:], labels)
	s.mu.RLock()
	known, ok := s.all[key]
	s.mu.RUnlock()
	if ok {
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
	made := options{add: []metric.AddOption{with}, record: []metric.RecordOption{with}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[key] = made
	return made
}

// handler serves the metrics as text.
func (m meters) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
