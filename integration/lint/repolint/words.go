package repolint

import (
	"bufio"
	"fmt"
	"regexp"
	"strings"
)

// privateCode finds references to lists that readers do not have. It is assembled from
// parts so that it does not match this file.
var (
	privateCode = regexp.MustCompile(`\b[AB]\d{3}\b|(?i)\b(` + strings.Join([]string{"seeds? 00", "architecture ", "ask "}, "|") + `)\d+\b`)
	graphicCard = regexp.MustCompile(`^[AB][1-9]00$`)
)

// PrivateCodes finds references to numbered rows of lists outside the repository, except
// names of GPUs (A100).
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
	Instead string // the replacement
}

// ReadWords parses a list of words. Each line has a regular expression, a tab and a
// replacement. Lines that begin with # are comments.
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
		return documents.MatchString(f.Path) && !strings.HasPrefix(f.Path, "integration/") &&
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
			text := deadLetter.ReplaceAllString(prose(line), "")
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

// deadLetter is SQS's term, which is no marker word.
var deadLetter = regexp.MustCompile(`(?i)\bdead-letter\b`)

var literal = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// proseOfGo returns the comment and the string literals of a line of Go.
func proseOfGo(line string) string {
	code, comment, _ := strings.Cut(line, "//")
	if !strings.Contains(code, `"`) {
		return comment
	}
	return strings.Join(append(literal.FindAllString(code, -1), comment), " ")
}
