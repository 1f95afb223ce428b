package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

// reasonsFile declares the reasons of Kubernetes Events in groups with a comment that names their objects.
const reasonsFile = "services/lifecycle/internal/events/reasons.go"

// reason is a reason of Events.
type reason struct {
	// kind is Normal or Warning. group is "Events on …".
	kind, text, group, about string
}

// readReasons returns the reasons in the order of the file.
func readReasons(known map[string]string) ([]reason, error) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, reasonsFile), nil, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("reading the reasons of Events: %w", err)
	}
	var all []reason
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.VAR {
			continue
		}
		for _, spec := range group.Specs {
			value, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			r := reason{group: group.Doc.Text(), about: value.Doc.Text()}
			literal, ok := value.Values[0].(*ast.CompositeLit)
			if !ok {
				return nil, fmt.Errorf("%s: %s is not a literal", reasonsFile, value.Names[0].Name)
			}
			for _, element := range literal.Elts {
				field, ok := element.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				switch name := fmt.Sprint(field.Key); name {
				case "Type":
					r.kind = fmt.Sprint(field.Value)
				case "Reason":
					r.text, _ = evaluate(field.Value, known)
				}
			}
			if r.text == "" || r.kind == "" {
				return nil, fmt.Errorf("%s: the reason or the type of %s is unknown", reasonsFile, value.Names[0].Name)
			}
			all = append(all, r)
		}
	}
	return all, nil
}

// appendReasons appends a table for each group of reasons.
func appendReasons(page *bytes.Buffer, reasons []reason) {
	page.WriteString("\n## Events\n\n`kubectl describe` shows them, with a message that names the cause. Reasons that Karpenter does not have are marked.\n")
	group, seen := "", map[string]bool{}
	for _, r := range reasons {
		if r.group != group {
			group, seen = r.group, map[string]bool{}
			fmt.Fprintf(page, "\n%s\n\n| reason | type |\n|---|---|\n", strings.TrimSuffix(strings.TrimSpace(r.group), ".")+":")
		}
		if seen[r.text] {
			continue
		}
		seen[r.text] = true
		own := ""
		if strings.Contains(r.about, "is Joist's own") {
			own = ", Joist's own"
		}
		fmt.Fprintf(page, "| `%s` | %s%s |\n", r.text, strings.ToUpper(r.kind[:1])+r.kind[1:], own)
	}
}
