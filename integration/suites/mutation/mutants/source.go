package mutants

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// source is one file whose mutants are collected.
type source struct {
	pkg    *packages.Package
	syntax *ast.File
	text   []byte
	// name and dir are relative to the root of the repository.
	name, dir string
	// function is the declaration that is being read, and hasResults whether it is a function with results.
	function   string
	hasResults bool

	mutants []Mutant
	edits   []edit
	// number is the number of the next mutant.
	number int
}

// edit replaces a range of the text. wrap receives the text in which nested edits are already made.
type edit struct {
	from, to int
	wrap     func(text string) string
}

// collect finds the mutants of all functions and of the initial values of variables.
func (s *source) collect() {
	for _, decl := range s.syntax.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			s.function, s.hasResults = functionName(d), d.Type.Results != nil
			s.inspect(d)
		case *ast.GenDecl:
			if d.Tok != token.VAR {
				continue
			}
			for _, spec := range d.Specs {
				s.function, s.hasResults = spec.(*ast.ValueSpec).Names[0].Name, true
				s.inspect(spec)
			}
		}
	}
	counts := map[string]int{}
	for i := range s.mutants {
		s.mutants[i].Ordinal = 1
		text := s.mutants[i].String()
		counts[text]++
		s.mutants[i].Ordinal = counts[text]
	}
}

func (s *source) inspect(decl ast.Node) {
	ast.PreorderStack(decl, nil, func(n ast.Node, stack []ast.Node) bool {
		if d, ok := n.(*ast.GenDecl); ok && d.Tok != token.VAR {
			return false
		}
		switch n := n.(type) {
		case ast.Expr:
			s.inspectExpr(n, stack)
		case ast.Stmt:
			s.inspectStmt(n, stack)
		}
		return true
	})
}

func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	receiver := d.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if index, ok := receiver.(*ast.IndexExpr); ok {
		receiver = index.X
	}
	if index, ok := receiver.(*ast.IndexListExpr); ok {
		receiver = index.X
	}
	return receiver.(*ast.Ident).Name + "." + d.Name.Name
}

// add adds a mutant of the node. wrap receives the mutant's number as text and the node's text.
func (s *source) add(n ast.Node, op Operator, before, after string, wrap func(number, text string) string) {
	number := strconv.Itoa(s.number)
	s.mutants = append(s.mutants, Mutant{
		Number: s.number, Package: s.dir, File: s.name, Function: s.function, Operator: op,
		Before: formatCode(before), After: formatCode(after),
	})
	s.number++
	s.edits = append(s.edits, edit{s.offset(n.Pos()), s.offset(n.End()), func(text string) string { return wrap(number, text) }})
}

func (s *source) offset(p token.Pos) int { return s.pkg.Fset.Position(p).Offset }

// original returns the text of a node as it is in the file.
func (s *source) original(n ast.Node) string { return s.textBetween(n.Pos(), n.End()) }

func (s *source) textBetween(from, to token.Pos) string {
	return string(s.text[s.offset(from):s.offset(to)])
}

// withMutants returns the file with all of its mutants.
func (s *source) withMutants() string {
	slices.SortStableFunc(s.edits, func(a, b edit) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to
	})
	return s.render(0, len(s.text), s.edits)
}

// render returns a range of the text with the edits in it, which are sorted.
func (s *source) render(from, to int, edits []edit) string {
	var b strings.Builder
	for len(edits) > 0 {
		e, nested := edits[0], 1
		for nested < len(edits) && edits[nested].from < e.to {
			nested++
		}
		b.Write(s.text[from:e.from])
		b.WriteString(e.wrap(s.render(e.from, e.to, edits[1:nested])))
		from, edits = e.to, edits[nested:]
	}
	b.Write(s.text[from:to])
	return b.String()
}

// isConstant reports whether the compiler knows the value of the expression.
func (s *source) isConstant(e ast.Expr) bool { return s.pkg.TypesInfo.Types[e].Value != nil }

// isBool reports whether the expression has the type bool itself, so that it can be combined with another bool.
func (s *source) isBool(e ast.Expr) bool {
	basic, ok := types.Unalias(s.pkg.TypesInfo.TypeOf(e)).(*types.Basic)
	return ok && basic.Info()&types.IsBoolean != 0
}

// isNumber reports whether the expression is an integer or a real number.
func (s *source) isNumber(e ast.Expr) bool {
	t := s.pkg.TypesInfo.TypeOf(e)
	if t == nil {
		return false
	}
	if _, generic := types.Unalias(t).(*types.TypeParam); generic {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&(types.IsInteger|types.IsFloat) != 0
}

// spellType returns the expression's type as the file writes it. It is not ok if the file does not import the type's package.
func (s *source) spellType(e ast.Expr) (text string, ok bool) {
	ok = true
	text = types.TypeString(types.Default(s.pkg.TypesInfo.TypeOf(e)), func(p *types.Package) string {
		if p == s.pkg.Types {
			return ""
		}
		for _, spec := range s.syntax.Imports {
			if path, _ := strconv.Unquote(spec.Path.Value); path == p.Path() {
				if spec.Name != nil {
					return spec.Name.Name
				}
				return p.Name()
			}
		}
		ok = false
		return p.Name()
	})
	return text, ok
}
