package scenario

import (
	"fmt"

	"github.com/joist-autoscaler/joist/shared/manifest"
)

// Problem is one error in a file.
type Problem struct {
	// File is the file's name, with line and column for syntax errors.
	File string
	// Path is the field, such as podGroups[3].count.
	Path string
	// What describes the error, and what to write instead.
	What string
}

// String returns the problem in one line.
func (p Problem) String() string {
	if p.Path == "" {
		return p.File + ": " + p.What
	}
	return p.File + ": " + p.Path + ": " + p.What
}

// problemsMax is the maximum number of listed problems: further ones are mostly consequences.
const problemsMax = 20

// Problems are all errors of a scenario.
type Problems struct {
	List []Problem
	// More counts the problems that are not listed.
	More int
}

// Error lists the problems, one per line.
func (p *Problems) Error() string { return manifest.ListProblems(p.List, p.More) }

// add adds a problem.
func (p *Problems) add(file, path, format string, args ...any) {
	if len(p.List) == problemsMax {
		p.More++
		return
	}
	p.List = append(p.List, Problem{file, path, fmt.Sprintf(format, args...)})
}
