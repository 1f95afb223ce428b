package manifest

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The limits of a file. An object in Kubernetes cannot be larger than 1.5 MiB,
// and a List of a large cluster's pods is still smaller than documentMax.
const (
	fileMax      = 32 << 20 // bytes
	documentMax  = 16 << 20 // bytes
	documentsMax = 10_000
)

// chunk is one document's text. before is the number of lines above it.
type chunk struct {
	text   string
	before int
}

// splitDocuments splits a file at its document markers. It does so before parsing, so that
// a syntax error affects one document only. The text is the problem, or "".
func splitDocuments(data []byte) ([]chunk, string) {
	if len(data) > fileMax {
		return nil, fmt.Sprintf("the file has %d bytes, more than %d: split it", len(data), fileMax)
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	var chunks []chunk
	var text strings.Builder
	start, number := 0, 0
	flush := func() {
		if !isEmptyText(text.String()) {
			chunks = append(chunks, chunk{text.String(), start})
		}
		text.Reset()
		start = number
	}
	for line := range strings.Lines(strings.ReplaceAll(string(data), "\r\n", "\n")) {
		if isMarker(line) {
			flush()
		}
		text.WriteString(line)
		number++
	}
	flush()
	if len(chunks) > documentsMax {
		return nil, fmt.Sprintf("the file has %d documents, more than %d: split it", len(chunks), documentsMax)
	}
	return chunks, ""
}

func isMarker(line string) bool {
	rest, ok := strings.CutPrefix(line, "---")
	return ok && (rest == "" || strings.ContainsAny(rest[:1], " \t\n"))
}

// isEmptyText reports whether a text has only comments, directives and markers.
func isEmptyText(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && line != "---" && line != "..." && line[0] != '#' && line[0] != '%' {
			return false
		}
	}
	return true
}

// checkText returns the reason and the line if the chunk cannot be parsed at all.
func (c chunk) checkText() (line int, what string) {
	if len(c.text) > documentMax {
		return 1, fmt.Sprintf("the document has %d bytes, more than %d", len(c.text), documentMax)
	}
	number := 0
	for text := range strings.Lines(c.text) {
		number++
		if !utf8.ValidString(text) {
			return number, "this line is not UTF-8: save the file in that encoding"
		}
		if strings.ContainsRune(text, 0) {
			return number, "this line has a zero byte: the file is not text"
		}
	}
	return 0, ""
}
