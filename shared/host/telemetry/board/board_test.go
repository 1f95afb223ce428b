package board_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/host/telemetry/board"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/topology"
)

var update = flag.Bool("update", false, "update the golden files")

func plan(t *testing.T) topology.Plan {
	t.Helper()
	p, err := topology.NewPlan(topology.Cluster{Name: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// golden compares with a file, or writes it.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != string(got) {
		t.Errorf("%s is not what the catalogue gives; look at the difference, then run go test ./host/telemetry/board -update in shared", file)
	}
}

func dashboard(t *testing.T, inside bool) []byte {
	t.Helper()
	body, err := board.CloudWatch(board.Cluster{Plan: plan(t), Inside: inside}, "eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestCloudWatchGolden(t *testing.T) {
	golden(t, "testdata/cloudwatch.json", dashboard(t, false))
	golden(t, "testdata/cloudwatch-inside.json", dashboard(t, true))
}

func TestAlarmsGolden(t *testing.T) {
	text, err := json.MarshalIndent(board.Alarms(board.Cluster{Plan: plan(t), Inside: true}), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/alarms.json", append(text, '\n'))
}

// deploy is the directory of the generated files.
const deploy = "../../../../deploy/"

func TestGrafanaGolden(t *testing.T) {
	for _, d := range board.Dashboards {
		text, err := board.Grafana(d)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, deploy+"grafana/"+d.Name+".json", text)
	}
}

func TestPrometheusRuleGolden(t *testing.T) {
	text, err := board.PrometheusRule()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, deploy+"grafana/alerts.yaml", text)
}

func TestPageGolden(t *testing.T) {
	golden(t, deploy+"docs/metrics.md", board.MetricsPage())
}

// Each row is on one of Grafana's dashboards, and each query names metrics of the catalogue.
func TestGrafanaShowsEveryMetric(t *testing.T) {
	shown := map[string]int{}
	for _, d := range board.Dashboards {
		text, err := board.Grafana(d)
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			Panels []struct {
				ID      int
				Targets []struct{ Expr, RefID string }
			}
		}
		if err := json.Unmarshal(text, &body); err != nil {
			t.Fatal(err)
		}
		for i, panel := range body.Panels {
			if panel.ID != i+1 {
				t.Errorf("the panel in place %d has id %d", i+1, panel.ID)
			}
			for _, q := range panel.Targets {
				if strings.Count(q.Expr, "(") != strings.Count(q.Expr, ")") || len(q.RefID) != 1 {
					t.Errorf("%+v", q)
				}
				for _, found := range metricName.FindAllString(q.Expr, -1) {
					shown[strings.TrimSuffix(found, "_bucket")]++
				}
			}
		}
	}
	for _, m := range metric.Catalogue {
		if shown[m.Name] == 0 && !m.PerObject {
			t.Errorf("%s is on no dashboard", m.Name)
		}
		delete(shown, m.Name)
	}
	if len(shown) > 0 {
		t.Errorf("Grafana asks for %v, which nothing emits", shown)
	}
}

// Every alarm has a page that begins with the first command, and every page has an alarm.
func TestEveryAlarmHasARunbook(t *testing.T) {
	pages, err := filepath.Glob(deploy + "docs/runbooks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(deploy + "docs/runbooks/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range board.Alerts {
		file := filepath.Join(deploy, "docs/runbooks", w.Name+".md")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("alarm %s has no page: %v", w.Name, err)
			continue
		}
		if begin := "# " + w.Name + "\n\n    " + w.FirstStep + "\n\n## Cause\n\n" + w.Meaning; !strings.HasPrefix(string(text), begin) {
			t.Errorf("%s does not begin with %q", file, begin)
		}
		for _, want := range []string{"\n## Check\n", "\n## Fix\n", "\n## When no action is needed\n"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s has no section %q", file, want)
			}
		}
		if entry := "- [" + w.Name + "](" + w.Name + ".md): " + w.Meaning + "\n"; !strings.Contains(string(list), entry) {
			t.Errorf("README.md of the runbooks has no line %q", entry)
		}
		pages = slices.DeleteFunc(pages, func(page string) bool { return page == file })
	}
	pages = slices.DeleteFunc(pages, func(page string) bool { return filepath.Base(page) == "README.md" })
	if len(pages) > 0 {
		t.Errorf("these pages are of no alarm: %v", pages)
	}
}

// The runbooks quote texts of logs, for which operators search. The code has these texts.
func TestRunbooksQuoteTheLogs(t *testing.T) {
	const services, host = "../../../../services/", "../.."
	for _, quoted := range []struct {
		page, text, in string
	}{
		{"garbage-collection-stopped", "collecting garbage", services + "lifecycle"},
		{"garbage-collection-stopped", "terminating instances because of a message", services + "lifecycle"},
		{"garbage-collection-stopped", "while its node is ready", services + "lifecycle"},
		{"garbage-collection-stopped", "releasing nodes without a NodeClaim", services + "lifecycle"},
		{"watcher-silent", "waiting for the watches", services + "watcher"},
		{"watcher-silent", "no catalogue is published yet", services + "watcher"},
		{"reconciles-failing", "background error", host},
		{"dispositions-failed", "disposition_error", host},
		{"clock-skew", "skew_ms", host},
	} {
		page, err := os.ReadFile(deploy + "docs/runbooks/" + quoted.page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), quoted.text) {
			t.Errorf("%s.md does not quote %q", quoted.page, quoted.text)
		}
		if !inSource(t, quoted.in, quoted.text) {
			t.Errorf("%s.md quotes %q, which is not in the code: update the page", quoted.page, quoted.text)
		}
	}
}

// inSource reports whether a string literal of a directory's Go code contains the text.
func inSource(t *testing.T, dir, text string) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || found || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		found = regexp.MustCompile(`"[^"\n]*` + regexp.QuoteMeta(text) + `[^"\n]*"`).Match(source)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var metricName = regexp.MustCompile(`\b(?:joist|karpenter|client_go|rest_client|aws_sdk_go)_[a-z_0-9]+`)

// Each metric has exactly one panel, and each panel has a metric.
func TestEachMetricHasAPanel(t *testing.T) {
	drawn := map[string]int{}
	for _, row := range board.Rows {
		for _, panel := range row.Panels {
			if drawn[panel.Title] != 0 {
				t.Errorf("there are two panels %q", panel.Title)
			}
			drawn[panel.Title] = 1
			if !strings.HasSuffix(panel.Help, ".") || row.Help == "" {
				t.Errorf("panel %q does not say what to see in it", panel.Title)
			}
		}
	}
	for _, m := range metric.Catalogue {
		if m.PerObject {
			continue // Karpenter's dashboards draw these.
		}
		if drawn[m.Panel] == 0 {
			t.Errorf("%s is drawn in %q, which is no panel", m.Name, m.Panel)
			continue
		}
		drawn[m.Panel]++
	}
	for panel, count := range drawn {
		if count == 1 && !strings.Contains(string(dashboard(t, true)), panel) {
			t.Errorf("panel %q draws nothing", panel)
		}
	}
}

// The widgets are on the grid and do not overlap.
func TestCloudWatchGrid(t *testing.T) {
	var body struct {
		Widgets []struct{ X, Y, Width, Height int }
	}
	if err := json.Unmarshal(dashboard(t, true), &body); err != nil {
		t.Fatal(err)
	}
	taken := map[[2]int]bool{}
	for _, w := range body.Widgets {
		if w.X < 0 || w.X+w.Width > 24 || w.Width == 0 || w.Height == 0 {
			t.Errorf("%+v leaves the grid", w)
		}
		for x := w.X; x < w.X+w.Width; x++ {
			for y := w.Y; y < w.Y+w.Height; y++ {
				if taken[[2]int{x, y}] {
					t.Fatalf("%+v lies on another", w)
				}
				taken[[2]int{x, y}] = true
			}
		}
	}
	if len(body.Widgets) < 20 || len(body.Widgets) > 500 {
		t.Errorf("%d widgets", len(body.Widgets))
	}
}

// The metrics of alarms exist: Joist's in the catalogue with exactly these dimensions, those
// of SQS and Lambda for queues and functions of the topology.
func TestAlarmsLookAtWhatIsEmitted(t *testing.T) {
	p := plan(t)
	names := map[string]bool{}
	for _, a := range board.Alarms(board.Cluster{Plan: p, Inside: true}) {
		if names[a.Name] || len(a.Name) > 255 || len(a.Description) > 1024 {
			t.Errorf("alarm %s: the name is taken or too long", a.Name)
		}
		names[a.Name] = true
		if len(a.Metrics) == 0 || len(a.Metrics) > 10 || (len(a.Metrics) > 1) != (a.Expression != "") || a.Datapoints > a.Periods || a.Periods == 0 {
			t.Errorf("alarm %s: %+v", a.Name, a)
		}
		for _, m := range a.Metrics {
			if a.Expression != "" && !strings.Contains(a.Expression, m.ID) {
				t.Errorf("alarm %s does not use %s", a.Name, m.ID)
			}
			if m.Period%60 != 0 || !known(p, m) {
				t.Errorf("alarm %s looks at %+v, which nothing emits", a.Name, m)
			}
		}
	}
}

func known(p topology.Plan, m board.Metric) bool {
	var dimensions []string
	for _, d := range m.Dimensions {
		dimensions = append(dimensions, d.Name)
	}
	switch m.Namespace {
	case "AWS/SQS":
		return slices.ContainsFunc(p.Queues, func(q topology.Queue) bool { return m.Dimensions[0].Value == q.Name || m.Dimensions[0].Value == q.Dead })
	case "AWS/Lambda":
		return slices.ContainsFunc(topology.ExternalServices, func(s string) bool { return m.Dimensions[0].Value == p.FunctionName(s) })
	default:
		return slices.ContainsFunc(metric.Catalogue, func(c metric.Metric) bool {
			return m.Namespace == board.Namespace && c.Name == m.Name && slices.Equal(c.CloudWatch, dimensions)
		})
	}
}

// PromQL names only metrics of the catalogue.
func TestExpressionsNameTheCatalogue(t *testing.T) {
	for _, w := range board.Alerts {
		if w.Expr == "" && len(board.Alarms(board.Cluster{Plan: plan(t), Inside: true})) == 0 {
			t.Errorf("watch %s watches nothing", w.Name)
		}
		for _, found := range metricName.FindAllString(w.Expr, -1) {
			if !slices.ContainsFunc(metric.Catalogue, func(m metric.Metric) bool {
				return found == m.Name || m.Kind == metric.Histogram && slices.Contains([]string{m.Name + "_bucket", m.Name + "_count", m.Name + "_sum"}, found)
			}) {
				t.Errorf("watch %s looks at %s, which is not in the catalogue", w.Name, found)
			}
		}
	}
}

// overdueMinutes returns the minutes with overdue attempts if the service sends a message of the type each minute for
// ten minutes, and fails at each attempt.
func overdueMinutes(service string, of event.Type) map[int]bool {
	out := map[int]bool{}
	for n := range 10 {
		sent := time.Unix(0, 0).Add(time.Duration(n) * time.Minute)
		m := queue.Message{ID: fmt.Sprint(service, n), Sent: sent, Receives: 1}
		for at := sent; ; m.Receives++ {
			kind := fault.Retry
			if at.Sub(sent) >= of.TTL() {
				kind = fault.Stale
			}
			l := host.LogLine{Message: m, Start: at, Disposition: host.DecideDisposition(fault.F("reading", kind, "no route"), m)}
			if l.IsOverdue() {
				out[int(at.Unix()/60)] = true
			}
			if kind == fault.Stale {
				break
			}
			at = at.Add(l.Disposition.RetryAfter)
		}
	}
	return out
}

// TestFailingMessagesRaiseAnAlarm: if each message of a type is retried until it expires, the alarm of its service fires
// within eight minutes, although AWS leaves such messages out of ApproximateAgeOfOldestMessage.
func TestFailingMessagesRaiseAnAlarm(t *testing.T) {
	alarms := map[string]board.Alarm{}
	for _, a := range board.Alarms(board.Cluster{Plan: plan(t)}) {
		i := slices.IndexFunc(a.Metrics, func(m board.Metric) bool { return m.Name == metric.RetriesOverdue.Name })
		if i < 0 {
			continue
		}
		m := a.Metrics[i]
		service := m.Dimensions[1].Value
		if want := fmt.Sprintf("FILL(%s,0)*%.0f]", m.ID, a.Threshold+1); !a.IsPage || m.Statistic != "Sum" || m.Period != 60 || !strings.Contains(a.Expression, want) {
			t.Errorf("%s: %+v", a.Name, a)
		}
		alarms[service] = a
	}
	for _, spec := range event.Specs {
		for _, service := range spec.Consumers {
			if !slices.Contains(topology.ExternalServices, service) {
				continue
			}
			a, minutes := alarms[service], overdueMinutes(service, spec.Type)
			fires := false
			for end := range 8 {
				breaching := 0
				for minute := max(0, end-a.Periods+1); minute <= end; minute++ {
					if minutes[minute] {
						breaching++
					}
				}
				fires = fires || a.Datapoints > 0 && breaching >= a.Datapoints
			}
			if !fires {
				t.Errorf("%s of %s: no alarm within eight minutes, overdue in the minutes %v", spec.Type, service, slices.Sorted(maps.Keys(minutes)))
			}
		}
	}
}

// A service without a leader has no series, so its alarm must not need one.
func TestNobodyLooksIsAnAlarm(t *testing.T) {
	at := slices.IndexFunc(board.Alerts, func(w board.Alert) bool { return w.Name == "reconciles-failing" })
	alarms := slices.DeleteFunc(board.Alarms(board.Cluster{Plan: plan(t), Inside: true}), func(a board.Alarm) bool { return a.Alert != "reconciles-failing" })
	if at < 0 || len(alarms) != len(topology.ClusterServices) {
		t.Fatalf("watch %d, %d alarms", at, len(alarms))
	}
	for i, service := range topology.ClusterServices {
		if want := `or label_replace(vector(0), "service", "` + service + `", "", "")`; !strings.Contains(board.Alerts[at].Expr, want) {
			t.Errorf("%s is not in %s", want, board.Alerts[at].Expr)
		}
		if a := alarms[i]; a.Missing != "breaching" || !strings.Contains(a.Expression, "FILL(m1,0) <=") {
			t.Errorf("%s: %+v", service, a)
		}
	}
}

// Without metrics of the services inside of the cluster, no alarm and no panel uses them.
func TestNothingWaitsForWhatIsNotSent(t *testing.T) {
	without, with := board.Alarms(board.Cluster{Plan: plan(t)}), board.Alarms(board.Cluster{Plan: plan(t), Inside: true})
	if len(with) <= len(without) {
		t.Errorf("%d alarms with their metrics, and %d without", len(with), len(without))
	}
	body := string(dashboard(t, false))
	for _, m := range metric.Catalogue {
		watched := slices.ContainsFunc(without, func(a board.Alarm) bool {
			return slices.ContainsFunc(a.Metrics, func(of board.Metric) bool { return of.Name == m.Name })
		})
		if m.Inside() && (watched || strings.Contains(body, `"`+m.Name+`"`)) {
			t.Errorf("%s is waited for", m.Name)
		}
		if m.Inside() && m.CloudWatch != nil && !strings.Contains(string(dashboard(t, true)), m.Name) {
			t.Errorf("%s is not drawn", m.Name)
		}
	}
}

// Two clusters of an account share no alarm.
func TestAlarmsOfTwoClusters(t *testing.T) {
	other, err := topology.NewPlan(topology.Cluster{Name: "prod-2"})
	if err != nil {
		t.Fatal(err)
	}
	ours := board.Alarms(board.Cluster{Plan: plan(t), Inside: true})
	for _, a := range board.Alarms(board.Cluster{Plan: other, Inside: true}) {
		for _, b := range ours {
			if a.Name == b.Name || slices.EqualFunc(a.Metrics, b.Metrics, func(x, y board.Metric) bool { return slices.Equal(x.Dimensions, y.Dimensions) }) {
				t.Errorf("%s of prod-2 looks at what %s of prod does", a.Name, b.Name)
			}
		}
	}
}

// Shared functions have no alarms per cluster, and their panels name all clusters.
func TestSharedFunctions(t *testing.T) {
	shared, err := topology.NewPlan(topology.Cluster{Name: "prod", Functions: "all"})
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for _, a := range board.Alarms(board.Cluster{Plan: plan(t), Inside: true}) {
		if a.Alert == "function-failing" {
			own++
		}
	}
	alarms := board.Alarms(board.Cluster{Plan: shared, Inside: true})
	if own != len(topology.ExternalServices) || len(alarms) != len(board.Alarms(board.Cluster{Plan: plan(t), Inside: true}))-own {
		t.Errorf("%d alarms, %d of own functions", len(alarms), own)
	}
	for _, a := range alarms {
		if a.Metrics[0].Namespace == "AWS/Lambda" {
			t.Errorf("%s is of a function", a.Name)
		}
	}
	body, err := board.CloudWatch(board.Cluster{Plan: shared}, "eu-west-1")
	if err != nil || !strings.Contains(string(body), `"all-joist-launcher"`) || !strings.Contains(string(body), `"launcher, of all clusters"`) {
		t.Errorf("%v\n%s", err, body)
	}
}
