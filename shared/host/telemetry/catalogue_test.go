package telemetry

import (
	"encoding/json"
	"math"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/host/metric"
)

// Every entry is served under its own name, with its labels.
func TestCatalogueIsServed(t *testing.T) {
	m, err := newMeters(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range metric.Catalogue {
		values := make([]string, len(entry.Labels))
		for i, l := range entry.Labels {
			values[i] = "a-" + l.Name
		}
		m.recordValue(entry, 1, values...)
	}
	w := httptest.NewRecorder()
	m.handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	found := map[string]bool{}
	for line := range strings.SplitSeq(w.Body.String(), "\n") {
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok && !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			found[name] = true
		}
	}
	want := map[string]bool{}
	for _, entry := range metric.Catalogue {
		if !entry.PerObject { // TestObjectsAreServed
			want[entry.Name+" "+string(entry.Kind)] = true
		}
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
	if want := `joist_events_handled_total{disposition="a-disposition",service="a-service",type="a-type"} 1`; !strings.Contains(w.Body.String(), want+"\n") {
		t.Errorf("no line %s", want)
	}
	if !strings.Contains(w.Body.String(), "go_goroutines ") {
		t.Error("nothing of the process itself")
	}
}

// Karpenter's metrics have its exact names and labels: an empty consolidation type stays empty, and a deleted gauge
// disappears.
func TestNames(t *testing.T) {
	m, err := newMeters(nil)
	if err != nil {
		t.Fatal(err)
	}
	m.recordValue(metric.Decisions, 1, "replace", "drifted", "")
	m.recordValue(metric.Eligible, 7, "empty")
	m.recordValue(metric.Eligible, 3, "empty")
	m.recordValue(metric.Timeouts, 1, "multi")
	m.recordValue(metric.Invalid, 2, "single")
	m.recordValue(metric.QueueFailures, 1, "replace", "underutilized", "multi")
	w := httptest.NewRecorder()
	m.handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	var told []string
	for line := range strings.SplitSeq(w.Body.String(), "\n") {
		if name, ok := strings.CutPrefix(line, "karpenter_voluntary_disruption_"); ok {
			told = append(told, name)
		}
	}
	want := []string{
		`consolidation_timeouts_total{consolidation_type="multi"} 1`,
		`decisions_total{consolidation_type="",decision="replace",reason="drifted"} 1`,
		`eligible_nodes{reason="empty"} 3`,
		`failed_validations_total{consolidation_type="single"} 2`,
		`queue_failures_total{consolidation_type="multi",decision="replace",reason="underutilized"} 1`,
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

// A gauge that is set to NaN is no longer served.
func TestGaugesAreForgotten(t *testing.T) {
	m, err := newMeters(nil)
	if err != nil {
		t.Fatal(err)
	}
	m.recordValue(metric.PoolCost, 1.5, "default")
	m.recordValue(metric.PoolCost, 2.5, "gpu")
	m.recordValue(metric.PoolCost, math.NaN(), "default")
	m.recordValue(metric.PoolCost, math.NaN(), "never seen")
	w := httptest.NewRecorder()
	m.handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if body := w.Body.String(); !strings.Contains(body, "karpenter_nodepools_cost_total{nodepool=\"gpu\"} 2.5\n") || strings.Count(body, "\nkarpenter_nodepools_cost_total{") != 1 {
		t.Error(body)
	}
}

// Values with wrong labels are dropped, and later values are recorded.
func TestOddMetricsAreDropped(t *testing.T) {
	m, err := newMeters(nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		m.recordValue(metric.HandlingErrors, 1, "a-service", "\xff")
		m.recordValue(metric.Metric{Name: "joist_unheard_of_total", Kind: metric.Counter}, 1)
		m.recordValue(metric.HandlingErrors, -1, "a-service", "bug")
		m.recordValue(metric.HandlingErrors, 1, "a-service", "bug", "one too many")
	}
	w := httptest.NewRecorder()
	m.handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	var told []string
	for line := range strings.SplitSeq(w.Body.String(), "\n") {
		if strings.HasPrefix(line, "joist_") {
			told = append(told, line)
		}
	}
	if diff := cmp.Diff([]string{`joist_events_refused_total{kind="bug",service="a-service"} 2`}, told); diff != "" {
		t.Error(diff)
	}
}

// A function's counts are in its log before it is frozen, each value once, with exactly the dimensions of the
// catalogue.
func TestCloudWatchGetsWhatTheCatalogueSends(t *testing.T) {
	var out strings.Builder
	told, err := New(t.Context(), Options{Service: "planner", Cluster: "prod", Out: &out, CloudWatch: ToLog})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range metric.Catalogue {
		values := make([]string, len(m.Labels))
		for i, l := range m.Labels {
			values[i] = "a-" + l.Name
		}
		told.RecordMetric(m, 2, values...)
	}
	told.Flush(t.Context())
	found := map[string]bool{}
	for line := range strings.SplitSeq(strings.TrimSpace(out.String()), "\n") {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		about := fields["_aws"].(map[string]any)["CloudWatchMetrics"].([]any)[0].(map[string]any)
		for _, defined := range about["Metrics"].([]any) {
			name := defined.(map[string]any)["Name"].(string)
			i := slices.IndexFunc(metric.Catalogue, func(m metric.Metric) bool { return m.Name == name })
			var want []any
			for _, d := range metric.Catalogue[i].CloudWatch {
				want = append(want, d)
			}
			if diff := cmp.Diff([]any{want}, about["Dimensions"]); diff != "" || fields[name] != 2.0 || fields["cluster"] != "prod" || found[name] {
				t.Errorf("%s: %s\n%s", name, line, diff)
			}
			found[name] = true
		}
	}
	for _, m := range metric.Catalogue {
		if (m.CloudWatch != nil) != found[m.Name] {
			t.Errorf("%s was sent: %t", m.Name, found[m.Name])
		}
	}
	before := out.Len()
	if told.Flush(t.Context()); out.Len() != before {
		t.Errorf("it says again what it said: %s", out.String()[before:])
	}
}
