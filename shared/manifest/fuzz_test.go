package manifest_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/joist-autoscaler/joist/shared/manifest"
)

// FuzzRead: any input gives documents that can be linted, or problems with a line.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("- a: b\n")) // a list of mappings is no object
	f.Add([]byte("apiVersion: v1\nkind: List\nitems: [*a, &a {kind: Pod, apiVersion: v1, <<: [*a]}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		documents, err := manifest.Read("f.yaml", data, manifest.Expand(map[string]string{"CLUSTER_NAME": "prod"}))
		if err == nil {
			manifest.Lint(documents)
			return
		}
		var problems *manifest.Problems
		if !errors.As(err, &problems) || len(problems.List) == 0 || documents != nil {
			t.Fatalf("Read = %v, %v", documents, err)
		}
		for _, p := range problems.List {
			if p.Line < 1 || p.Text == "" {
				t.Errorf("problem without line or text: %+v", p)
			}
		}
	})
}
