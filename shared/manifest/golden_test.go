package manifest_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/manifest"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden reads each file of testdata, most of which are published manifests, and
// compares the problems, objects and warnings with the golden file.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d files in testdata, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := formatResult(filepath.Base(file), data)
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v (run the test with -update)", err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// formatResult returns the file's problems, or its objects and warnings.
func formatResult(name string, data []byte) string {
	var out strings.Builder
	documents, err := manifest.Read(name, data)
	if err != nil {
		var problems *manifest.Problems
		if !errors.As(err, &problems) {
			return "unexpected error: " + err.Error()
		}
		return problems.Error() + "\n"
	}
	for _, d := range documents {
		if d.Object == nil {
			fmt.Fprintf(&out, "%s: skipped: %s of %s\n", d.Place, d.Kind.Kind, d.Kind.APIVersion())
			continue
		}
		fmt.Fprintf(&out, "%s: %s %s\n", d.Place, d.Kind.Kind, d.Object.GetName()+d.Object.GetGenerateName())
	}
	for _, w := range manifest.Lint(documents) {
		fmt.Fprintf(&out, "warning: %s\n", w)
	}
	return out.String()
}
