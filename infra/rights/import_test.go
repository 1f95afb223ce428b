package rights_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The evaluator imports only the standard library, and rights also only the shared
// packages with names. So the CDK app cannot change either to fit its own policies.
func TestImports(t *testing.T) {
	const shared = "github.com/joist-autoscaler/joist/shared/"
	may := map[string][]string{
		"evaluator": nil,
		"rights":    {"catalog", "event", "fault", "karpenter", "launchspec", "planning", "topology"},
	}
	for folder, rooms := range may {
		files, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files of %s: %v", folder, err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range file.Imports {
				name := strings.Trim(i.Path.Value, `"`)
				host, _, _ := strings.Cut(name, "/")
				room, ours := strings.CutPrefix(name, shared)
				if strings.Contains(host, ".") && (!ours || !slices.Contains(rooms, room)) {
					t.Errorf("%s imports %s", path, name)
				}
			}
		}
	}
}
