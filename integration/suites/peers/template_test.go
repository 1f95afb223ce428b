package peers

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// templates are what the CDK app makes of every kind of set-up: golden files of its own
// tests, so that nothing has to be synthesized here.
const templates = "../../../infra/stack/testdata/*.template.json"

// TestTemplates has AWS's own linter read the templates that the CDK app makes, by the
// schemas of the resources that CloudFormation publishes. Everything that it says
// counts: errors, warnings and what it calls informational.
func TestTemplates(t *testing.T) {
	at := peers(t)
	files, err := filepath.Glob(templates)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", templates, len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".template.json"), func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			cmd := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(at.python), "cfn-lint"), "--regions", "eu-west-1", "--format", "parseable", "--template", file)
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Run(); err != nil {
				t.Errorf("%v\n%s", err, out.String())
			}
		})
	}
}
