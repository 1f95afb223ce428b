package rules

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const root = "../../.."

// loaded loads all graphs once. Each module is checked as it is released; only
// integration is in the workspace.
var loaded = sync.OnceValue(func() map[string]facts {
	all := map[string]facts{}
	tags, err := BuildTags(root)
	if err != nil {
		return map[string]facts{"shared": {nil, err}}
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for _, module := range modules() {
		wait.Go(func() {
			graph, err := Load(filepath.Join(root, module), module == "integration", tags)
			mu.Lock()
			defer mu.Unlock()
			all[module] = facts{graph, err}
		})
	}
	wait.Wait()
	return all
})

type facts struct {
	graph Graph
	err   error
}

func modules() []string {
	all := []string{"shared", "integration", "infra"}
	for _, service := range services {
		all = append(all, "services/"+service)
	}
	return slices.DeleteFunc(all, func(module string) bool {
		_, err := os.Stat(filepath.Join(root, module, "go.mod"))
		return err != nil
	})
}

// each runs a check on every module's graph, in a subtest per module.
func each(t *testing.T, check func(t *testing.T, g Graph)) {
	for _, module := range modules() {
		t.Run(module, func(t *testing.T) { check(t, loaded()[module].graph) })
	}
}

// TestGraphsAreWhole checks that no graph is incomplete, which could hide violations.
func TestGraphsAreWhole(t *testing.T) {
	for _, module := range modules() {
		if err := loaded()[module].err; err != nil {
			t.Errorf("%s has holes (try: go mod tidy in %s):\n%v", module, module, err)
		}
	}
}

func TestImports(t *testing.T) {
	each(t, func(t *testing.T, g Graph) {
		for _, violation := range Check(g, Table()) {
			t.Error(violation)
		}
	})
}

// TestTemplateEnginesWithoutTags checks that the rule against template engines needs the
// build tags: without them gRPC and aws-lambda-go import html/template.
func TestTemplateEnginesWithoutTags(t *testing.T) {
	g, err := Load(filepath.Join(root, "services/launcher"), false, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := names(Check(g, Table())); !slices.Contains(got, "deployed services import no template engine") {
		t.Errorf("got violations %q", got)
	}
}

func TestNoClockInside(t *testing.T) {
	each(t, func(t *testing.T, g Graph) {
		found, err := CheckCalls(g, Bans())
		if err != nil {
			t.Fatal(err)
		}
		for _, message := range found {
			t.Error(message)
		}
	})
}

func TestMainsOnlyWire(t *testing.T) {
	each(t, func(t *testing.T, g Graph) {
		for _, path := range g.Roots() {
			if !match("./services/*/cmd/...", path) {
				continue
			}
			for _, file := range g[path].Files {
				found, err := CheckMain(file)
				if err != nil {
					t.Fatal(err)
				}
				for _, message := range found {
					t.Error(message)
				}
			}
		}
	})
}

func TestGoModsNameNoForbiddenModule(t *testing.T) {
	for _, absence := range Absences() {
		required, err := Required(filepath.Join(root, absence.Module))
		if err != nil {
			t.Fatal(err)
		}
		if message, broken := absence.Judge(required); broken {
			t.Error(message)
		}
	}
}

// TestEveryFolderOfSharedIsALayer fails for a new directory, or a misspelt layer, to
// which the rules would not apply.
func TestEveryFolderOfSharedIsALayer(t *testing.T) {
	var found []string
	entries, err := os.ReadDir(filepath.Join(root, "shared"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			found = append(found, entry.Name())
		}
	}
	want := slices.Sorted(slices.Values(layers))
	if !slices.Equal(found, want) {
		t.Errorf("shared has %v, and integration/lint/rules/table.go lists %v\n\tfix: give the folder its place in layers", found, want)
	}
}

// TestNoDeadRule finds rules whose packages were renamed: if the directory exists, its
// pattern must match, and the forbidden packages must be used in the rule's home.
func TestNoDeadRule(t *testing.T) {
	known := map[string]bool{}
	for _, f := range loaded() {
		for path := range f.graph {
			known[path] = true
		}
	}
	for _, rule := range Table() {
		for _, pattern := range slices.Concat(rule.Packages, rule.Forbid) {
			pattern, _ = cutNegation(pattern)
			if dir := literal(pattern); dir != "" && hasGo(t, dir) && !anyMatch(known, pattern) {
				t.Errorf("%s: %s matches no package although the directory holds Go files", rule.Name, pattern)
			}
		}
		if rule.Home == "" || !hasGo(t, rule.Home) {
			continue
		}
		if !slices.ContainsFunc(rule.Forbid, func(pattern string) bool { return literal(pattern) == "" && anyMatch(known, pattern) }) {
			t.Errorf("%s: nothing that it forbids exists, not even in %s", rule.Name, rule.Home)
		}
	}
}

func anyMatch(known map[string]bool, pattern string) bool {
	for path := range known {
		if match(pattern, path) {
			return true
		}
	}
	return false
}

// hasGo reports whether a directory has Go files that a graph should have, which excludes
// tests, test data and nested modules outside the workspace.
func hasGo(t *testing.T, dir string) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case os.IsNotExist(err):
			return fs.SkipDir
		case err != nil:
			return err
		case entry.IsDir() && foreign(path, entry.Name()):
			return fs.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			found = true
			return fs.SkipAll
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// foreign reports whether a directory's Go files belong to a module that is not checked
// here.
func foreign(path, name string) bool {
	if name == "testdata" || strings.HasPrefix(name, ".") && len(name) > 2 {
		return true
	}
	if _, err := os.Stat(filepath.Join(path, "go.mod")); err != nil {
		return false
	}
	module, err := filepath.Rel(root, path)
	return err != nil || !slices.Contains(modules(), filepath.ToSlash(module))
}
