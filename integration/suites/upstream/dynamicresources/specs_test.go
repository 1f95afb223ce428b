package dynamicresources_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	peer = "sigs.k8s.io/karpenter/pkg/scheduling/dynamicresources"
	own  = "github.com/joist-autoscaler/joist/integration/suites/upstream/dynamicresources"
)

// suite is what Karpenter's specs find in place of the suite with an API server.
const suite = `package dynamicresources_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	resourcev1 "k8s.io/api/resource/v1"

	"` + own + `"
)

var (
	ctx = context.Background()
	env struct{ Client *dynamicresources.DeviceClasses }
)

func ExpectApplied(_ context.Context, to *dynamicresources.DeviceClasses, list ...*resourcev1.DeviceClass) {
	for _, c := range list {
		to.List = append(to.List, *c)
	}
}

var _ = BeforeEach(func() { env.Client = &dynamicresources.DeviceClasses{} })

var _ = ReportAfterSuite("results", func(r Report) {
	results := map[string]string{}
	for _, s := range r.SpecReports {
		if s.LeafNodeType == types.NodeTypeIt {
			results[s.FullText()] = s.FailureMessage()
		}
	}
	text, err := json.Marshal(results)
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(os.Getenv("JOIST_SPEC_RESULTS"), text, 0o600); err != nil {
		panic(err)
	}
})

func TestKarpenterSpecs(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "DynamicResources")
}
`

// Joist's allocator passes the specs of Karpenter's allocator.
func TestAllocatorSpecs(t *testing.T) {
	results := runSpecs(t)
	t.Logf("%d specs ran", len(results))
	if len(results) < 200 {
		t.Error("these are not all specs")
	}
	for title, failure := range results {
		if failure != "" {
			t.Errorf("%s:\n%s", title, failure)
		}
	}
}

// runSpecs runs Karpenter's specs and returns their failures by title; empty for specs that pass.
func runSpecs(t *testing.T) map[string]string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	folder := findFolder(t)
	replace, temp := map[string]string{}, t.TempDir()
	add := func(name string, text []byte) {
		file := filepath.Join(temp, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(here, name)] = file
	}
	add("suite_test.go", []byte(suite))
	for name, keepsSpecs := range map[string]bool{"allocator_test.go": true, "pool_test.go": false, "attributebindings_test.go": false} {
		add(name, rewriteSpecs(t, filepath.Join(folder, name), keepsSpecs))
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	add("overlay.json", overlay)
	results := filepath.Join(temp, "results.json")
	command := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-vet=off", "-run=TestKarpenterSpecs", "-overlay="+filepath.Join(temp, "overlay.json"), ".")
	command.Env = append(os.Environ(), "JOIST_SPEC_RESULTS="+results)
	output, failed := command.CombinedOutput() // It fails if a spec fails.
	text, err := os.ReadFile(results)
	if err != nil {
		t.Fatalf("running the specs: %v\n%s", failed, output)
	}
	out := map[string]string{}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// findFolder returns the folder of Karpenter's package in the module cache.
func findFolder(t *testing.T) string {
	t.Helper()
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", peer).Output()
	if err != nil {
		t.Fatalf("finding %s: %v", peer, err)
	}
	return strings.TrimSpace(string(folder))
}

// rewriteSpecs returns a file with the imports of Joist's package in place of Karpenter's, and without
// specs if only its functions are used.
func rewriteSpecs(t *testing.T, file string, keepsSpecs bool) []byte {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	isSpecs := func(d ast.Decl) bool {
		g, ok := d.(*ast.GenDecl)
		return ok && g.Tok == token.VAR && !keepsSpecs
	}
	f.Decls, f.Comments = slices.DeleteFunc(f.Decls, isSpecs), nil
	used := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				used[x.Name] = true
			}
		}
		return true
	})
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.IMPORT {
			continue
		}
		g.Specs = slices.DeleteFunc(g.Specs, func(s ast.Spec) bool {
			i := s.(*ast.ImportSpec)
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if name == peer {
				i.Path.Value = strconv.Quote(own)
			}
			if i.Name != nil && i.Name.Name == "." {
				return !keepsSpecs || !strings.HasPrefix(name, "github.com/onsi/")
			}
			if i.Name != nil {
				return !used[i.Name.Name]
			}
			return !used[path.Base(name)]
		})
	}
	var out bytes.Buffer
	if err := format.Node(&out, fset, f); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
