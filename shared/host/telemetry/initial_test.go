package telemetry

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/host/build"
	"github.com/joist-autoscaler/joist/shared/host/metric"
)

// The version is known, and counters that alarms use are zero from the start, in a process of one cluster and of several, so that the first
// event is an increase. This covers only a service's own counters, and sends nothing to CloudWatch.
func TestCountersBeginAtNothing(t *testing.T) {
	for service, want := range map[string][]string{
		"lifecycle": {`joist_garbage_collections_stopped_total`, `joist_dlq_messages_total{kind="poison",service="lifecycle"}`, `joist_events_refused_total{kind="bug",service="lifecycle"}`},
		"planner":   {`joist_retries_overdue_total{kind="retry",service="planner"}`, `joist_retries_overdue_total{kind="stale",service="planner"}`},
		"launcher":  {`joist_launches_paused_total{kind="denied"}`, `joist_foreign_requests_refused_total{resource="instance"}`, `joist_dispositions_failed_total{disposition="retry",service="launcher"}`},
	} {
		var out bytes.Buffer
		one, err := New(t.Context(), Options{Service: service, Cluster: "prod", Out: &out, CloudWatch: ToLog})
		if err != nil {
			t.Fatal(err)
		}
		several, err := New(t.Context(), Options{Service: service, Out: &out, CloudWatch: ToLog})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := several.ForCluster("prod"); err != nil {
			t.Fatal(err)
		}
		for name, told := range map[string]*Telemetry{"one": one, "several": several} {
			w := httptest.NewRecorder()
			told.metricsHandler(nil).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
			text := strings.NewReplacer(`cluster="prod",`, "", `{cluster="prod"}`, "").Replace(w.Body.String())
			for _, series := range want {
				if !strings.Contains(text, series+" 0\n") {
					t.Errorf("%s of %s: no series %s at 0", service, name, series)
				}
			}
			built := build.Read()
			if series := fmt.Sprintf(`joist_build_info{commit="%s",go_version="%s",service="%s",version="%s"} 1`, cmp.Or(built.Commit, "none"), built.Go, service, built.Version); strings.Count(text, series+"\n") != 1 {
				t.Errorf("%s of %s: not once %s", service, name, series)
			}
			if strings.Contains(text, "joist_instances_terminated_total") != (service == "launcher") {
				t.Errorf("%s of %s: counters that are another's, or not its own", service, name)
			}
			told.Flush(t.Context())
		}
		if out.Len() > 0 {
			t.Errorf("sent to CloudWatch: %s", out.String())
		}
	}
}

// All kinds are listed, and each entry is a counter whose last label has the values.
func TestWhatBegins(t *testing.T) {
	source, err := os.ReadFile("../../fault/fault.go")
	if err != nil {
		t.Fatal(err)
	}
	var written []string
	for _, found := range regexp.MustCompile(`Kind = "(\w+)"`).FindAllSubmatch(source, -1) {
		written = append(written, string(found[1]))
	}
	if !slices.Equal(written, toStrings(errorKinds)) {
		t.Errorf("kinds %v, want %v", errorKinds, written)
	}
	for name, values := range initialLabels {
		i := slices.IndexFunc(metric.Catalogue, func(m metric.Metric) bool { return m.Name == name })
		if i < 0 || metric.Catalogue[i].Kind != metric.Counter {
			t.Fatalf("%s is no counter", name)
		}
		switch labels := metric.Catalogue[i].Labels; {
		case len(labels) == 0 || len(labels) > 2 || len(labels) == 2 && labels[0].Name != "service":
			t.Errorf("%s has the labels %v", name, labels)
		case len(values) > labels[len(labels)-1].Max:
			t.Errorf("%s begins with %d values", name, len(values))
		}
	}
}
