package rules

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
)

// mainLinesMax is generous for a list of constructor calls. Longer main functions have
// logic, which no test covers.
const mainLinesMax = 150

// CheckMain checks one file of a command: it only wires parts, so it is short and exports
// nothing.
func CheckMain(file string) ([]string, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading a command: %w", err)
	}
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parsing a command: %w", err)
	}
	const why = "\n\twhy: a command wires and does nothing else, so that tests, demo and simulator can wire the same parts\n\tfix: move it into the service's package"
	var found []string
	if lines := bytes.Count(source, []byte("\n")); lines > mainLinesMax {
		found = append(found, fmt.Sprintf("%s: %d lines, more than %d%s", file, lines, mainLinesMax, why))
	}
	for _, declaration := range syntax.Decls {
		for _, name := range exported(declaration) {
			found = append(found, fmt.Sprintf("%s: declares %s%s", set.Position(name.Pos()), name.Name, why))
		}
	}
	return found, nil
}

func exported(declaration ast.Decl) []*ast.Ident {
	var names []*ast.Ident
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		// A method may be exported to satisfy an interface.
		if d.Recv == nil {
			names = append(names, d.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name)
			case *ast.ValueSpec:
				names = append(names, s.Names...)
			}
		}
	}
	var public []*ast.Ident
	for _, name := range names {
		if name.IsExported() {
			public = append(public, name)
		}
	}
	return public
}
