package rules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Ban forbids some names of an imported package that is otherwise permitted: decisions
// use time.Duration, but no clock.
type Ban struct {
	Packages []string // patterns of the affected packages, as in a Rule
	Import   string
	Names    []string
	Reason   string
	Fix      string
}

// Bans returns all bans.
func Bans() []Ban {
	return []Ban{{
		Packages: slices.Concat(decisions, []string{"./services/planner/internal/...", "./services/disruption/internal/..."}),
		Import:   "time",
		Names:    []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
		Reason:   "a decision is a function of its arguments; the time is one of them, or it could not be replayed",
		Fix:      "take the time as an argument, and let the handler read it from the event or the host",
	}}
}

// CheckCalls returns a message for each use of a banned name in the non-test files of the
// graph's own packages. Any reference is a use: time.Now passed as a value is a clock
// too.
func CheckCalls(g Graph, bans []Ban) ([]string, error) {
	var found []string
	for _, ban := range bans {
		for _, path := range g.Roots() {
			if !matchAny(ban.Packages, path) {
				continue
			}
			for _, file := range g[path].Files {
				messages, err := ban.judge(file)
				if err != nil {
					return nil, err
				}
				found = append(found, messages...)
			}
		}
	}
	return found, nil
}

func (b Ban) judge(file string) ([]string, error) {
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	local := localName(syntax, b.Import)
	var found []string
	report := func(pos token.Pos, what string) {
		found = append(found, fmt.Sprintf("%s: %s\n\twhy: %s\n\tfix: %s", set.Position(pos), what, b.Reason, b.Fix))
	}
	if local == "." {
		report(syntax.Pos(), "dot import of "+b.Import+" hides the names that are banned here")
	}
	ast.Inspect(syntax, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if id, ok := selector.X.(*ast.Ident); ok && local != "" && id.Name == local && slices.Contains(b.Names, selector.Sel.Name) {
			report(selector.Pos(), "uses "+b.Import+"."+selector.Sel.Name)
		}
		return true
	})
	return found, nil
}

// localName returns the name of an import in a file, or "".
func localName(file *ast.File, importPath string) string {
	for _, spec := range file.Imports {
		if value, err := strconv.Unquote(spec.Path.Value); err != nil || value != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(strings.TrimSuffix(importPath, "/v2"))
	}
	return ""
}
