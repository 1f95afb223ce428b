package readme

import (
	"regexp"
	"strings"
)

// Snippet is shell text of a page.
type Snippet struct {
	// Line is where it begins, from 1.
	Line int
	Text string
	// Inline says that it stands within a sentence, which may say where it is run.
	Inline bool
}

var (
	fence = regexp.MustCompile("^ *```+ *([a-z]*) *$")
	code  = regexp.MustCompile("`([^`]+)`")
)

// Unlabelled is a line of a block without a language that begins with a program.
type Unlabelled struct {
	Line int
	Text string
}

// Snippets are a page's commands. begins are the programs that code within a line
// begins with, if it is a command.
func Snippets(page string, begins map[string]bool) (found []Snippet, unlabelled []Unlabelled) {
	block, language, inside := Snippet{}, "", false
	indented := func(line string) bool { return strings.HasPrefix(line, "    ") && begins[first(line)] }
	for i, line := range strings.Split(page, "\n") {
		number := i + 1
		if mark := fence.FindStringSubmatch(line); mark != nil {
			if inside && block.Text != "" {
				found = append(found, block)
			}
			inside, language, block = !inside, mark[1], Snippet{}
			continue
		}
		switch {
		case inside && language == "sh":
			if block.Line == 0 {
				block.Line = number
			}
			block.Text += line + "\n"
		case inside && language == "console":
			if typed, ok := strings.CutPrefix(line, "$ "); ok {
				found = append(found, Snippet{Line: number, Text: typed})
			}
		case inside && language == "" && begins[first(strings.TrimPrefix(line, "$ "))]:
			unlabelled = append(unlabelled, Unlabelled{number, line})
		case !inside && indented(line):
			found = append(found, Snippet{Line: number, Text: strings.TrimSpace(line)})
		case !inside:
			for _, inline := range code.FindAllStringSubmatch(line, -1) {
				if begins[first(inline[1])] && strings.Contains(inline[1], " ") {
					found = append(found, Snippet{number, inline[1], true})
				}
			}
		}
	}
	return found, unlabelled
}

func first(line string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	return word
}
