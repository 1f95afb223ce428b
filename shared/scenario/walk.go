package scenario

import (
	"encoding/json"
	"fmt"
	"strings"
)

// walk is where a reader of JSON tokens is.
type walk []step

// step is a list or an object around the reader.
type step struct {
	list bool
	// index counts a list's items; key is that of an object's value.
	index int
	key   string
	// named says that the object's next token is a value.
	named bool
}

// enter takes note of a token before what it begins is read.
func (w walk) enter(token json.Token) {
	if len(w) == 0 {
		return
	}
	top := &w[len(w)-1]
	if text, isText := token.(string); isText && !top.list && !top.named {
		top.key = text
	}
}

// leave moves on past a token.
func (w *walk) leave(token json.Token) {
	switch token {
	case json.Delim('{'), json.Delim('['):
		*w = append(*w, step{list: token == json.Delim('[')})
		return
	case json.Delim('}'), json.Delim(']'):
		*w = (*w)[:len(*w)-1]
	}
	if len(*w) == 0 {
		return
	}
	top := &(*w)[len(*w)-1]
	switch {
	case top.list:
		top.index++
	case token == json.Delim('}') || token == json.Delim(']') || top.named:
		top.named = false
	default:
		top.named = true
	}
}

// String is the path, such as podGroups[3].count.
func (w walk) String() string {
	var out strings.Builder
	for _, s := range w {
		if s.list {
			fmt.Fprintf(&out, "[%d]", s.index)
			continue
		}
		if out.Len() > 0 {
			out.WriteByte('.')
		}
		out.WriteString(s.key)
	}
	return out.String()
}
