package metric

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Each metric is recorded by exactly the services that its entry names: the panel of an unused metric would always be
// empty.
func TestEachMetricIsUsed(t *testing.T) {
	variables := metricVariables(t)
	for _, m := range Catalogue {
		if variables[m.Name] == "" {
			t.Errorf("%s is no variable of this package", m.Name)
		}
	}
	for name, variable := range variables {
		i := slices.IndexFunc(Catalogue, func(m Metric) bool { return m.Name == name })
		if i < 0 {
			t.Errorf("%s (%s) is not in the catalogue", variable, name)
			continue
		}
		users := usedBy(t, variable)
		if len(users) == 0 {
			t.Errorf("nothing counts %s (%s)", variable, name)
		}
		if slices.Contains(users, "") {
			continue // The host records it for all services.
		}
		want := slices.Sorted(slices.Values(Catalogue[i].Services))
		if !slices.Equal(users, want) {
			t.Errorf("%s is counted by %v, and its entry says %v", name, users, want)
		}
	}
}

// metricVariables returns the names of this package's metric variables, by the metrics' names.
func metricVariables(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, file := range parsed(t, ".") {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			literal, ok := spec.Values[0].(*ast.CompositeLit)
			if !ok {
				return true
			}
			if kind, ok := literal.Type.(*ast.Ident); !ok || kind.Name != "Metric" {
				return true
			}
			for _, e := range literal.Elts {
				if pair, ok := e.(*ast.KeyValueExpr); ok && pair.Key.(*ast.Ident).Name == "Name" {
					name, err := strconv.Unquote(pair.Value.(*ast.BasicLit).Value)
					if err != nil {
						t.Fatal(err)
					}
					found[name] = spec.Names[0].Name
				}
			}
			return true
		})
	}
	return found
}

// usedBy returns the services whose code uses the variable, and "" if package telemetry does.
func usedBy(t *testing.T, variable string) []string {
	t.Helper()
	services, err := filepath.Glob("../../../services/*")
	if err != nil {
		t.Fatal(err)
	}
	var users []string
	for _, dir := range append(services, "../telemetry") {
		for _, file := range parsed(t, dir) {
			for _, declared := range file.Decls {
				if dir == "../telemetry" {
					if _, isFunction := declared.(*ast.FuncDecl); !isFunction {
						continue // A table of label values records nothing.
					}
				}
				if names(declared, func(n ast.Node) bool {
					selected, ok := n.(*ast.SelectorExpr)
					if !ok || selected.Sel.Name != variable {
						return false
					}
					from, ok := selected.X.(*ast.Ident)
					return ok && from.Name == "metric"
				}) {
					users = append(users, strings.TrimPrefix(filepath.Base(dir), "telemetry"))
				}
			}
		}
	}
	slices.Sort(users)
	return slices.Compact(users)
}

func names(in ast.Node, is func(ast.Node) bool) (found bool) {
	ast.Inspect(in, func(n ast.Node) bool {
		found = found || n != nil && is(n)
		return !found
	})
	return found
}

var files = map[string][]*ast.File{}

// parsed returns the Go files below a directory, without tests and without the packages below package telemetry.
func parsed(t *testing.T, dir string) []*ast.File {
	t.Helper()
	if known, ok := files[dir]; ok {
		return known
	}
	all := []*ast.File{}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // A service need not have the directory.
		}
		if entry.IsDir() && !strings.Contains(dir, "services") && path != dir {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, file)
		return nil
	})
	files[dir] = all
	return all
}
