package stack_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var setting = regexp.MustCompile(`--set-string ['"]([^=]+)=([^'"]*)['"]`)

// The output HelmCommand sets only values that the chart has, and all required values.
func TestHelmCommandFitsChart(t *testing.T) {
	raw, err := os.ReadFile("../../deploy/charts/joist/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var chart map[string]any
	if err := yaml.Unmarshal(raw, &chart); err != nil {
		t.Fatal(err)
	}
	forEachTemplate(t, func(t *testing.T, name string, in synthesis) {
		for output := range in.Outputs {
			if !strings.HasSuffix(output, "HelmCommand") {
				continue
			}
			line, err := in.Output(output)
			if err != nil {
				t.Fatal(err)
			}
			set := map[string]string{}
			for _, match := range setting.FindAllStringSubmatch(line, -1) {
				set[match[1]] = match[2]
				key, _, _ := strings.Cut(match[1], ".annotations.")
				var at any = chart
				for part := range strings.SplitSeq(key, ".") {
					inner, _ := at.(map[string]any)
					found, ok := inner[part]
					if !ok {
						t.Errorf("%s sets %s, which the chart does not have", output, match[1])
					}
					at = found
				}
			}
			// Karpenter's charts may have installed the CRDs. The chart of the services shares nothing with them.
			if definitions, services, ok := strings.Cut(line, " && "); !ok || !strings.Contains(definitions, "/joist-crd ") || !strings.HasSuffix(definitions, " --take-ownership") ||
				strings.Contains(services, "--take-ownership") {
				t.Errorf("%s does not take over the CRDs alone: %s", output, line)
			}
			for _, must := range []string{"settings.clusterName", "settings.bucket", "settings.queues.launcher", "settings.queues.lifecycleDead", "controller.image.repository"} {
				if set[must] == "" {
					t.Errorf("%s does not set %s: %v", output, must, set)
				}
			}
			if role := set[`watcher.serviceAccount.annotations.eks\.amazonaws\.com/role-arn`]; (name == "oidc") != strings.HasSuffix(role, ":role/prod-joist-watcher") {
				t.Errorf("%s sets the watcher's role to %q", output, role)
			}
		}
	})
}
