package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Place is a position in a file. Lines and columns count from 1; column 0 is the whole line.
type Place struct {
	File         string
	Line, Column int
}

// String returns file:line:column, or file:line.
func (p Place) String() string {
	if p.Column == 0 {
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Problem is one mistake in a file.
type Problem struct {
	Place
	// Path is the field, such as spec.limits.cpu; empty for syntax errors.
	Path string
	// Text describes the mistake and the fix.
	Text string
}

// String returns the problem in one line.
func (p Problem) String() string { return formatProblem(p.Place, p.Path, p.Text) }

// Warning is a valid value that is probably a mistake.
type Warning Problem

// String returns the warning in one line.
func (w Warning) String() string { return formatProblem(w.Place, w.Path, w.Text) }

func formatProblem(place Place, path, what string) string {
	if path == "" {
		return place.String() + ": " + what
	}
	return place.String() + ": " + path + ": " + what
}

// problemsMax is the maximum number of reported problems of a file. More usually have one
// common cause.
const problemsMax = 20

// Problems are the problems of one file, sorted by line.
type Problems struct {
	List []Problem
	// More is the number of problems that List does not have.
	More int
}

// Error returns one line for each problem.
func (p *Problems) Error() string { return ListProblems(p.List, p.More) }

// ListProblems returns one line for each problem, and one with the number of others.
func ListProblems[P fmt.Stringer](list []P, more int) string {
	lines := make([]string, 0, len(list)+1)
	for _, one := range list {
		lines = append(lines, one.String())
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// limitProblems sorts problems by place and keeps the first problemsMax.
func limitProblems(list []Problem) *Problems {
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path))
	})
	list = slices.Compact(list)
	if len(list) <= problemsMax {
		return &Problems{List: list}
	}
	return &Problems{List: list[:problemsMax], More: len(list) - problemsMax}
}
