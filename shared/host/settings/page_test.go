package settings_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// The page of telemetry lists every variable of OpenTelemetry with its default and its aliases.
func TestTelemetryPage(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\|([^|]*)\\|").FindAllStringSubmatch(string(text), -1) {
		documented[row[1]] = strings.Trim(row[2], " `")
	}
	listed := append(slices.Clone(settings.OpenTelemetry), settings.LogLevel, settings.MetricsPort, settings.Profiling, settings.CloudWatch)
	for _, v := range settings.Variables {
		if strings.HasPrefix(v.Name, "OTEL_") != slices.Contains(settings.OpenTelemetry, v.Name) {
			t.Errorf("%s is not in settings.OpenTelemetry", v.Name)
		}
		if !slices.Contains(listed, v.Name) {
			continue
		}
		if found, ok := documented[v.Name]; !ok || found != v.Default {
			t.Errorf("%s has the default %q on the page (%t), want %q", v.Name, found, ok, v.Default)
		}
		for _, alias := range v.Aliases {
			if strings.HasPrefix(alias, "OTEL_") && !strings.Contains(string(text), "`"+alias+"`") {
				t.Errorf("the page does not name %s", alias)
			}
		}
		delete(documented, v.Name)
	}
	if len(documented) > 0 {
		t.Errorf("the page lists unknown variables: %v", documented)
	}
}
