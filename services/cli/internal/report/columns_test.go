package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
)

// TestColumnsFit: at every width no line is longer than the terminal, unless a row is a paragraph,
// and no text is lost.
func TestColumnsFit(t *testing.T) {
	header := []string{"NODES", "NODEPOOL", "TYPE", "ZONE", "$/HOUR EACH", "REASON"}
	rows := [][]string{
		{"5", "general", "t4g.large", "ap-northeast-2a", "$0.0141", "SQS moved it to the DLQ; no consumer recorded an error"},
		{"12", "gpu", "g6.12xlarge", "eu-west-1b", "$12.0141", "a-word-that-is-longer-than-any-column-and-has-parts averyverylongwordthathasnopartsatallandmustbebrokenanywhere"},
		{"1", "日本語のプール", "m7g.large", "eu-west-1a", "$0.0911", "→ 日本語の理由がとても長いので折り返される必要があります"},
	}
	lettersOf := func(s string) string {
		counts := map[rune]int{}
		for _, r := range s {
			if r != ' ' && r != '\n' {
				counts[r]++
			}
		}
		return fmt.Sprint(counts)
	}
	whole := lettersOf(formatColumns(0, header, rows, 1, 5))
	for width := 1; width < 220; width++ {
		out := formatColumns(width, header, rows, 1, 5)
		isParagraphs := strings.HasPrefix(out, "NODES        5\n")
		if isParagraphs {
			if width > 73 {
				t.Errorf("at %d columns the table has paragraphs", width)
			}
			continue
		}
		if lettersOf(out) != whole {
			t.Errorf("at %d columns text is missing:\n%s", width, out)
		}
		for line := range strings.SplitSeq(out, "\n") {
			if got := text.StringWidth(line); got > width {
				t.Errorf("at %d columns a line has %d: %q", width, got, line)
			}
		}
	}
}

// TestWrapCell: lines break at blanks, after parts of names, and else anywhere.
func TestWrapCell(t *testing.T) {
	for _, tt := range []struct {
		cell  string
		width int
		want  string
	}{
		{"short", 10, "short"},
		{"", 10, ""},
		{"applies until Fri 2026-11-20", 14, "applies until\nFri 2026-11-20"},
		{"ap-northeast-2a", 12, "ap-\nnortheast-2a"},
		{"ip-10-0-1-7.ec2.internal", 12, "ip-10-0-1-7.\nec2.internal"},
		{"abcdefghij", 4, "abcd\nefgh\nij"},
		{"see abcdefghij", 4, "see\nabcd\nefgh\nij"},
	} {
		if got := wrapCell(tt.cell, tt.width); got != tt.want {
			t.Errorf("%q at %d: %q, want %q", tt.cell, tt.width, got, tt.want)
		}
	}
}
