package emf_test

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/host/telemetry/emf"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func in(name string, how emf.Aggregation, dimensions ...emf.Dimension) emf.Series {
	return emf.Series{Name: name, Unit: "Count", Aggregation: how, Dimensions: dimensions}
}

func TestLines(t *testing.T) {
	prod := emf.Dimension{Name: "cluster", Value: "prod"}
	for _, test := range []struct {
		name string
		add  func(b *emf.Buffer)
		want string
	}{
		{"nothing", func(*emf.Buffer) {}, ""},
		{"a counter adds, a gauge keeps the last, and the rest keeps all", func(b *emf.Buffer) {
			for _, v := range []float64{1, 2.5} {
				b.AddValue(in("sum", emf.Sum, prod), v)
				b.AddValue(in("last", emf.Last, prod), v)
				b.AddValue(in("each", emf.Each, prod), v)
			}
		}, `{"_aws":{"CloudWatchMetrics":[{"Dimensions":[["cluster"]],"Metrics":[{"Name":"each","Unit":"Count"},{"Name":"last","Unit":"Count"},{"Name":"sum","Unit":"Count"}],` +
			`"Namespace":"Joist"}],"Timestamp":1795348800000},"cluster":"prod","each":[1,2.5],"last":2.5,"sum":3.5}` + "\n"},
		{"other dimensions are another line", func(b *emf.Buffer) {
			b.AddValue(in("n", emf.Sum, prod), 1)
			b.AddValue(in("n", emf.Sum, prod, emf.Dimension{Name: "kind", Value: "bug"}), 2)
		}, `{"_aws":{"CloudWatchMetrics":[{"Dimensions":[["cluster"]],"Metrics":[{"Name":"n","Unit":"Count"}],"Namespace":"Joist"}],"Timestamp":1795348800000},"cluster":"prod","n":1}` + "\n" +
			`{"_aws":{"CloudWatchMetrics":[{"Dimensions":[["cluster","kind"]],"Metrics":[{"Name":"n","Unit":"Count"}],"Namespace":"Joist"}],"Timestamp":1795348800000},"cluster":"prod","kind":"bug","n":2}` + "\n"},
		{"NaN is dropped", func(b *emf.Buffer) {
			b.AddValue(in("n", emf.Sum), math.NaN())
			b.AddValue(in("n", emf.Each), math.Inf(-1))
			b.AddValue(in("n", emf.Sum), -1)
		}, ""},
		{"text is escaped", func(b *emf.Buffer) { b.AddValue(in("n", emf.Sum, emf.Dimension{Name: "cluster", Value: "a\"\n"}), 1) },
			`{"_aws":{"CloudWatchMetrics":[{"Dimensions":[["cluster"]],"Metrics":[{"Name":"n","Unit":"Count"}],"Namespace":"Joist"}],"Timestamp":1795348800000},"cluster":"a\"\n","n":1}` + "\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b emf.Buffer
			test.add(&b)
			if diff := cmp.Diff(test.want, string(b.TakeLines("Joist", noon))); diff != "" {
				t.Error(diff)
			}
			if left := b.TakeLines("Joist", noon); len(left) > 0 {
				t.Errorf("it says again %s", left)
			}
		})
	}
}

// No value is lost or written twice, and no line exceeds a limit.
func TestEveryValueIsInOneLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b emf.Buffer
		want := map[string]float64{}
		for range rapid.IntRange(0, 600).Draw(t, "values") {
			name := rapid.StringMatching(`[a-c]`).Draw(t, "name")
			dimension := emf.Dimension{Name: "d", Value: rapid.StringMatching(`[xy]`).Draw(t, "dimension")}
			value := float64(rapid.IntRange(1, 9).Draw(t, "value"))
			how := map[string]emf.Aggregation{"a": emf.Sum, "b": emf.Each, "c": emf.Each}[name]
			b.AddValue(in(name, how, dimension), value)
			want[name+dimension.Value] += value
		}
		got := map[string]float64{}
		for line := range bytes.SplitSeq(bytes.TrimSpace(b.TakeLines("Joist", noon)), []byte("\n")) {
			if len(line) > 0 {
				read(t, line, got)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// read adds the values that CloudWatch would take from a line.
func read(t *rapid.T, line []byte, into map[string]float64) {
	var fields map[string]json.RawMessage
	var header struct {
		CloudWatchMetrics []struct {
			Dimensions [][]string
			Metrics    []struct{ Name, Unit string }
		}
	}
	if err := json.Unmarshal(line, &fields); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(fields["_aws"], &header); err != nil || len(header.CloudWatchMetrics) != 1 {
		t.Fatal(err, header)
	}
	about := header.CloudWatchMetrics[0]
	var value string
	if err := json.Unmarshal(fields[about.Dimensions[0][0]], &value); err != nil || len(about.Metrics) > 100 {
		t.Fatal(err, about)
	}
	for _, m := range about.Metrics {
		var one float64
		var many []float64
		if json.Unmarshal(fields[m.Name], &one) == nil {
			many = []float64{one}
		} else if err := json.Unmarshal(fields[m.Name], &many); err != nil || len(many) > 100 {
			t.Fatalf("%s: %v", fields[m.Name], err)
		}
		for _, v := range many {
			into[m.Name+value] += v
		}
	}
}
