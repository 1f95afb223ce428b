package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// constant is a string constant of the sources.
type constant struct {
	name, value string
	// group is the comment above the declaration of which it is a part, about its own comment.
	group, about string
}

// readConstants returns the string constants of folders of the repository, without tests, and their values by name. A folder
// may use the constants of folders before it.
func readConstants(folders []string) (all []constant, known map[string]string, err error) {
	known = map[string]string{}
	for _, folder := range folders {
		// A file may use a constant of a later file, which only the second reading knows.
		if _, err := readFolder(folder, known); err != nil {
			return nil, nil, err
		}
		found, err := readFolder(folder, known)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, found...)
	}
	return all, known, nil
}

// readFolder returns the constants of a folder, and adds their values to the known ones. Expressions are literals, and
// sums of literals and of constants that are known.
func readFolder(folder string, known map[string]string) ([]constant, error) {
	var all []constant
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/testdata/") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return fmt.Errorf("reading the constants: %w", err)
		}
		for _, declaration := range file.Decls {
			if group, ok := declaration.(*ast.GenDecl); ok && group.Tok == token.CONST {
				all = append(all, groupConstants(group, known)...)
			}
		}
		return nil
	})
	return all, err
}

func groupConstants(group *ast.GenDecl, known map[string]string) []constant {
	var all []constant
	for _, spec := range group.Specs {
		value, ok := spec.(*ast.ValueSpec)
		if !ok || len(value.Names) != 1 || len(value.Values) != 1 {
			continue
		}
		text, ok := evaluate(value.Values[0], known)
		if !ok {
			continue
		}
		c := constant{name: value.Names[0].Name, value: text, group: group.Doc.Text(), about: value.Doc.Text() + value.Comment.Text()}
		if !group.Lparen.IsValid() {
			c.about = c.group
		}
		known[c.name] = text
		all = append(all, c)
	}
	return all
}

// evaluate returns the value of an expression, if it is a string that is known.
func evaluate(expression ast.Expr, known map[string]string) (string, bool) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		text, ok := known[e.Name]
		return text, ok
	case *ast.SelectorExpr:
		text, ok := known[e.Sel.Name]
		return text, ok
	case *ast.BinaryExpr:
		left, isLeft := evaluate(e.X, known)
		right, isRight := evaluate(e.Y, known)
		return left + right, isLeft && isRight && e.Op == token.ADD
	default:
		return "", false
	}
}

var identifier = regexp.MustCompile(`\b(?:[a-z]+\.)?([A-Z][A-Za-z0-9]+)\b`)

// describe returns a doc comment as a cell of a table: without the identifier, and with values instead of other identifiers.
func describe(c constant, known map[string]string) string {
	text := strings.Join(strings.Fields(c.about), " ")
	text = strings.TrimPrefix(strings.TrimPrefix(text, c.name), ":")
	text = strings.TrimPrefix(strings.TrimSpace(text), "is ")
	text = identifier.ReplaceAllStringFunc(text, func(found string) string {
		value, ok := known[identifier.FindStringSubmatch(found)[1]]
		if !ok || !strings.Contains(value, "/") {
			return found
		}
		return "`" + value + "`"
	})
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(strings.TrimSuffix(text, "."))
}
