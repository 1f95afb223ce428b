package eventpattern

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// MaxNumber is the largest absolute value in numeric matching.
const MaxNumber = 5e9

// precision is the precision of comparisons: six decimals.
const precision = 1e6

// scaleNumber returns the number in units of 1/precision; false if numeric matching does not support it.
func scaleNumber(number json.Number) (float64, bool) {
	f, err := number.Float64()
	if err != nil || math.Abs(f) > MaxNumber {
		return 0, false
	}
	return math.Round(f * precision), true
}

func areEqualNumbers(a, b json.Number) bool {
	x, okX := scaleNumber(a)
	y, okY := scaleNumber(b)
	return okX && okY && x == y
}

// comparisons are the operators: whether each is a lower (1) or an upper (-1) bound, and its test.
var comparisons = map[string]struct {
	side int
	test func(value, bound float64) bool
}{
	"=":  {0, func(v, b float64) bool { return v == b }},
	">":  {1, func(v, b float64) bool { return v > b }},
	">=": {1, func(v, b float64) bool { return v >= b }},
	"<":  {-1, func(v, b float64) bool { return v < b }},
	"<=": {-1, func(v, b float64) bool { return v <= b }},
}

// compileNumeric matches numbers by one comparison, or by a lower and an upper bound in that order.
func compileNumeric(operand any) (matcher, error) {
	list, ok := operand.([]any)
	if !ok || (len(list) != 2 && len(list) != 4) {
		return nil, errors.New("numeric needs an array of one or two comparisons")
	}
	first, side, low, err := compileComparison(list[0], list[1])
	if err != nil || len(list) == 2 {
		return first, err
	}
	second, other, high, err := compileComparison(list[2], list[3])
	if err != nil {
		return nil, err
	}
	if side != 1 || other != -1 {
		return nil, errors.New("a range is a lower bound followed by an upper bound")
	}
	if low >= high {
		return nil, errors.New("the lower bound is not below the upper bound")
	}
	return func(leaf any) bool { return first(leaf) && second(leaf) }, nil
}

func compileComparison(operator, operand any) (m matcher, side int, bound float64, err error) {
	name, _ := operator.(string)
	comparison, ok := comparisons[name]
	if !ok {
		return nil, 0, 0, fmt.Errorf("unknown comparison %s", describeValue(operator))
	}
	number, ok := operand.(json.Number)
	if !ok {
		return nil, 0, 0, fmt.Errorf("%s must be a number", describeValue(operand))
	}
	bound, ok = scaleNumber(number)
	if !ok {
		return nil, 0, 0, fmt.Errorf("%s is not between -5e9 and 5e9", number)
	}
	return func(leaf any) bool {
		number, ok := leaf.(json.Number)
		if !ok {
			return false
		}
		value, ok := scaleNumber(number)
		return ok && comparison.test(value, bound)
	}, comparison.side, bound, nil
}
