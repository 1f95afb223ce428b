package dashboards

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// Picture is one panel, or the title of a row.
type Picture struct {
	Title      string
	Header     bool
	X, Y, W, H int
	Lines      []string
}

// demoLabels are the values that labels have in the pictures.
var demoLabels = map[string]string{
	"service": "planner", "version": "v0.1.0", "unknown": "receipt", "disposition": "delete", "kind": "stale", "capacity_type": "spot", "code": "other", "nodepool": "default", "nodeclass": "default", "condition": "ready", "terminate_first_reason": "static-at-limit", "reason": "underutilized",
	"message_type": "spot_interrupted", "type": "inventory.wanted.v1", "decision": "replace", "consolidation_type": "multi", "bucket": "RunInstances",
	"result": "ok", "resource_type": "cpu", "resource": "instance", "quantile": "0.99", "policy": "WhenEmptyOrUnderutilized", "method": "GET", "verb": "GET", "action": "ReceiveMessage", "controller": "provisioner",
}

var (
	grafanaLabel    = regexp.MustCompile(`\{\{(\w+)\}\}`)
	cloudWatchLabel = regexp.MustCompile(`\$\{PROP\('Dim\.(\w+)'\)\}`)
)

// named replaces the labels in a legend by demo values.
func named(legend string, label *regexp.Regexp) string {
	return label.ReplaceAllStringFunc(legend, func(found string) string { return demoLabels[label.FindStringSubmatch(found)[1]] })
}

// Grafana parses a Grafana dashboard.
func Grafana(text []byte) ([]Picture, error) {
	var body struct {
		Panels []struct {
			Title, Type string
			GridPos     struct{ H, W, X, Y int }
			Targets     []struct{ LegendFormat string }
		}
	}
	if err := json.Unmarshal(text, &body); err != nil {
		return nil, fmt.Errorf("reading a dashboard of Grafana: %w", err)
	}
	var all []Picture
	for _, p := range body.Panels {
		at := Picture{Title: p.Title, Header: p.Type == "row", X: p.GridPos.X, Y: p.GridPos.Y, W: p.GridPos.W, H: p.GridPos.H}
		for _, t := range p.Targets {
			at.Lines = append(at.Lines, named(t.LegendFormat, grafanaLabel))
		}
		all = append(all, at)
	}
	return all, nil
}

// CloudWatch parses the body of a CloudWatch dashboard.
func CloudWatch(text []byte) ([]Picture, error) {
	var body struct {
		Widgets []struct {
			Type                string
			X, Y, Width, Height int
			Properties          struct {
				Title, Markdown string
				Metrics         [][]any
			}
		}
	}
	if err := json.Unmarshal(text, &body); err != nil {
		return nil, fmt.Errorf("reading a dashboard of CloudWatch: %w", err)
	}
	var all []Picture
	for _, w := range body.Widgets {
		at := Picture{Title: w.Properties.Title, Header: w.Type == "text", X: w.X, Y: w.Y, W: w.Width, H: w.Height}
		if at.Header {
			at.Title = firstLine.FindStringSubmatch(w.Properties.Markdown)[1]
		}
		for _, m := range w.Properties.Metrics {
			if about, ok := m[len(m)-1].(map[string]any); ok {
				legend, _ := about["label"].(string)
				at.Lines = append(at.Lines, named(legend, cloudWatchLabel))
			}
		}
		all = append(all, at)
	}
	return all, nil
}

var firstLine = regexp.MustCompile(`^(?:## )?([^\n]*)`)
