package scenario

import (
	"fmt"
	"strings"
)

// Problem is one thing to mend in a file.
type Problem struct {
	// File is the file's name, with line and column where the text itself is
	// broken.
	File string
	// Path is the field, such as podGroups[3].count.
	Path string
	// What is wrong, and what to write instead.
	What string
}

// String is the problem in one line.
func (p Problem) String() string {
	if p.Path == "" {
		return p.File + ": " + p.What
	}
	return p.File + ": " + p.Path + ": " + p.What
}

// problemsMax bounds how many problems are told: more are the echo of one.
const problemsMax = 20

// Problems are all that is wrong with a scenario.
type Problems struct {
	List []Problem
	// More counts those that were left out.
	More int
}

// Error lists the problems, one in a line.
func (p *Problems) Error() string {
	lines := make([]string, 0, len(p.List)+1)
	for _, one := range p.List {
		lines = append(lines, one.String())
	}
	if p.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", p.More))
	}
	return strings.Join(lines, "\n")
}

// add tells one more.
func (p *Problems) add(file, path, format string, args ...any) {
	if len(p.List) == problemsMax {
		p.More++
		return
	}
	p.List = append(p.List, Problem{file, path, fmt.Sprintf(format, args...)})
}
