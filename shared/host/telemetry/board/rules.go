package board

import (
	"fmt"
	"time"

	"sigs.k8s.io/yaml"
)

// site is the address of the repository's pages.
const site = "https://github.com/joist-autoscaler/joist/blob/main/"

// PrometheusRule returns the alerts as a manifest of the Prometheus operator.
func PrometheusRule() ([]byte, error) {
	var rules []map[string]any
	for _, w := range Alerts {
		if w.Expr == "" {
			continue
		}
		severity := "warning"
		if w.IsPage {
			severity = "critical"
		}
		rule := map[string]any{
			"alert": "Joist" + camelCase(w.Name), "expr": w.Expr, "labels": map[string]string{"severity": severity},
			"annotations": map[string]string{"summary": w.Meaning, "description": "First: " + w.FirstStep, "runbook_url": site + w.Runbook()},
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
		return nil, fmt.Errorf("encode the Prometheus rules: %w", err)
	}
	return append([]byte("# Generated from shared/host/telemetry/board by its test with -update.\n"), out...), nil
}

// camelCase converts a name to camel case: dlq-messages becomes DlqMessages.
func camelCase(name string) string {
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
