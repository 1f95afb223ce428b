package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Place is where something stands in a file; lines and columns count from 1, and
// a column of 0 means the whole line.
type Place struct {
	File         string
	Line, Column int
}

// String is the place as editors like it.
func (p Place) String() string {
	if p.Column == 0 {
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Problem is one thing to mend before the file can be used.
type Problem struct {
	Place
	// Path is the field, such as spec.limits.cpu; empty when the text itself is broken.
	Path string
	// What is wrong, and what to write instead.
	What string
}

// String is the problem in one line.
func (p Problem) String() string { return located(p.Place, p.Path, p.What) }

// Warning is something that the API server takes and a person would regret.
type Warning Problem

// String is the warning in one line.
func (w Warning) String() string { return located(w.Place, w.Path, w.What) }

func located(place Place, path, what string) string {
	if path == "" {
		return place.String() + ": " + what
	}
	return place.String() + ": " + path + ": " + what
}

// problemsMax bounds how many problems of a file are told: more of them are
// nearly always the echo of one.
const problemsMax = 20

// Problems are those of one file in the order of its lines.
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

// bounded sorts problems by place and keeps the first ones.
func bounded(list []Problem) *Problems {
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path))
	})
	list = slices.Compact(list)
	if len(list) <= problemsMax {
		return &Problems{List: list}
	}
	return &Problems{List: list[:problemsMax], More: len(list) - problemsMax}
}
