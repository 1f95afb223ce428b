package readme

import (
	"fmt"
	"regexp"
	"strings"
)

// Snippet is shell code on a page.
type Snippet struct {
	// Line is its first line, from 1.
	Line int
	Text string
	// Inline is set if it is part of a sentence, which may name the folder.
	Inline bool
}

var (
	fence = regexp.MustCompile("^ *```+ *([a-z]*) *$")
	code  = regexp.MustCompile("`([^`]+)`")
)

// Unlabelled is a line that begins with a program, in a block without a language.
type Unlabelled struct {
	Line int
	Text string
}

// Snippets returns a page's commands. begins are the programs that identify inline code
// as a command.
func Snippets(page string, begins map[string]bool) (found []Snippet, unlabelled []Unlabelled) {
	r := reader{begins: begins}
	for i, line := range strings.Split(page, "\n") {
		switch mark := fence.FindStringSubmatch(line); {
		case mark != nil:
			r.turn(mark[1])
		case r.inside:
			r.block(i+1, line)
		default:
			r.prose(i+1, line)
		}
	}
	return r.found, r.unlabelled
}

// reader reads a page line by line.
type reader struct {
	begins map[string]bool
	// inside is set in a block with a language; open has its shell code.
	inside   bool
	language string
	open     Snippet

	found      []Snippet
	unlabelled []Unlabelled
}

// turn starts or ends a block.
func (r *reader) turn(language string) {
	if r.inside && r.open.Text != "" {
		r.found = append(r.found, r.open)
	}
	r.inside, r.language, r.open = !r.inside, language, Snippet{}
}

func (r *reader) block(number int, line string) {
	typed, prompt := strings.CutPrefix(line, "$ ")
	switch {
	case r.language == "sh":
		if r.open.Line == 0 {
			r.open.Line = number
		}
		r.open.Text += line + "\n"
	case r.language == "console" && prompt:
		r.found = append(r.found, Snippet{Line: number, Text: typed})
	case r.language == "" && r.begins[first(typed)]:
		r.unlabelled = append(r.unlabelled, Unlabelled{number, line})
	}
}

func (r *reader) prose(number int, line string) {
	if strings.HasPrefix(line, "    ") && r.begins[first(line)] {
		r.found = append(r.found, Snippet{Line: number, Text: strings.TrimSpace(line)})
		return
	}
	for _, inline := range code.FindAllStringSubmatch(line, -1) {
		if r.begins[first(inline[1])] && strings.Contains(inline[1], " ") {
			r.found = append(r.found, Snippet{number, inline[1], true})
		}
	}
}

func first(line string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	return word
}

// Block is a block of commands and the tests that run it.
type Block struct {
	Tests []string
	Text  string
}

var runBy = regexp.MustCompile(`^<!-- run-by: (.+) -->$`)

// RunBy returns a page's blocks of sh, with the tests in the comment above each. Problems are the blocks without one.
func RunBy(page string) (blocks []Block, problems []string) {
	lines := strings.Split(page, "\n")
	snippets, _ := Snippets(page, nil)
	for _, s := range snippets {
		above := s.Line - 3 // the line above the fence, from 0
		if above < 0 || !runBy.MatchString(lines[above]) {
			problems = append(problems, fmt.Sprintf("line %d: no comment run-by above the block names a test", s.Line))
			continue
		}
		blocks = append(blocks, Block{strings.Split(runBy.FindStringSubmatch(lines[above])[1], ", "), s.Text})
	}
	return blocks, problems
}
