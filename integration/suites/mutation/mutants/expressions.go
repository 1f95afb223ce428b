package mutants

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
)

// swaps are the operators that replace an operator. negations replace comparisons by their opposites.
var (
	swaps = map[token.Token]token.Token{
		token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.MUL,
		token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
		token.LAND: token.LOR, token.LOR: token.LAND,
		token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN,
		token.MUL_ASSIGN: token.QUO_ASSIGN, token.QUO_ASSIGN: token.MUL_ASSIGN,
		token.INC: token.DEC, token.DEC: token.INC,
	}
	negations = map[token.Token]token.Token{
		token.EQL: token.NEQ, token.NEQ: token.EQL,
		token.LSS: token.GEQ, token.GEQ: token.LSS, token.GTR: token.LEQ, token.LEQ: token.GTR,
	}
)

func (s *source) inspectExpr(e ast.Expr, stack []ast.Node) {
	if literal, ok := e.(*ast.BasicLit); ok && literal.Kind == token.INT {
		s.changeConstant(literal, stack)
	}
	if s.pkg.TypesInfo.TypeOf(e) == nil || s.isConstant(e) {
		return
	}
	binary, ok := e.(*ast.BinaryExpr)
	if !ok {
		s.negateCondition(e, stack)
		return
	}
	_, isComparison := negations[binary.Op]
	switch {
	case isComparison && s.isBool(e):
		if _, hasBoundary := swaps[binary.Op]; hasBoundary {
			s.chooseBool(binary, Boundary)
		}
		s.add(e, Negate, s.original(e), s.withOperator(binary, negations[binary.Op]), negate)
	case binary.Op == token.LAND || binary.Op == token.LOR:
		if s.isBool(e) {
			s.chooseBool(binary, Connective)
		}
	case helpers[binary.Op] != "" && s.isNumber(e):
		s.changeArithmetic(binary)
	}
}

// withOperator returns the text of the expression with another operator.
func (s *source) withOperator(e *ast.BinaryExpr, op token.Token) string {
	end := e.OpPos + token.Pos(len(e.Op.String()))
	return s.textBetween(e.Pos(), e.OpPos) + op.String() + s.textBetween(end, e.End())
}

// negate negates a boolean expression in the mutant.
func negate(number, text string) string {
	return fmt.Sprintf("((%s) != mutantOn(%s))", text, number)
}

// chooseBool evaluates the expression with the swapped operator in the mutant.
func (s *source) chooseBool(e *ast.BinaryExpr, op Operator) {
	after := s.withOperator(e, swaps[e.Op])
	s.add(e, op, s.original(e), after, func(number, text string) string {
		return fmt.Sprintf("(mutantOn(%s) && (%s) || !mutantOn(%[1]s) && (%[3]s))", number, after, text)
	})
}

// changeArithmetic replaces the operator by a function, so that each operand is evaluated once.
func (s *source) changeArithmetic(e *ast.BinaryExpr) {
	s.add(e, Arithmetic, s.original(e), s.withOperator(e, swaps[e.Op]), func(number, text string) string { return text })
	number := s.mutants[len(s.mutants)-1].Number
	// The operands contain edits of their own, so that the operator and the parentheses are separate edits.
	s.edits = s.edits[:len(s.edits)-1]
	before, operator := s.offset(e.Pos()), s.offset(e.OpPos)
	name := helpers[e.Op]
	s.edits = append(s.edits,
		edit{before, s.offset(e.End()), func(text string) string { return name + "(" + strconv.Itoa(number) + ", " + text + ")" }},
		edit{operator, operator + len(e.Op.String()), func(string) string { return "," }})
}

// negateCondition negates an operand of a condition that is no comparison.
func (s *source) negateCondition(e ast.Expr, stack []ast.Node) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			return
		}
	}
	if s.pkg.TypesInfo.Types[e].IsValue() && s.isBool(e) && isCondition(e, stack) {
		s.add(e, Negate, s.original(e), "!"+s.original(e), negate)
	}
}

// isCondition reports whether a statement depends on the expression, alone or as an operand.
func isCondition(e ast.Expr, stack []ast.Node) bool {
	for i, node := range slices.Backward(stack) {
		switch parent := node.(type) {
		case *ast.ParenExpr:
			e = parent
			continue
		case *ast.UnaryExpr:
			return parent.Op == token.NOT
		case *ast.BinaryExpr:
			return parent.Op == token.LAND || parent.Op == token.LOR
		case *ast.IfStmt:
			return parent.Cond == e
		case *ast.ForStmt:
			return parent.Cond == e
		case *ast.CaseClause:
			// The clause is in the body of its switch.
			statement, ok := stack[i-2].(*ast.SwitchStmt)
			return ok && statement.Tag == nil && slices.Contains(parent.List, e)
		}
		return false
	}
	return false
}

// changeConstant adds 1 to an integer literal. The edit is made of the largest constant expression around it, because
// the compiler requires constants to have no calls.
func (s *source) changeConstant(literal *ast.BasicLit, stack []ast.Node) {
	var whole ast.Expr = literal
	i := len(stack) - 1
	for ; i >= 0; i-- {
		parent, ok := stack[i].(ast.Expr)
		if !ok || !s.isConstant(parent) {
			break
		}
		if binary, ok := parent.(*ast.BinaryExpr); ok && (binary.Op == token.SHL || binary.Op == token.SHR) {
			return
		}
		whole = parent
	}
	if i < 0 || mustBeConstant(s.pkg.TypesInfo, whole, stack[:i+1]) || !s.isNumber(whole) {
		return
	}
	name, ok := s.spellType(whole)
	if !ok {
		return
	}
	changed := "(" + literal.Value + " + 1)"
	if value, err := strconv.Atoi(literal.Value); err == nil && strconv.Itoa(value) == literal.Value {
		changed = strconv.Itoa(value + 1)
	}
	after := s.textBetween(whole.Pos(), literal.Pos()) + changed + s.textBetween(literal.End(), whole.End())
	if _, err := types.Eval(s.pkg.Fset, s.pkg.Types, whole.Pos(), name+"("+after+")"); err != nil {
		return // The type has no such value, such as a byte above 255.
	}
	// The text around the constant shows which of several it is.
	around := ast.Node(whole)
	switch stack[i].(type) {
	case *ast.BinaryExpr, *ast.CallExpr, *ast.IndexExpr, *ast.SliceExpr, *ast.KeyValueExpr, *ast.ReturnStmt, *ast.AssignStmt:
		around = stack[i]
	}
	changedAround := s.textBetween(around.Pos(), literal.Pos()) + changed + s.textBetween(literal.End(), around.End())
	s.add(whole, Constant, s.original(around), changedAround, func(number, text string) string {
		return fmt.Sprintf("mutantChoice[%s](%s, %s, %s)", name, number, text, after)
	})
}

// mustBeConstant reports whether the language requires a constant in the expression's place.
func mustBeConstant(info *types.Info, e ast.Expr, stack []ast.Node) bool {
	switch parent := stack[len(stack)-1].(type) {
	case *ast.ArrayType:
		return true
	case *ast.BinaryExpr:
		return parent.Op == token.SHL || parent.Op == token.SHR
	case *ast.KeyValueExpr:
		literal, ok := stack[len(stack)-2].(*ast.CompositeLit)
		if !ok || parent.Key != e {
			return false
		}
		switch info.TypeOf(literal).Underlying().(type) {
		case *types.Array, *types.Slice:
			return true
		}
	}
	return false
}
