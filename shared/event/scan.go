package event

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// CheckLimits rejects bytes that are too large, not UTF-8, not exactly one JSON value, too deep or of too many
// tokens, before they are decoded into memory. It also rejects objects with a duplicate name, because readers
// disagree on which one counts.
func CheckLimits(data []byte) error {
	s := scanner{data: data, unique: true}
	return s.scanAll()
}

// Member is one name and its value in a JSON object.
type Member struct {
	// Name is the name without quotes and with escapes resolved.
	Name []byte
	// Value is the raw JSON of the value, a part of the input.
	Value []byte
}

// Members appends the members of a JSON object in their order, including repeated ones, and enforces the limits of
// CheckLimits. The values are parts of data.
func Members(data []byte, into []Member) ([]Member, error) {
	// The list is not a field of the scanner, so that the caller's array can stay on the stack.
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

// Elements appends the raw elements of a JSON array. The list must be a value that Members returned. Elements returns
// nil if it is not an array.
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

// scanner scans a JSON text once, without reflection and almost without allocations, because most messages are
// inspected once and then dropped.
type scanner struct {
	data   []byte
	at     int
	tokens int
	// unique rejects duplicate names in an object.
	unique bool
	// needsRewrite is set if encoding/json would write the text differently: with spaces between tokens, or
	// characters that it escapes for HTML.
	needsRewrite bool
}

// scanAll scans the whole text.
func (s *scanner) scanAll() error {
	if err := s.scanStart(); err != nil {
		return err
	}
	return s.scanRest()
}

// scanStart skips to the outermost value.
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

// scanRest scans the outermost value, and checks that it is the only one.
func (s *scanner) scanRest() error {
	if err := s.scanValue(0); err != nil {
		return err
	}
	return s.scanEnd()
}

// scanEnd returns an error if anything follows.
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

// scanValue scans one value at the given depth.
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

// scanObject scans an object at the given depth.
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

// scanMember scans a name and its value.
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

// scanArray scans an array at the given depth.
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

// openLevel skips an opening bracket and enforces the depth limit.
func (s *scanner) openLevel(depth int) error {
	if depth > MaxDepth {
		return poisonError("JSON nests deeper than %d", MaxDepth)
	}
	s.at++
	s.skipSpace()
	return s.countToken()
}

// acceptByte skips the byte if it is next, and reports whether it was.
func (s *scanner) acceptByte(bracket byte) bool {
	if s.at < len(s.data) && s.data[s.at] == bracket {
		s.at++
		return true
	}
	return false
}

// scanNext scans what follows a member or an element, and reports whether it is a comma (more follows) or the closing
// bracket.
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

// scanName scans a member's name and its colon.
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

// unescapeText decodes a JSON string that was already scanned.
func unescapeText(quoted []byte) string {
	var text string
	// The string is valid, so this cannot fail.
	_ = json.Unmarshal(quoted, &text)
	return text
}

// countToken counts one token and enforces the limit.
func (s *scanner) countToken() error {
	if s.tokens++; s.tokens > MaxTokens {
		return poisonError("more than %d JSON tokens", MaxTokens)
	}
	return nil
}

func (s *scanner) syntaxError(what string) error {
	return poisonError("not JSON: byte %d of %d: %s", s.at, len(s.data), what)
}

// nameSet is the set of an object's names so far. Most objects have few.
type nameSet struct {
	few  [8][]byte
	n    int
	many map[string]bool
}

// add adds the name and reports whether it is new.
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
