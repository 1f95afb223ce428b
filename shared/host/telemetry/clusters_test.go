package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/metric"
)

// A process that serves two clusters names the cluster in log lines (also of messages that name none), in Prometheus
// and in CloudWatch.
func TestEachClusterHasAVoice(t *testing.T) {
	var out bytes.Buffer
	both, err := New(t.Context(), Options{Service: "planner", Out: &out, Level: slog.LevelInfo, CloudWatch: ToLog})
	if err != nil {
		t.Fatal(err)
	}
	for cluster, pods := range map[string]float64{"prod": 3, "staging": 5} {
		one, err := both.ForCluster(cluster)
		if err != nil {
			t.Fatal(err)
		}
		l := line(host.Delete, "")
		l.LogFields.Cluster = ""
		one.LogMessage(l)
		one.RecordMetric(metric.BatchPods, pods)
		one.ErrorLog().Report(noon, errors.New("no route"))
	}
	both.Flush(t.Context())
	lines, sent := map[string]int{}, map[string]float64{}
	for text := range strings.SplitSeq(strings.TrimSpace(out.String()), "\n") {
		var fields map[string]any
		if err := json.Unmarshal([]byte(text), &fields); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		cluster, _ := fields["cluster"].(string)
		if word, ok := fields["msg"].(string); ok {
			lines[word+" "+cluster]++
		}
		if pods, ok := fields[metric.BatchPods.Name].(float64); ok {
			sent[cluster] = pods
		}
	}
	if diff := cmp.Diff(map[string]int{"handled prod": 1, "handled staging": 1, "background error prod": 1, "background error staging": 1}, lines); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]float64{"prod": 3, "staging": 5}, sent); diff != "" {
		t.Error(diff)
	}
	answer := httptest.NewRecorder()
	both.metricsHandler(nil).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	scraped := map[string]bool{}
	for text := range strings.SplitSeq(answer.Body.String(), "\n") {
		if strings.HasPrefix(text, metric.BatchPods.Name) || strings.HasPrefix(text, metric.MessagesHandled.Name) {
			scraped[text] = true
		}
	}
	want := []string{
		`joist_batch_pods{cluster="prod"} 3`, `joist_batch_pods{cluster="staging"} 5`,
		`joist_events_handled_total{cluster="prod",disposition="delete",service="planner",type="pods.unschedulable.v1"} 1`,
		`joist_events_handled_total{cluster="staging",disposition="delete",service="planner",type="pods.unschedulable.v1"} 1`,
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(scraped))); diff != "" || !strings.Contains(answer.Body.String(), "go_goroutines") {
		t.Error(diff)
	}
}
