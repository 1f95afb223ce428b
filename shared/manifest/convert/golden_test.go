package convert_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/manifest/convert"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden converts each file of testdata, and the published manifests of the package manifest, and compares
// the new text and the remarks with the golden file. A second conversion changes nothing.
func TestGolden(t *testing.T) {
	files := inputFiles(t)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Base(file)
			r := convert.Convert([]convert.Input{{Name: name, Data: data}}, convert.ConversionOptions{})
			golden := filepath.Join("testdata", strings.TrimSuffix(name, filepath.Ext(name))+".golden")
			got := formatResult(r)
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
			again := convert.Convert([]convert.Input{{Name: name, Data: r.Files[0].Text}}, convert.ConversionOptions{})
			if diff := cmp.Diff(string(r.Files[0].Text), string(again.Files[0].Text)); diff != "" {
				t.Errorf("the second conversion changes the result:\n%s", diff)
			}
		})
	}
}

func inputFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"testdata/*.yaml", "testdata/*.json", "../testdata/*.yaml"} {
		found, err := globFiles(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 20 {
		t.Fatalf("%d files", len(files))
	}
	return files
}

func globFiles(pattern string) ([]string, error) { return filepath.Glob(pattern) }

func formatResult(r convert.ConversionResult) string {
	var b strings.Builder
	for _, file := range r.Files {
		if !file.Changed {
			fmt.Fprintf(&b, "%s is unchanged\n", file.Name)
			continue
		}
		b.Write(file.Text)
		if !strings.HasSuffix(string(file.Text), "\n") {
			b.WriteString("(no line break at the end)\n")
		}
	}
	if r.Values != "" {
		b.WriteString("=== values\n" + r.Values)
	}
	b.WriteString("=== remarks\n")
	for _, remark := range r.Remarks {
		b.WriteString(remark.String() + "\n")
	}
	return b.String()
}
