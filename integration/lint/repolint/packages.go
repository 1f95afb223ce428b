package repolint

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// stageFolders matches the folders of integration that a stage tests: `go_tests "a b"`,
// `go_tests a` and `go test integration/a`.
var stageFolders = regexp.MustCompile(`go_tests "([^"]*)"|go_tests ([a-z0-9/]+)|go test integration/([a-z0-9/]+)`)

// IdleTests finds test packages of integration that no stage of .ci/stage runs.
// A stage that names a folder also runs the packages below it.
func IdleTests(files []File) []Finding {
	var staged []string
	tested := map[string]bool{}
	for _, file := range files {
		if file.Path == ".ci/stage" {
			for _, match := range stageFolders.FindAllStringSubmatch(file.Text, -1) {
				staged = append(staged, strings.Fields(match[1]+match[2]+match[3])...)
			}
		}
		below, ok := strings.CutPrefix(file.Path, "integration/")
		if ok && file.isTest() && !file.isData() {
			tested[path.Dir(below)] = true
		}
	}
	var found []Finding
	for _, dir := range slices.Sorted(maps.Keys(tested)) {
		if !slices.ContainsFunc(staged, func(stage string) bool { return strings.HasPrefix(dir+"/", stage+"/") }) {
			found = append(found, Finding{"integration/" + dir, 0, "has tests that no stage of .ci/stage runs"})
		}
	}
	return found
}

// PackageDocs finds packages without a doc comment.
func PackageDocs(files []File) []Finding {
	documented := map[string]bool{}
	for _, file := range files {
		if !file.isGo() || file.isData() {
			continue
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), file.Path, file.Text, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			continue // the compiler reports it
		}
		dir := path.Dir(file.Path)
		documented[dir] = documented[dir] || syntax.Doc.Text() != ""
	}
	var found []Finding
	for dir, said := range documented {
		if !said {
			found = append(found, Finding{dir, 0, "the package has no doc: say its idea and its invariants above one package clause"})
		}
	}
	slices.SortFunc(found, func(a, b Finding) int { return cmp.Compare(a.Path, b.Path) })
	return found
}

// SharedTypeNames returns the folders of each exported type name that several packages
// declare, sorted. It ignores tests and generated files.
func SharedTypeNames(files []File) map[string][]string {
	where := map[string][]string{}
	for _, file := range files {
		if !file.isGo() || file.isTest() || file.isData() || file.isGenerated() {
			continue
		}
		dir := path.Dir(file.Path)
		for _, name := range exportedTypes(file) {
			if !slices.Contains(where[name], dir) {
				where[name] = append(where[name], dir)
			}
		}
	}
	for name, dirs := range where {
		if slices.Sort(dirs); len(dirs) < 2 {
			delete(where, name)
		}
	}
	return where
}

// exportedTypes returns the exported types that a file declares, without aliases.
func exportedTypes(file File) []string {
	syntax, err := parser.ParseFile(token.NewFileSet(), file.Path, file.Text, parser.SkipObjectResolution)
	if err != nil {
		return nil // the compiler reports it
	}
	var names []string
	for _, declared := range syntax.Decls {
		group, ok := declared.(*ast.GenDecl)
		if !ok || group.Tok != token.TYPE {
			continue
		}
		for _, one := range group.Specs {
			if t := one.(*ast.TypeSpec); t.Name.IsExported() && !t.Assign.IsValid() {
				names = append(names, t.Name.Name)
			}
		}
	}
	return names
}
