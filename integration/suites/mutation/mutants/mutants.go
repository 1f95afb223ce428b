// Package mutants generates mutants: copies of the services' source with one small change each, such as < in place of <=.
// A mutant that no test notices shows a line that the tests do not check.
//
// All mutants of a module are compiled into the same test binaries. Each change is guarded by a condition on the mutant's
// number, and the variable JOIST_MUTANT selects one mutant. So a mutant costs a run of the tests that reach it, and no build.
package mutants

import (
	"fmt"
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// Mutant is one change of one place in the source. Its identity does not depend on line numbers.
type Mutant struct {
	// Number selects the mutant in the test binaries of its module. It starts at 1.
	Number int
	// Package is the package's directory and File the file, relative to the root of the repository.
	Package, File string
	// Function is the function or method ("Lease.Release"), or the variable whose initial value is changed.
	Function string
	Operator Operator
	// Before and After are the changed text, with single spaces.
	Before, After string
	// Ordinal counts equal changes in one function, from 1.
	Ordinal int
}

// Operator is a kind of change.
type Operator string

// The operators, as gremlins and go-mutesting have them.
const (
	Arithmetic Operator = "arithmetic" // a + b => a - b, a * b => a / b, a % b => a * b, also in assignments
	Boundary   Operator = "boundary"   // a < b => a <= b
	Negate     Operator = "negate"     // a == b => a != b, if ok => if !ok
	Connective Operator = "connective" // a && b => a || b
	Step       Operator = "step"       // i++ => i--
	Constant   Operator = "constant"   // 3 => 4
	Remove     Operator = "remove"     // a call or an assignment to a field is left out
	Return     Operator = "return"     // if failed { return }: the return is left out
	Branch     Operator = "branch"     // break => continue
)

// textLimit is the length in bytes after which Before and After are cut.
const textLimit = 140

// String is the mutant's identity.
func (m Mutant) String() string {
	text := fmt.Sprintf("%s %s %s: %s => %s", m.File, m.Function, m.Operator, m.Before, m.After)
	if m.Ordinal > 1 {
		text += fmt.Sprintf(" (%d)", m.Ordinal)
	}
	return text
}

// formatCode returns source text on one line, cut at textLimit.
func formatCode(source string) string {
	return fault.Truncate(strings.Join(strings.Fields(source), " "), textLimit)
}
