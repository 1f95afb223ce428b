package evaluator

import (
	"errors"
	"strings"
)

// pattern is a string of a policy: literal text, the wildcards * and ?, and variables
// of the form ${key}. ${*}, ${?} and ${$} are those characters themselves.
type pattern []token

type token struct {
	kind kind
	// text is what a literal is, or a variable's key in lower case.
	text string
	// fallback is a variable's default, if it has one.
	fallback *string
}

type kind int

const (
	literal kind = iota
	anyText
	anyOne
	variable
)

func compilePattern(text string) (pattern, error) {
	var out pattern
	for text != "" {
		switch {
		case text[0] == '*':
			out, text = append(out, token{kind: anyText}), text[1:]
		case text[0] == '?':
			out, text = append(out, token{kind: anyOne}), text[1:]
		case strings.HasPrefix(text, "${"):
			inner, rest, closed := strings.Cut(text[2:], "}")
			if !closed {
				return nil, errors.New("a variable is not closed")
			}
			t, err := parseVariable(inner)
			if err != nil {
				return nil, err
			}
			out, text = append(out, t), rest
		default:
			end := len(text)
			if i := strings.IndexAny(text, "*?"); i >= 0 {
				end = i
			}
			if i := strings.Index(text, "${"); i >= 0 && i < end {
				end = i
			}
			out, text = append(out, token{text: text[:end]}), text[end:]
		}
	}
	return out, nil
}

func parseVariable(inner string) (token, error) {
	key, fallback, has := strings.Cut(inner, ",")
	key = strings.TrimSpace(key)
	switch {
	case key == "*" || key == "?" || key == "$":
		return token{text: key}, nil
	case key == "":
		return token{}, errors.New("a variable has no name")
	case !has:
		return token{kind: variable, text: strings.ToLower(key)}, nil
	}
	fallback = strings.TrimSpace(fallback)
	if len(fallback) < 2 || fallback[0] != '\'' || fallback[len(fallback)-1] != '\'' {
		return token{}, errors.New("the default of a variable requires single quotes")
	}
	fallback = fallback[1 : len(fallback)-1]
	return token{kind: variable, text: strings.ToLower(key), fallback: &fallback}, nil
}

// fillVariables replaces variables by the request's values, which are never wildcards. It
// returns false if a variable has no value or several.
func (p pattern) fillVariables(c context) (pattern, bool) {
	out := make(pattern, 0, len(p))
	for _, t := range p {
		if t.kind != variable {
			out = append(out, t)
			continue
		}
		values := c[t.text]
		switch {
		case len(values) == 1:
			out = append(out, token{text: values[0]})
		case len(values) == 0 && t.fallback != nil:
			out = append(out, token{text: *t.fallback})
		default:
			return nil, false
		}
	}
	return out, true
}

// literalText returns the text of a filled pattern with wildcards as plain characters, for
// operators such as StringEquals.
func (p pattern) literalText() string {
	var b strings.Builder
	for _, t := range p {
		switch t.kind {
		case anyText:
			b.WriteByte('*')
		case anyOne:
			b.WriteByte('?')
		default:
			b.WriteString(t.text)
		}
	}
	return b.String()
}

// matches reports whether a filled pattern matches the whole text. A wildcard also matches
// colons and slashes. AWS documents matching within one segment of an ARN, but matches more,
// so the wider rule never hides an allowed attack.
func (p pattern) matches(text string) bool {
	if len(p) == 0 {
		return text == ""
	}
	switch head, rest := p[0], p[1:]; head.kind {
	case anyText:
		for i := range len(text) + 1 {
			if rest.matches(text[i:]) {
				return true
			}
		}
		return false
	case anyOne:
		// Keys and ARNs are ASCII, so bytes suffice.
		return text != "" && rest.matches(text[1:])
	default:
		after, ok := strings.CutPrefix(text, head.text)
		return ok && rest.matches(after)
	}
}

// splitARN splits a filled pattern of an ARN into its six parts; the last may have colons.
func (p pattern) splitARN() []pattern {
	out := []pattern{nil}
	for _, t := range p {
		if t.kind != literal {
			out[len(out)-1] = append(out[len(out)-1], t)
			continue
		}
		for i, piece := range strings.SplitN(t.text, ":", 7-len(out)) {
			if i > 0 {
				out = append(out, nil)
			}
			if piece != "" {
				out[len(out)-1] = append(out[len(out)-1], token{text: piece})
			}
		}
	}
	return out
}

// matchesARN compares the six parts of an ARN separately, as ArnEquals and ArnLike do.
func (p pattern) matchesARN(text string) bool {
	have := strings.SplitN(text, ":", 6)
	want := p.splitARN()
	if len(have) != 6 || len(want) != 6 {
		return false
	}
	for i := range want {
		if !want[i].matches(have[i]) {
			return false
		}
	}
	return true
}
