// Package emf writes metrics as lines of JSON that CloudWatch reads from a log, or that its
// agent takes, in the embedded metric format
// (https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html).
//
// The idea: between two invocations nobody would ask a function how it does, so it says
// what it counted at the end of each, and begins at nothing again; what runs on and on says
// so each minute. The invariants:
//
//   - A counter's line has what was added since the line before, and a gauge's its last
//     value: sums over lines are right however many functions run.
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

// maxValues is how many values of one series are kept until the next line: as many as an
// invocation can have messages. Further ones are dropped.
const maxValues = 10_000

// Aggregation says what becomes of several values of one series.
type Aggregation int

// What becomes of them.
const (
	// Sum adds them.
	Sum Aggregation = iota
	// Last keeps the last.
	Last
	// Each keeps all, so that CloudWatch can tell percentiles.
	Each
)

// Dimension is one of a series.
type Dimension struct{ Name, Value string }

// Series is one metric with its dimensions.
type Series struct {
	Name string
	// Unit is CloudWatch's: Count, Seconds, Bytes or None.
	Unit        string
	Aggregation Aggregation
	Dimensions  []Dimension
}

// Buffer collects values until they are written. Its zero value is empty. It is safe for
// concurrent use.
type Buffer struct {
	// Group is the log group that an Agent is to write the lines to, which asks for one;
	// a log of one's own has its place already.
	Group string

	mu  sync.Mutex
	all map[string]*bufferedSeries
}

type bufferedSeries struct {
	Series
	values []float64
}

// AddValue notes a value of a series. What is no number, or infinite, is dropped: CloudWatch
// would drop the whole line. So is what would make a sum smaller.
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

// dimensionKey is what series of one line have in common.
func (s Series) dimensionKey() string {
	var out strings.Builder
	for _, d := range s.Dimensions {
		out.WriteString(d.Name + "\x00" + d.Value + "\x00")
	}
	return out.String()
}

func (s Series) seriesKey() string { return s.dimensionKey() + s.Name }

// TakeLines are what was collected since the last call, each ended by a line break; nothing
// where nothing was.
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

// writeGroup writes series with the same dimensions: one line, or more where a series has
// more values than a line may.
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
		// Numbers and text always encode: Add took no others.
		text, _ := json.Marshal(line)
		out.Write(append(text, '\n'))
	}
}
