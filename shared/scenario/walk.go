package scenario

import (
	"encoding/json"
	"fmt"
	"strings"
)

// walk is the position of a reader of JSON tokens.
type walk []step

// step is a list or an object that contains the position.
type step struct {
	list bool
	// index is the current item of a list; key is the current key of an object.
	index int
	key   string
	// named is true if the object's next token is a value.
	named bool
}

// enter records a token before its contents are read.
func (w walk) enter(token json.Token) {
	if len(w) == 0 {
		return
	}
	top := &w[len(w)-1]
	if text, isText := token.(string); isText && !top.list && !top.named {
		top.key = text
	}
}

// leave moves past a token.
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

// String returns the path, such as podGroups[3].count.
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
