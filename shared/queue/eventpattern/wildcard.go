package eventpattern

import (
	"errors"
	"fmt"
	"strings"
)

// compileWildcard matches strings in which each * stands for any number of characters. A backslash escapes * and
// itself.
func compileWildcard(operand any) (matcher, error) {
	text, ok := operand.(string)
	if !ok {
		return nil, fmt.Errorf("%s must be a string", describeValue(operand))
	}
	pieces, err := splitWildcard(text)
	if err != nil {
		return nil, err
	}
	return matchString(func(s string) bool { return matchPieces(s, pieces) }), nil
}

// splitWildcard splits the text at its stars: n stars give n+1 pieces.
func splitWildcard(text string) ([]string, error) {
	pieces := []string{""}
	star := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '*' {
			if star {
				return nil, errors.New("two * in a row")
			}
			star, pieces = true, append(pieces, "")
			continue
		}
		star = false
		if c == '\\' {
			i++
			if i == len(text) || (text[i] != '*' && text[i] != '\\') {
				return nil, errors.New(`a backslash is allowed only before * and \`)
			}
			c = text[i]
		}
		pieces[len(pieces)-1] += string([]byte{c})
	}
	return pieces, nil
}

// matchPieces uses the first occurrence of each inner piece: an earlier one never prevents a later match.
func matchPieces(s string, pieces []string) bool {
	first, last := pieces[0], pieces[len(pieces)-1]
	if len(pieces) == 1 {
		return s == first
	}
	rest, ok := strings.CutPrefix(s, first)
	if !ok || !strings.HasSuffix(rest, last) {
		return false
	}
	rest = rest[:len(rest)-len(last)]
	for _, piece := range pieces[1 : len(pieces)-1] {
		at := strings.Index(rest, piece)
		if at < 0 {
			return false
		}
		rest = rest[at+len(piece):]
	}
	return true
}
