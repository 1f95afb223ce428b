package readme

import (
	"fmt"
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Command is a command that a shell would run.
type Command struct {
	// Args begin with the program. Shell expansions stay as they are written: ${NAME},
	// $(command).
	Args []string
	// Dir is its folder, relative to the folder of the text.
	Dir string
	// Reads are its redirected input files.
	Reads []string
	// Set are its environment variables.
	Set map[string]string
}

// Parse parses shell text. It returns commands inside other commands, too.
func Parse(text string) ([]Command, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, fmt.Errorf("reading the shell's text: %w", err)
	}
	w := walk{text: text}
	syntax.Walk(file, w.visit)
	return w.found, nil
}

type walk struct {
	text  string
	found []Command
	dir   string
	// within are the parent nodes, each with the folder after it.
	within []frame
	reads  []string
}

type frame struct {
	subshell bool
	dir      string
}

func (w *walk) visit(node syntax.Node) bool {
	if node == nil {
		last := w.within[len(w.within)-1]
		w.within = w.within[:len(w.within)-1]
		if last.subshell {
			w.dir = last.dir
		}
		return true
	}
	subshell := false
	switch node.(type) {
	case *syntax.Subshell, *syntax.CmdSubst, *syntax.ProcSubst:
		subshell = true
	}
	w.within = append(w.within, frame{subshell, w.dir})
	switch n := node.(type) {
	case *syntax.Stmt:
		w.reads = nil
		for _, r := range n.Redirs {
			if r.Op == syntax.RdrIn {
				w.reads = append(w.reads, w.word(r.Word))
			}
		}
	case *syntax.DeclClause:
		w.add(Command{Args: []string{n.Variant.Value}})
	case *syntax.CallExpr:
		w.call(n)
	}
	return true
}

func (w *walk) call(n *syntax.CallExpr) {
	if len(n.Args) == 0 {
		return
	}
	c := Command{Set: map[string]string{}, Reads: w.reads}
	for _, a := range n.Assigns {
		c.Set[a.Name.Value] = w.word(a.Value)
	}
	for _, a := range n.Args {
		c.Args = append(c.Args, w.word(a))
	}
	if c.Args[0] == "cd" && len(c.Args) == 2 {
		w.dir = path.Join(w.dir, c.Args[1])
		c.Args[1] = "."
	}
	w.add(c)
}

func (w *walk) add(c Command) {
	c.Dir = w.dir
	w.found = append(w.found, c)
}

// word returns a word without its quotes.
func (w *walk) word(word *syntax.Word) string {
	if word == nil {
		return ""
	}
	return w.parts(word.Parts, false)
}

func (w *walk) parts(parts []syntax.WordPart, quoted bool) string {
	var b strings.Builder
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescaped(p.Value, quoted))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			b.WriteString(w.parts(p.Parts, true))
		case *syntax.ParamExp:
			b.WriteString("${" + p.Param.Value + "}")
		default:
			b.WriteString(w.text[part.Pos().Offset():part.End().Offset()])
		}
	}
	return b.String()
}

// unescaped removes the backslashes that a shell removes: between double quotes only
// those before special characters.
func unescaped(text string, quoted bool) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && (!quoted || strings.ContainsRune("$`\"\\", rune(text[i+1]))) {
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
