package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// readChecks returns the simulator's checks, each with the names of the planted bugs that break it. Checks are the first
// arguments of calls whose name has "Violation", and the promises of bugs that name no test.
func readChecks(suites string) (map[string][]string, error) {
	checks := map[string][]string{}
	err := inspect(filepath.Join(suites, "sim"), func(node ast.Node) {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); ok && strings.Contains(f.Sel.Name, "Violation") {
			if text := readText(call.Args[0]); text != "" {
				checks[text] = nil
			}
		}
	})
	if err != nil {
		return nil, err
	}
	err = inspect(filepath.Join(suites, "mutation"), func(node ast.Node) {
		literal, ok := node.(*ast.CompositeLit)
		if !ok {
			return
		}
		if fields := readFields(literal); fields["name"] != "" && fields["promise"] != "" && fields["in"] == "" {
			checks[fields["promise"]] = append(checks[fields["promise"]], fields["name"])
		}
	})
	return checks, err
}

// inspect visits every node of a folder's Go files.
func inspect(dir string, visit func(ast.Node)) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return fmt.Errorf("listing the checks: %w", err)
	}
	for _, path := range paths {
		syntax, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("reading the checks: %w", err)
		}
		ast.Inspect(syntax, func(node ast.Node) bool {
			visit(node)
			return true
		})
	}
	return nil
}

// readFields returns the fields of a literal that are strings.
func readFields(literal *ast.CompositeLit) map[string]string {
	fields := map[string]string{}
	for _, element := range literal.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok {
				fields[key.Name] = readText(pair.Value)
			}
		}
	}
	return fields
}

// readText returns the text of a string literal, and nothing for other expressions.
func readText(expression ast.Expr) string {
	literal, ok := expression.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	// The parser has accepted the literal.
	text, _ := strconv.Unquote(literal.Value)
	return text
}
