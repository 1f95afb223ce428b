package repolint

import (
	"bufio"
	"fmt"
	"regexp"
	"strings"
)

// privateCode finds references to lists that readers do not have. It is put together
// from parts so that this file does not find itself.
var (
	privateCode = regexp.MustCompile(`\b[AB]\d{3}\b|(?i)\b(` + strings.Join([]string{"seeds? 00", "architecture ", "ask "}, "|") + `)\d+\b`)
	graphicCard = regexp.MustCompile(`^[AB][1-9]00$`)
)

// PrivateCodes finds references to numbered rows of lists outside the repository. Names
// of GPUs (A100) are not such references.
func PrivateCodes(files []File) []Finding {
	var found []Finding
	for _, file := range files {
		file.lines(func(number int, line string) {
			for _, code := range privateCode.FindAllString(line, -1) {
				if !graphicCard.MatchString(code) {
					found = append(found, Finding{file.Path, number, fmt.Sprintf("refers to %q, which readers cannot look up: write the fact, or name its public source", code)})
				}
			}
		})
	}
	return found
}

// Word is a word that makes prose hard to read.
type Word struct {
	Pattern *regexp.Regexp
	Instead string // what to write
}

// ReadWords reads a list of words: on each line a regular expression, a tab and what to
// write instead. Lines that begin with # are comments.
func ReadWords(text string) ([]Word, error) {
	var words []Word
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, instead, ok := strings.Cut(line, "\t")
		if !ok || instead == "" {
			return nil, fmt.Errorf("reading the list of words: %q has no replacement after a tab", line)
		}
		compiled, err := regexp.Compile(`(?i)\b(?:` + pattern + `)\b`)
		if err != nil {
			return nil, fmt.Errorf("reading the list of words: %w", err)
		}
		words = append(words, Word{compiled, instead})
	}
	return words, nil
}

// MarkedGo finds the words in comments and string literals of Go files.
func MarkedGo(files []File, words []Word) []Finding {
	return marked(files, words, func(f File) bool {
		return f.isGo() && !strings.Contains(f.Path, "zz_generated")
	}, proseOfGo)
}

// MarkedDocs finds the words in pages, charts and manifests.
func MarkedDocs(files []File, words []Word) []Finding {
	documents := regexp.MustCompile(`\.(md|yaml|tpl|txt)$`)
	return marked(files, words, func(f File) bool {
		return documents.MatchString(f.Path) && !strings.HasPrefix(f.Path, "CHANGELOG") && !strings.HasPrefix(f.Path, "integration/") &&
			!strings.HasPrefix(f.Path, "deploy/charts/joist-crd") && !strings.Contains(f.Path, "/crds/")
	}, func(line string) string { return line })
}

func marked(files []File, words []Word, counts func(File) bool, prose func(line string) string) []Finding {
	patterns := make([]string, len(words))
	for i, word := range words {
		patterns[i] = word.Pattern.String()
	}
	quick := regexp.MustCompile(strings.Join(patterns, "|"))
	var found []Finding
	for _, file := range files {
		if file.isData() || !counts(file) {
			continue
		}
		file.lines(func(number int, line string) {
			text := prose(line)
			if text == "" || !quick.MatchString(text) {
				return
			}
			for _, word := range words {
				for _, match := range word.Pattern.FindAllString(text, -1) {
					found = append(found, Finding{file.Path, number, fmt.Sprintf("has %q; write %s", strings.TrimSpace(match), word.Instead)})
				}
			}
		})
	}
	return found
}

var literal = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// proseOfGo is what people read of a line of Go: its comment and its string literals.
func proseOfGo(line string) string {
	code, comment, _ := strings.Cut(line, "//")
	if !strings.Contains(code, `"`) {
		return comment
	}
	return strings.Join(append(literal.FindAllString(code, -1), comment), " ")
}
