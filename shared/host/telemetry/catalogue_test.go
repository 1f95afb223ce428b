package telemetry

import (
	"encoding/json"
	"math"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each entry has all that dashboards and documentation need.
func TestCatalogue(t *testing.T) {
	names := map[string]bool{}
	for _, m := range Catalogue {
		t.Run(m.Name, func(t *testing.T) {
			if names[m.Name] || !regexp.MustCompile(`^(joist|karpenter)_[a-z_]+$`).MatchString(m.Name) {
				t.Error("the name is taken or not lower_case")
			}
			names[m.Name] = true
			// Karpenter's cost gauge ends in _total, and dashboards query that name.
			if strings.HasSuffix(m.Name, "_total") != (m.Kind == Counter) && m.Name != PoolCost.Name {
				t.Error("counters end in _total, and nothing else does")
			}
			if m.Unit == "s" && !strings.HasSuffix(m.Name, "_seconds") {
				t.Error("the name does not say its unit")
			}
			if m.Unit == "" || !strings.HasSuffix(m.Help, ".") {
				t.Error("unit or help are missing")
			}
			if (m.Kind == Histogram) != (len(m.Buckets) > 0) || !slices.IsSorted(m.Buckets) {
				t.Errorf("buckets %v", m.Buckets)
			}
			series := 1
			for _, l := range m.Labels {
				if l.Help == "" || l.Max <= 0 {
					t.Errorf("label %s has no help or no bound", l.Name)
				}
				series *= l.Max
			}
			if series > 2000 {
				t.Errorf("there can be %d series", series)
			}
		})
	}
}

// Every entry is served under its own name, with its labels.
func TestCatalogueIsServed(t *testing.T) {
	m, err := newMeters(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range Catalogue {
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
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok && (strings.HasPrefix(name, "joist_") || strings.HasPrefix(name, "karpenter_")) {
			found[name] = true
		}
	}
	want := map[string]bool{}
	for _, entry := range Catalogue {
		want[entry.Name+" "+string(entry.Kind)] = true
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
	if want := `joist_events_handled_total{service="a-service",type="a-type",verdict="a-verdict"} 1`; !strings.Contains(w.Body.String(), want+"\n") {
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
	m.recordValue(Decisions, 1, "replace", "drifted", "")
	m.recordValue(Eligible, 7, "empty")
	m.recordValue(Eligible, 3, "empty")
	m.recordValue(Timeouts, 1, "multi")
	m.recordValue(Invalid, 2, "single")
	m.recordValue(QueueFailures, 1, "replace", "underutilized", "multi")
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
	m.recordValue(PoolCost, 1.5, "default")
	m.recordValue(PoolCost, 2.5, "gpu")
	m.recordValue(PoolCost, math.NaN(), "default")
	m.recordValue(PoolCost, math.NaN(), "never seen")
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
		m.recordValue(HandlingErrors, 1, "a-service", "\xff")
		m.recordValue(Metric{Name: "joist_unheard_of_total", Kind: Counter}, 1)
		m.recordValue(HandlingErrors, -1, "a-service", "bug")
		m.recordValue(HandlingErrors, 1, "a-service", "bug", "one too many")
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
	for _, m := range Catalogue {
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
			i := slices.IndexFunc(Catalogue, func(m Metric) bool { return m.Name == name })
			var want []any
			for _, d := range Catalogue[i].CloudWatch {
				want = append(want, d)
			}
			if diff := cmp.Diff([]any{want}, about["Dimensions"]); diff != "" || fields[name] != 2.0 || fields["cluster"] != "prod" || found[name] {
				t.Errorf("%s: %s\n%s", name, line, diff)
			}
			found[name] = true
		}
	}
	for _, m := range Catalogue {
		if (m.CloudWatch != nil) != found[m.Name] {
			t.Errorf("%s was sent: %t", m.Name, found[m.Name])
		}
	}
	before := out.Len()
	if told.Flush(t.Context()); out.Len() != before {
		t.Errorf("it says again what it said: %s", out.String()[before:])
	}
}

// seriesMax and insideMax limit the cost of one cluster: CloudWatch bills each combination of dimensions, 0.30 US
// dollars a month for each of the first ten thousand (https://aws.amazon.com/cloudwatch/pricing/). The services
// inside the cluster send metrics only if configured.
const (
	seriesMax = 120
	insideMax = 80
)

func TestCloudWatchIsBounded(t *testing.T) {
	series := map[bool]int{}
	for _, m := range Catalogue {
		if m.CloudWatch == nil {
			continue
		}
		if m.CloudWatch[0] != ByCluster {
			t.Errorf("%s: what is sent is of a cluster", m.Name)
		}
		product := 1
		for _, d := range m.CloudWatch[1:] {
			i := slices.IndexFunc(m.Labels, func(l Label) bool { return l.Name == d })
			if i < 0 {
				t.Fatalf("%s has no label %s", m.Name, d)
			}
			product *= m.Labels[i].Max
		}
		series[m.Inside()] += product
	}
	for inside, most := range map[bool]int{false: seriesMax, true: insideMax} {
		t.Logf("inside of the cluster %t: at most %d series", inside, series[inside])
		if series[inside] > most {
			t.Errorf("inside of the cluster %t: there can be %d series, and %d may be", inside, series[inside], most)
		}
	}
}
