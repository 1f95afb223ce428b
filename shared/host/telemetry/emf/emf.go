// Package emf writes metrics as lines of JSON in the embedded metric format
// (https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html),
// which CloudWatch reads from a log or from its agent.
//
// Functions cannot be scraped, so each writes its values at the end of each invocation and starts again from zero;
// long-running processes write each minute. The invariants:
//
//   - A counter's line has the increase since the previous line, and a gauge's line its last
//     value, so sums over lines are right for any number of functions.
//   - A value is in one line. Lines keep to CloudWatch's limits: 100 values of a
//     metric, 100 metrics and 30 dimensions.
//   - The same values give the same bytes.
package emf

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// CloudWatch's limits of one line.
const (
	valuesMax  = 100
	metricsMax = 100
)

// maxValues is how many values of one series are buffered until the next line: as many as an invocation can have
// messages. Further values are dropped.
const maxValues = 10_000

// Aggregation defines how several values of one series combine.
type Aggregation int

// The aggregations.
const (
	// Sum adds them.
	Sum Aggregation = iota
	// Last keeps the last value.
	Last
	// Each keeps all values, so that CloudWatch can compute percentiles.
	Each
)

// Dimension is one dimension of a series.
type Dimension struct{ Name, Value string }

// Series is one metric with its dimensions.
type Series struct {
	Name string
	// Unit is one of CloudWatch's: Count, Seconds, Bytes or None.
	Unit        string
	Aggregation Aggregation
	Dimensions  []Dimension
}

// Buffer collects values until they are written. Its zero value is empty. It is safe for concurrent use.
type Buffer struct {
	// Group is the log group to which an agent writes the lines. It is empty for lines in the service's own log.
	Group string

	mu  sync.Mutex
	all map[string]*bufferedSeries
}

type bufferedSeries struct {
	Series
	values []float64
}

// AddValue adds a value to a series. It drops NaN and infinite values, for which CloudWatch would drop the whole
// line, and negative values of sums.
func (b *Buffer) AddValue(s Series, value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) || s.Aggregation == Sum && value < 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[string]*bufferedSeries{}
	}
	key := s.seriesKey()
	k := b.all[key]
	if k == nil {
		k = &bufferedSeries{Series: s}
		b.all[key] = k
	}
	switch {
	case len(k.values) == 0:
		k.values = append(k.values, value)
	case s.Aggregation == Sum:
		k.values[0] += value
	case s.Aggregation == Last:
		k.values[0] = value
	case len(k.values) < maxValues:
		k.values = append(k.values, value)
	}
}

// dimensionKey is equal for series that share a line.
func (s Series) dimensionKey() string {
	var out strings.Builder
	for _, d := range s.Dimensions {
		out.WriteString(d.Name + "\x00" + d.Value + "\x00")
	}
	return out.String()
}

func (s Series) seriesKey() string { return s.dimensionKey() + s.Name }

// TakeLines returns the values since the last call as lines, each with a line break, and nothing without values.
func (b *Buffer) TakeLines(namespace string, now time.Time) []byte {
	b.mu.Lock()
	all := b.all
	b.all = nil
	b.mu.Unlock()
	places := map[string][]*bufferedSeries{}
	for _, k := range all {
		places[k.dimensionKey()] = append(places[k.dimensionKey()], k)
	}
	var out bytes.Buffer
	names := make([]string, 0, len(places))
	for name := range places {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		series := places[name]
		slices.SortFunc(series, func(x, y *bufferedSeries) int { return strings.Compare(x.Name, y.Name) })
		for part := range slices.Chunk(series, metricsMax) {
			b.writeGroup(&out, namespace, now, part)
		}
	}
	return out.Bytes()
}

// definition is one metric in the header of a line.
type definition struct {
	Name string
	Unit string `json:",omitempty"`
}

// writeGroup writes series with the same dimensions: one line, or more if a series has more than 100 values.
func (b *Buffer) writeGroup(out *bytes.Buffer, namespace string, now time.Time, series []*bufferedSeries) {
	for from := 0; ; from += valuesMax {
		line, dimensions := map[string]any{}, []string{}
		for _, d := range series[0].Dimensions {
			dimensions = append(dimensions, d.Name)
			line[d.Name] = d.Value
		}
		var defined []definition
		for _, k := range series {
			if from >= len(k.values) {
				continue
			}
			defined = append(defined, definition{k.Name, k.Unit})
			if part := k.values[from:min(from+valuesMax, len(k.values))]; len(part) > 1 {
				line[k.Name] = part
			} else {
				line[k.Name] = part[0]
			}
		}
		if len(defined) == 0 {
			return
		}
		about := map[string]any{
			"Timestamp":         now.UnixMilli(),
			"CloudWatchMetrics": []any{map[string]any{"Namespace": namespace, "Dimensions": [][]string{dimensions}, "Metrics": defined}},
		}
		if b.Group != "" {
			about["LogGroupName"] = b.Group
		}
		line["_aws"] = about
		// Marshal cannot fail: AddValue accepts only finite numbers.
		text, _ := json.Marshal(line)
		out.Write(append(text, '\n'))
	}
}
