package main

import (
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extensionast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// Sentence is one sentence of a page, or one row of a table with " | " between its cells.
type Sentence struct {
	// Heading is the heading above it.
	Heading string
	// Text is the text that a reader sees: without links' targets and emphasis, with the quotes of code.
	Text string
}

// generated are the parts of a page that a program writes. Its own tests hold them to what they show.
var generated = regexp.MustCompile(`(?s)<!-- (\w+): written by .*?<!-- \w+: end -->`)

// readSentences returns the statements of a page in order. Headings, code blocks, images, the first rows of
// tables and generated parts are left out. A bold sentence of up to three words at the beginning of a paragraph, such as
// "Large objects.", is a heading.
func readSentences(page []byte) []Sentence {
	page = generated.ReplaceAll(page, nil)
	document := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(text.NewReader(page))
	r := sentenceReader{source: page}
	// The walker cannot fail, because visit does not.
	_ = ast.Walk(document, r.visit)
	return r.found
}

type sentenceReader struct {
	source  []byte
	heading string
	found   []Sentence
}

func (r *sentenceReader) visit(node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	switch node.Kind() {
	case ast.KindHeading:
		r.heading = r.readText(node)
	case ast.KindParagraph, ast.KindTextBlock:
		for _, sentence := range splitSentences(r.readText(node)) {
			r.found = append(r.found, Sentence{r.heading, sentence})
		}
	case extensionast.KindTableHeader:
	case extensionast.KindTableRow:
		var cells []string
		for cell := node.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, r.readText(cell))
		}
		r.found = append(r.found, Sentence{r.heading, strings.Join(cells, " | ")})
	default:
		return ast.WalkContinue, nil
	}
	return ast.WalkSkipChildren, nil
}

// readText returns the text of a node and of the nodes in it.
func (r *sentenceReader) readText(node ast.Node) string {
	var out strings.Builder
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		switch n := child.(type) {
		case *ast.Text:
			out.Write(n.Segment.Value(r.source))
			if n.SoftLineBreak() {
				out.WriteByte(' ')
			}
		case *ast.CodeSpan:
			out.WriteString("`" + r.readText(n) + "`")
		case *ast.Image, *ast.RawHTML:
		case *ast.Emphasis:
			if text := r.readText(n); n.PreviousSibling() != nil || !strings.HasSuffix(text, ".") || len(strings.Fields(text)) > 3 {
				out.WriteString(text)
			}
		default:
			out.WriteString(r.readText(n))
		}
	}
	return strings.TrimSpace(out.String())
}

// splitSentences splits a paragraph after each full stop, colon or question mark that a blank and the beginning of a sentence follow.
func splitSentences(paragraph string) []string {
	var out []string
	rest := paragraph
	for at := 0; at+2 < len(rest); at++ {
		if strings.IndexByte(".?!", rest[at]) >= 0 && rest[at+1] == ' ' && beginsSentence(rest[at+2]) {
			out = append(out, strings.TrimSpace(rest[:at+1]))
			rest, at = rest[at+2:], -1
		}
	}
	if rest = strings.TrimSpace(rest); rest != "" {
		out = append(out, rest)
	}
	return out
}

func beginsSentence(first byte) bool {
	return first >= 'A' && first <= 'Z' || first == '`'
}
