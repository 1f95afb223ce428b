package telemetry

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/joist-autoscaler/joist/shared/host/metric"
)

// CollectObjects adds the metrics with a series for each object: collect is called at each scrape, possibly concurrently.
// Call it at most once, before Serve.
func (t *Telemetry) CollectObjects(collect func(metric.ObjectRecorder)) {
	t.meters.registry.MustRegister(objectCollector{collect: collect, descriptions: map[string]*prometheus.Desc{}}.describeAll())
}

// objectCollector computes series at each scrape. Their names and values of labels are shared between the series of an object,
// because a cluster of 5,000 nodes has 90,000 of them.
type objectCollector struct {
	collect      func(metric.ObjectRecorder)
	descriptions map[string]*prometheus.Desc
}

func (c objectCollector) describeAll() objectCollector {
	for _, m := range metric.Catalogue {
		if m.PerObject {
			c.descriptions[m.Name] = prometheus.NewDesc(m.Name, m.Help, labelNames(m), nil)
		}
	}
	return c
}

func labelNames(m metric.Metric) []string {
	out := make([]string, 0, len(m.Labels))
	for _, l := range m.Labels {
		out = append(out, l.Name)
	}
	return out
}

// Describe implements prometheus.Collector. Without descriptions the registry does not compare the labels of each series, which are
// those of the catalogue.
func (c objectCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c objectCollector) Collect(into chan<- prometheus.Metric) {
	resources := map[string]*dto.LabelPair{}
	c.collect(func(labels []string, values []metric.ObjectValue) {
		if len(values) == 0 {
			return
		}
		pairs := newPairs(values[0].Metric, labels)
		for _, v := range values {
			own := pairs
			if v.Resource != "" {
				own = withResource(pairs, resources, v.Resource)
			}
			if description := c.descriptions[v.Metric.Name]; description != nil {
				into <- &objectSeries{description: description, labels: own, value: v.Value}
			}
		}
	})
}

// resourceLabel is the label of the resource, which is not one of the object's own.
const resourceLabel = "resource_type"

// newPairs returns the object's labels, sorted by name as the registry requires.
func newPairs(m metric.Metric, values []string) []*dto.LabelPair {
	out := make([]*dto.LabelPair, 0, len(values)+1)
	for i := range m.Labels {
		if m.Labels[i].Name != resourceLabel && i < len(values) {
			out = append(out, &dto.LabelPair{Name: &m.Labels[i].Name, Value: &values[i]})
		}
	}
	slices.SortFunc(out, comparePairs)
	return out
}

func comparePairs(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) }

// withResource returns a copy of the pairs with the resource.
func withResource(pairs []*dto.LabelPair, known map[string]*dto.LabelPair, resource string) []*dto.LabelPair {
	if known[resource] == nil {
		known[resource] = &dto.LabelPair{Name: new(resourceLabel), Value: &resource}
	}
	at, _ := slices.BinarySearchFunc(pairs, known[resource], comparePairs)
	out := make([]*dto.LabelPair, 0, len(pairs)+1)
	return append(append(append(out, pairs[:at]...), known[resource]), pairs[at:]...)
}

// objectSeries is one series of one scrape.
type objectSeries struct {
	description *prometheus.Desc
	labels      []*dto.LabelPair
	value       float64
}

// Desc implements prometheus.Metric.
func (s *objectSeries) Desc() *prometheus.Desc { return s.description }

// Write implements prometheus.Metric.
func (s *objectSeries) Write(out *dto.Metric) error {
	out.Label, out.Gauge = s.labels, &dto.Gauge{Value: &s.value}
	return nil
}
