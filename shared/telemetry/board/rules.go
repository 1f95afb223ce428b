package board

import (
	"fmt"
	"time"

	"sigs.k8s.io/yaml"
)

// site is where the pages can be read from anywhere.
const site = "https://github.com/joist-autoscaler/joist/blob/main/"

// PrometheusRule is the manifest of the alarms for those who scrape, as the Prometheus
// operator takes it.
func PrometheusRule() ([]byte, error) {
	var rules []map[string]any
	for _, w := range Watches {
		if w.Expr == "" {
			continue
		}
		severity := "warning"
		if w.Page {
			severity = "critical"
		}
		rule := map[string]any{
			"alert": "Joist" + camel(w.Name), "expr": w.Expr, "labels": map[string]string{"severity": severity},
			"annotations": map[string]string{"summary": w.Means, "description": "First: " + w.First, "runbook_url": site + w.Runbook()},
		}
		if w.For > 0 {
			rule["for"] = fmt.Sprintf("%dm", int(w.For/time.Minute))
		}
		rules = append(rules, rule)
	}
	out, err := yaml.Marshal(map[string]any{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": map[string]any{"name": "joist"},
		"spec": map[string]any{"groups": []any{map[string]any{"name": "joist", "rules": rules}}},
	})
	if err != nil {
		return nil, fmt.Errorf("writing the rules of Prometheus: %w", err)
	}
	return append([]byte("# Made of shared/telemetry/board; its test writes it with -update.\n"), out...), nil
}

// camel joins words as alerts are named: dead-letters is DeadLetters.
func camel(name string) string {
	out, upper := make([]byte, 0, len(name)), true
	for i := range len(name) {
		c := name[i]
		switch {
		case c == '-':
			upper = true
			continue
		case upper && c >= 'a' && c <= 'z':
			c -= 'a' - 'A'
		}
		out, upper = append(out, c), false
	}
	return string(out)
}
