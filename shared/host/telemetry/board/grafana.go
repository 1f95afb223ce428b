package board

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/host/metric"
)

// Dashboard is one of Grafana's.
type Dashboard struct {
	// Name is the file's, without its ending, and the dashboard's uid.
	Name, Title string
	rows        []string
}

// Dashboards lists Grafana's dashboards.
var Dashboards = []Dashboard{
	{"joist-overview", "Joist: pods, interruptions, disruption and cost", []string{"From pods to nodes", "From interruption to termination", "Disruption", "Cost"}},
	{"joist-health", "Joist: health", []string{"Health"}},
}

// Grafana's grid has 24 columns, and the title of a row takes one line.
const (
	grafanaWide = 8
	grafanaHigh = 8
)

type position struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

type target struct {
	Expr   string            `json:"expr"`
	Legend string            `json:"legendFormat"`
	RefID  string            `json:"refId"`
	Source map[string]string `json:"datasource"`
}

// prometheus refers to the data source that the user selects in the dashboard.
var prometheus = map[string]string{"type": "prometheus", "uid": "${datasource}"}

// Grafana is the JSON of a dashboard, for import or for a sidecar.
func Grafana(d Dashboard) ([]byte, error) {
	var panels []map[string]any
	y, id := 0, 0
	for _, row := range Rows {
		if !slices.Contains(d.rows, row.Title) {
			continue
		}
		id++
		panels = append(panels, map[string]any{
			"id": id, "type": "row", "title": row.Title, "collapsed": false, "gridPos": position{1, columns, 0, y}, "panels": []any{},
		})
		n := 0
		for _, panel := range row.Panels {
			metrics := panel.panelMetrics()
			if len(metrics) == 0 {
				continue
			}
			id++
			panels = append(panels, grafanaPanel(id, panel, metrics, position{grafanaHigh, grafanaWide, n * grafanaWide % columns, y + 1 + n*grafanaWide/columns*grafanaHigh}))
			n++
		}
		y += 1 + (n*grafanaWide+columns-1)/columns*grafanaHigh
	}
	body := map[string]any{
		"uid": d.Name, "title": d.Title, "tags": []string{"joist", "karpenter"}, "editable": true, "schemaVersion": 39, "version": 1,
		"time": map[string]string{"from": "now-6h", "to": "now"}, "refresh": "1m", "timezone": "browser", "panels": panels,
		"templating": map[string]any{"list": []map[string]any{{"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}}},
	}
	out, err := json.MarshalIndent(body, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing dashboard %s: %w", d.Name, err)
	}
	return append(out, '\n'), nil
}

func grafanaPanel(id int, panel Panel, metrics []metric.Metric, at position) map[string]any {
	var targets []target
	for _, m := range metrics {
		for _, q := range queries(m) {
			q.RefID, q.Source = string(rune('A'+len(targets))), prometheus
			targets = append(targets, q)
		}
	}
	return map[string]any{
		"id": id, "type": "timeseries", "title": panel.Title, "description": panel.Help, "gridPos": at, "datasource": prometheus, "targets": targets,
		"fieldConfig": map[string]any{
			"defaults":  map[string]any{"unit": grafanaUnit(metrics[0]), "min": 0, "custom": map[string]any{"lineWidth": 1, "fillOpacity": 10, "showPoints": "never"}},
			"overrides": []any{},
		},
		"options": map[string]any{"legend": map[string]any{"displayMode": "list", "placement": "bottom"}, "tooltip": map[string]any{"mode": "multi"}},
	}
}

func grafanaUnit(m metric.Metric) string {
	switch {
	case m.Unit == "s":
		return "s"
	case strings.HasPrefix(m.Unit, "{USD}"):
		return "currencyUSD"
	default:
		return "short"
	}
}

// queries returns the PromQL of a metric: the increase in five minutes of a counter, the
// value of a gauge (only the leader reports it), p50 and p99 of a histogram or summary.
func queries(m metric.Metric) []target {
	by, legend := "", shortName(m.Name)
	if len(m.By) > 0 {
		by = " by (" + strings.Join(m.By, ", ") + ")"
		legend += " {{" + strings.Join(m.By, "}} {{") + "}}"
	}
	switch m.Kind {
	case metric.Counter:
		return []target{{Expr: "sum" + by + " (increase(" + m.Name + "[5m])" + ofJoist(m) + ")", Legend: legend}}
	case metric.Gauge:
		return []target{{Expr: "max" + by + " (" + m.Name + ")", Legend: legend}}
	case metric.Summary:
		return []target{{Expr: "max by (quantile) (" + m.Name + `{quantile=~"0.5|0.99"})`, Legend: shortName(m.Name) + " {{quantile}}"}}
	default:
		var both []target
		for _, quantile := range []string{"0.5", "0.99"} {
			expr := fmt.Sprintf("histogram_quantile(%s, sum by (%s) (rate(%s_bucket[5m])%s))", quantile, strings.Join(append([]string{"le"}, m.By...), ", "), m.Name, ofJoist(m))
			both = append(both, target{Expr: expr, Legend: legend + " " + quantile})
		}
		return both
	}
}

// ofJoist restricts a metric that every controller exports to Joist's own processes.
func ofJoist(m metric.Metric) string {
	if strings.HasPrefix(m.Name, "joist_") || strings.HasPrefix(m.Name, "karpenter_") {
		return ""
	}
	return " and on (instance, job) " + metric.BuildInfo.Name
}
