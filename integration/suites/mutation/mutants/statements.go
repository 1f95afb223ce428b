package mutants

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

func (s *source) inspectStmt(stmt ast.Stmt, stack []ast.Node) {
	switch n := stmt.(type) {
	case *ast.IncDecStmt:
		s.changeStep(n, stack)
	case *ast.AssignStmt:
		s.changeAssignment(n, stack)
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && isInList(n, stack) && !s.isLeftAlone(call) {
			s.remove(n, Remove)
		}
	case *ast.ReturnStmt:
		if isLastOfIf(n, stack) {
			s.remove(n, Return)
		}
	case *ast.BranchStmt:
		s.swapBranch(n, stack)
	}
}

// remove leaves the statement out in the mutant.
func (s *source) remove(n ast.Stmt, op Operator) {
	s.add(n, op, s.original(n), "nothing", func(number, text string) string {
		return fmt.Sprintf("if !mutantOn(%s) { %s }", number, text)
	})
}

// replace runs other text instead of the statement in the mutant.
func (s *source) replace(n ast.Stmt, op Operator, after string) {
	s.add(n, op, s.original(n), after, func(number, text string) string {
		return fmt.Sprintf("if mutantOn(%s) { %s } else { %s }", number, after, text)
	})
}

// isInList reports whether the statement with these parents is one of a list of statements.
func isInList(n ast.Stmt, stack []ast.Node) bool {
	switch parent := stack[len(stack)-1].(type) {
	case *ast.BlockStmt, *ast.CaseClause:
		return true
	case *ast.CommClause:
		return parent.Comm != n
	}
	return false
}

// logFunctions are Joist's functions that add fields to the log line of a message.
var logFunctions = map[string]bool{
	"github.com/joist-autoscaler/joist/shared/host.AddLogFields":     true,
	"github.com/joist-autoscaler/joist/shared/host.SetLogFields":     true,
	"(*github.com/joist-autoscaler/joist/shared/host.LogFields).Add": true,
}

// isLeftAlone reports whether the call writes a log or ends the program.
func (s *source) isLeftAlone(call *ast.CallExpr) bool {
	var name *ast.Ident
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f
	case *ast.SelectorExpr:
		name = f.Sel
	default:
		return false
	}
	switch object := s.pkg.TypesInfo.Uses[name].(type) {
	case *types.Builtin:
		return object.Name() == "panic"
	case *types.Func:
		return object.Pkg() != nil && object.Pkg().Path() == "log/slog" || logFunctions[object.FullName()]
	}
	return false
}

func (s *source) changeStep(n *ast.IncDecStmt, stack []ast.Node) {
	after := s.original(n.X) + swaps[n.Tok].String()
	if isInList(n, stack) {
		s.replace(n, Step, after)
		return
	}
	// The step of a loop is one simple statement.
	basic, ok := types.Unalias(s.pkg.TypesInfo.TypeOf(n.X)).(*types.Basic)
	if !ok || basic.Info()&types.IsInteger == 0 || basic.Info()&types.IsUnsigned != 0 {
		return
	}
	values := "1, -1"
	if n.Tok == token.DEC {
		values = "-1, 1"
	}
	x := s.original(n.X)
	s.add(n, Step, s.original(n), after, func(number, _ string) string {
		return fmt.Sprintf("%s += mutantChoice[%s](%s, %s)", x, basic.Name(), number, values)
	})
}

func (s *source) changeAssignment(n *ast.AssignStmt, stack []ast.Node) {
	if !isInList(n, stack) {
		return
	}
	if op, ok := swaps[n.Tok]; ok && s.isNumber(n.Lhs[0]) {
		after := s.textBetween(n.Pos(), n.TokPos) + op.String() + s.textBetween(n.TokPos+token.Pos(len(n.Tok.String())), n.End())
		s.replace(n, Arithmetic, after)
		return
	}
	if n.Tok == token.DEFINE {
		return
	}
	for _, left := range n.Lhs {
		switch left := left.(type) {
		case *ast.SelectorExpr, *ast.IndexExpr, *ast.StarExpr:
		case *ast.Ident:
			if left.Name != "_" || len(n.Lhs) == 1 {
				return
			}
		}
	}
	s.remove(n, Remove)
}

// isLastOfIf reports whether the statement ends the body of an if without an else, so that a function without it still
// returns at its end.
func isLastOfIf(n ast.Stmt, stack []ast.Node) bool {
	if len(stack) < 2 {
		return false
	}
	body, ok := stack[len(stack)-1].(*ast.BlockStmt)
	if !ok || body.List[len(body.List)-1] != n {
		return false
	}
	parent, ok := stack[len(stack)-2].(*ast.IfStmt)
	return ok && parent.Body == body && parent.Else == nil
}

// swapBranch swaps break and continue where both are allowed.
func (s *source) swapBranch(n *ast.BranchStmt, stack []ast.Node) {
	if !isInList(n, stack) || n.Tok != token.BREAK && n.Tok != token.CONTINUE {
		return
	}
	after := token.CONTINUE.String()
	if n.Tok == token.CONTINUE {
		after = token.BREAK.String()
	}
	target := branchTarget(n, stack)
	if n.Tok == token.BREAK && n.Label == nil {
		// The loop that a continue would continue, around a switch or select that the break ends.
		target = innermost(stack, isLoop)
	}
	if target == nil || !isLoop(target) {
		return
	}
	if loop, ok := target.(*ast.ForStmt); ok && loop.Cond == nil && n.Tok == token.CONTINUE && s.hasResults {
		// A function may end with an endless loop, but not with one that a break can end.
		return
	}
	if n.Label != nil {
		after += " " + n.Label.Name
	}
	s.replace(n, Branch, after)
}

// branchTarget returns the statement that the branch ends or continues.
func branchTarget(n *ast.BranchStmt, stack []ast.Node) ast.Node {
	if n.Label == nil {
		return innermost(stack, func(parent ast.Node) bool {
			switch parent.(type) {
			case *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
				return true
			}
			return isLoop(parent)
		})
	}
	labelled := innermost(stack, func(parent ast.Node) bool {
		l, ok := parent.(*ast.LabeledStmt)
		return ok && l.Label.Name == n.Label.Name
	})
	if labelled == nil {
		return nil
	}
	return labelled.(*ast.LabeledStmt).Stmt
}

func isLoop(n ast.Node) bool {
	switch n.(type) {
	case *ast.ForStmt, *ast.RangeStmt:
		return true
	}
	return false
}

// innermost returns the innermost parent in the same function that fits.
func innermost(stack []ast.Node, fits func(ast.Node) bool) ast.Node {
	for _, parent := range slices.Backward(stack) {
		if fits(parent) {
			return parent
		}
		if _, ok := parent.(*ast.FuncLit); ok {
			return nil
		}
	}
	return nil
}
