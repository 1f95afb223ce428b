package expression

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

const (
	// costMax is the maximum cost of one evaluation, in CEL's units; Kubernetes allows as much for one of its own
	// expressions (k8s.io/apiserver: pkg/apis/cel/config.go). Arithmetic over all variables costs about 20.
	costMax = 1_000_000
	// programsMax is how many compiled expressions are kept. EC2NodeClasses have a few in total.
	programsMax = 1000
)

// environment returns the variables and functions of expressions.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("vcpus", cel.IntType), cel.Variable("memory_mib", cel.IntType), cel.Variable("default_enis", cel.IntType),
		cel.Variable("ips_per_eni", cel.IntType), cel.Variable("max_pods", cel.IntType), cel.Variable("instance_type", cel.StringType),
		selection("max", func(a, b ref.Val) bool { return compareNumbers(a, b) > 0 }),
		selection("min", func(a, b ref.Val) bool { return compareNumbers(a, b) < 0 }),
	)
})

// selection declares a function that returns its first argument if prefersFirst, else its second. If one of them is
// a double, the result is too.
func selection(name string, prefersFirst func(a, b ref.Val) bool) cel.EnvOption {
	numbers := []struct {
		name string
		kind *cel.Type
	}{{"int", cel.IntType}, {"double", cel.DoubleType}}
	var overloads []cel.FunctionOpt
	for _, first := range numbers {
		for _, second := range numbers {
			result := cel.DoubleType
			if first.kind == cel.IntType && second.kind == cel.IntType {
				result = cel.IntType
			}
			choose := func(a, b ref.Val) ref.Val {
				chosen := b
				if prefersFirst(a, b) {
					chosen = a
				}
				return chosen.ConvertToType(result)
			}
			id := strings.Join([]string{name, first.name, second.name}, "_")
			overloads = append(overloads, cel.Overload(id, []*cel.Type{first.kind, second.kind}, result, cel.BinaryBinding(choose)))
		}
	}
	return cel.Function(name, overloads...)
}

// compareNumbers compares two numbers, as doubles if one of them is. A number that is not comparable is neither
// greater nor less.
func compareNumbers(a, b ref.Val) int {
	if first, isInt := a.(types.Int); isInt {
		if second, isInt := b.(types.Int); isInt {
			return cmp.Compare(first, second)
		}
	}
	first, second := a.ConvertToType(types.DoubleType).(types.Double), b.ConvertToType(types.DoubleType).(types.Double)
	switch {
	case first > second:
		return 1
	case first < second:
		return -1
	}
	return 0
}

// programs are the compiled expressions, by text.
var programs = struct {
	sync.Mutex
	byText map[string]cel.Program
}{byText: map[string]cel.Program{}}

// compile returns the program of an expression that gives a number. Programs are kept; errors are not.
func compile(text string) (cel.Program, error) {
	programs.Lock()
	defer programs.Unlock()
	if program, known := programs.byText[text]; known {
		return program, nil
	}
	program, err := newProgram(text)
	if err != nil {
		return nil, err
	}
	if len(programs.byText) >= programsMax {
		clear(programs.byText)
	}
	programs.byText[text] = program
	return program, nil
}

func newProgram(text string) (cel.Program, error) {
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("building the CEL environment: %w", err)
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, withValues(fmt.Errorf("compiling expression, %w", issues.Err()), values{"expression": text})
	}
	if kind := ast.OutputType(); kind != cel.IntType && kind != cel.DoubleType {
		return nil, withValues(errors.New("expression must return int or double"), values{"expression": text, "output-type": kind})
	}
	program, err := env.Program(ast, cel.CostLimit(costMax))
	if err != nil {
		return nil, withValues(fmt.Errorf("creating program for expression, %w", err), values{"expression": text})
	}
	return program, nil
}

// values name what an error is about.
type values map[string]any

// withValues appends values to an error, sorted by name, as Karpenter's errors have them.
func withValues(err error, v values) error {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(v)) {
		list = append(list, fmt.Sprintf("%s=%v", name, v[name]))
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(list, ", "))
}
