package convert

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/manifest"
)

// RemarkSeverity says what a remark asks of its reader.
type RemarkSeverity string

const (
	// Converted is a change that needs no attention: the result means the same.
	Converted RemarkSeverity = "converted"
	// Check is a change with an assumption, or with a different meaning, to be checked by a person.
	Check RemarkSeverity = "check"
	// Unrepaired is a mistake that is still in the result, or a part of the input that the result lacks.
	Unrepaired RemarkSeverity = "unrepaired"
	// Warning is a valid value that is probably a mistake.
	Warning RemarkSeverity = "warning"
)

// Remark is one finding about an input file.
type Remark struct {
	manifest.Place
	Severity RemarkSeverity
	// Path is the field in the input, such as spec.limits.resources; empty for a whole document.
	Path string
	// Text is the finding or the change. Remedy is what to do; empty if nothing is left to do.
	Text, Remedy string
}

// String returns the remark in one line: file:line:column: severity: path: text: remedy.
func (r Remark) String() string {
	parts := []string{r.Place.String(), string(r.Severity)}
	if r.Path != "" {
		parts = append(parts, r.Path)
	}
	parts = append(parts, r.Text)
	if r.Remedy != "" {
		parts = append(parts, r.Remedy)
	}
	return strings.Join(parts, ": ")
}

// sortRemarks sorts remarks by place, and removes equal ones.
func sortRemarks(list []Remark, files []string) []Remark {
	order := map[string]int{}
	for i, file := range files {
		order[file] = i
	}
	slices.SortStableFunc(list, func(a, b Remark) int {
		return cmp.Or(cmp.Compare(order[a.File], order[b.File]), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(list)
}
