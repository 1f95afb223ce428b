package event

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// CheckLimits refuses bytes that are too large, not UTF-8, not one JSON value,
// too deep or of too many tokens, before anything is decoded into memory. It
// refuses objects with a name twice as well: readers do not agree which counts.
func CheckLimits(data []byte) error {
	s := scanner{data: data, unique: true}
	return s.scanAll()
}

// Member is one name and its value in a JSON object.
type Member struct {
	// Name is the name without its quotes, and with its escapes resolved.
	Name []byte
	// Value is the value as it is written: a part of the bytes that were read.
	Value []byte
}

// Members appends the members of a JSON object in their order, repeated ones
// too, and keeps the limits of CheckLimits. The values are parts of data.
func Members(data []byte, into []Member) ([]Member, error) {
	// The list is no part of the scan, so that the caller's array can stay off the
	// heap.
	s := scanner{data: data}
	if err := s.scanStart(); err != nil {
		return nil, err
	}
	if s.at == len(data) || data[s.at] != '{' {
		if err := s.scanRest(); err != nil {
			return nil, err
		}
		return nil, poisonError("it is a JSON value, and no object")
	}
	if err := s.openLevel(1); err != nil {
		return nil, err
	}
	for more := !s.acceptByte('}'); more; {
		name, value, err := s.scanMember(1)
		if err != nil {
			return nil, err
		}
		into = append(into, Member{Name: name, Value: value})
		if more, err = s.scanNext('}'); err != nil {
			return nil, err
		}
	}
	if err := s.countToken(); err != nil {
		return nil, err
	}
	return into, s.scanEnd()
}

// Elements appends the elements of a JSON list, as they are written. It takes a
// value that Members gave, and so a valid one; of what is no list it gives none.
func Elements(list []byte, into [][]byte) [][]byte {
	s := scanner{data: list}
	if s.scanStart() != nil || s.at == len(list) || list[s.at] != '[' || s.openLevel(1) != nil {
		return nil
	}
	for more := !s.acceptByte(']'); more; {
		from := s.at
		if s.scanValue(1) != nil {
			return nil
		}
		into = append(into, list[from:s.at:s.at])
		var err error
		if more, err = s.scanNext(']'); err != nil {
			return nil
		}
	}
	if s.scanEnd() != nil {
		return nil
	}
	return into
}

func poisonError(format string, args ...any) error {
	return fault.F("reading a message", fault.Poison, format, args...)
}

// scanner is one walk over a JSON text, from left to right, without reflection and
// almost without memory: most messages are looked at once and then dropped.
type scanner struct {
	data   []byte
	at     int
	tokens int
	// unique refuses a name that stands twice in one object.
	unique bool
	// needsRewrite is set where encoding/json would write the text differently: with
	// spaces between tokens, or characters that it escapes for HTML.
	needsRewrite bool
}

// scanAll walks the whole text.
func (s *scanner) scanAll() error {
	if err := s.scanStart(); err != nil {
		return err
	}
	return s.scanRest()
}

// scanStart goes to the outermost value.
func (s *scanner) scanStart() error {
	if len(s.data) > MaxEnvelope {
		return poisonError("%d bytes exceed the limit of %d", len(s.data), MaxEnvelope)
	}
	if !utf8.Valid(s.data) {
		return poisonError("not UTF-8")
	}
	s.skipSpace()
	return nil
}

// scanRest walks the outermost value, and makes sure that it is the only one.
func (s *scanner) scanRest() error {
	if err := s.scanValue(0); err != nil {
		return err
	}
	return s.scanEnd()
}

// scanEnd makes sure that nothing follows.
func (s *scanner) scanEnd() error {
	s.skipSpace()
	switch {
	case s.at == len(s.data):
		return nil
	case canBeginValue(s.data[s.at]):
		return poisonError("more than one JSON value (the second begins at byte %d)", s.at)
	default:
		return s.syntaxError("something follows the value")
	}
}

// scanValue walks one value that lies in depth objects and lists.
func (s *scanner) scanValue(depth int) error {
	if s.at >= len(s.data) {
		return s.syntaxError("it ends where a value belongs")
	}
	switch s.data[s.at] {
	case '{':
		return s.scanObject(depth + 1)
	case '[':
		return s.scanArray(depth + 1)
	case '"':
		_, err := s.scanText()
		return err
	case 't':
		return s.scanWord("true")
	case 'f':
		return s.scanWord("false")
	case 'n':
		return s.scanWord("null")
	default:
		return s.scanNumber()
	}
}

// scanObject walks an object, which is the depth-th level.
func (s *scanner) scanObject(depth int) error {
	if err := s.openLevel(depth); err != nil {
		return err
	}
	var seen nameSet
	for more := !s.acceptByte('}'); more; {
		name, _, err := s.scanMember(depth)
		if err != nil {
			return err
		}
		if s.unique && !seen.add(name) {
			return poisonError("the name %q stands twice in one object", string(name))
		}
		if more, err = s.scanNext('}'); err != nil {
			return err
		}
	}
	return s.countToken()
}

// scanMember walks a name and its value.
func (s *scanner) scanMember(depth int) (name, value []byte, err error) {
	if name, err = s.scanName(); err != nil {
		return nil, nil, err
	}
	from := s.at
	if err := s.scanValue(depth); err != nil {
		return nil, nil, err
	}
	return name, s.data[from:s.at:s.at], nil
}

// scanArray walks a list, which is the depth-th level.
func (s *scanner) scanArray(depth int) error {
	if err := s.openLevel(depth); err != nil {
		return err
	}
	for more := !s.acceptByte(']'); more; {
		err := s.scanValue(depth)
		if err != nil {
			return err
		}
		if more, err = s.scanNext(']'); err != nil {
			return err
		}
	}
	return s.countToken()
}

// openLevel takes the bracket of a level.
func (s *scanner) openLevel(depth int) error {
	if depth > MaxDepth {
		return poisonError("JSON nests deeper than %d", MaxDepth)
	}
	s.at++
	s.skipSpace()
	return s.countToken()
}

// acceptByte takes the closing bracket, if it stands here.
func (s *scanner) acceptByte(bracket byte) bool {
	if s.at < len(s.data) && s.data[s.at] == bracket {
		s.at++
		return true
	}
	return false
}

// scanNext takes what stands behind a member or an element: a comma, so that there
// is more, or the closing bracket.
func (s *scanner) scanNext(bracket byte) (more bool, err error) {
	s.skipSpace()
	if s.acceptByte(',') {
		s.skipSpace()
		return true, nil
	}
	if s.acceptByte(bracket) {
		return false, nil
	}
	return false, s.syntaxError("a comma or " + string(bracket) + " is missing")
}

// scanName takes a member's name and its colon.
func (s *scanner) scanName() ([]byte, error) {
	if s.at >= len(s.data) || s.data[s.at] != '"' {
		return nil, s.syntaxError("a name is missing")
	}
	from := s.at
	escaped, err := s.scanText()
	if err != nil {
		return nil, err
	}
	name := s.data[from+1 : s.at-1 : s.at-1]
	if escaped {
		name = []byte(unescapeText(s.data[from:s.at]))
	}
	if s.skipSpace(); !s.acceptByte(':') {
		return nil, s.syntaxError("a colon is missing")
	}
	s.skipSpace()
	return name, nil
}

// unescapeText is the text of a JSON string that was walked already.
func unescapeText(quoted []byte) string {
	var text string
	// It is valid, so this cannot fail.
	_ = json.Unmarshal(quoted, &text)
	return text
}

// countToken counts one token.
func (s *scanner) countToken() error {
	if s.tokens++; s.tokens > MaxTokens {
		return poisonError("more than %d JSON tokens", MaxTokens)
	}
	return nil
}

func (s *scanner) syntaxError(what string) error {
	return poisonError("not JSON: byte %d of %d: %s", s.at, len(s.data), what)
}

// nameSet are the names that an object has had so far. Most have few.
type nameSet struct {
	few  [8][]byte
	n    int
	many map[string]bool
}

// add reports whether the name is new.
func (n *nameSet) add(name []byte) bool {
	if n.many != nil {
		before := len(n.many)
		n.many[string(name)] = true
		return len(n.many) > before
	}
	for _, had := range n.few[:n.n] {
		if string(had) == string(name) {
			return false
		}
	}
	if n.n < len(n.few) {
		n.few[n.n] = name
		n.n++
		return true
	}
	n.many = map[string]bool{string(name): true}
	for _, had := range n.few {
		n.many[string(had)] = true
	}
	return true
}
