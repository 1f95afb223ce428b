package main

import (
	"bytes"
	"fmt"
)

// The section is between these lines of a page.
const (
	begin = "<!-- figures: written by make figures -->\n"
	end   = "<!-- figures: end -->\n"
)

// replace replaces the section between the marks.
func replace(page []byte, section string) ([]byte, error) {
	before, rest, ok := bytes.Cut(page, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		return nil, fmt.Errorf("the page has no place for figures: add the lines %q and %q", begin, end)
	}
	return bytes.Join([][]byte{before, []byte(begin), []byte(section), []byte(end), after}, nil), nil
}
