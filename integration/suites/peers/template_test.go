package peers

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// templates are the CDK app's golden files for every kind of set-up, so that the test
// need not synthesize.
const templates = "../../../infra/stack/testdata/*.template.json"

// TestTemplates runs AWS's own linter on the CDK app's templates, with the resource
// schemas that CloudFormation publishes. All its findings count: errors, warnings and
// informational ones.
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
