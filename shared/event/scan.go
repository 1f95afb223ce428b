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
	s := scan{data: data, unique: true}
	return s.whole()
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
	s := scan{data: data}
	if err := s.begin(); err != nil {
		return nil, err
	}
	if s.at == len(data) || data[s.at] != '{' {
		if err := s.rest(); err != nil {
			return nil, err
		}
		return nil, unreadable("it is a JSON value, and no object")
	}
	if err := s.open(1); err != nil {
		return nil, err
	}
	for more := !s.closes('}'); more; {
		name, value, err := s.member(1)
		if err != nil {
			return nil, err
		}
		into = append(into, Member{Name: name, Value: value})
		if more, err = s.next('}'); err != nil {
			return nil, err
		}
	}
	if err := s.token(); err != nil {
		return nil, err
	}
	return into, s.end()
}

// Elements appends the elements of a JSON list, as they are written. It takes a
// value that Members gave, and so a valid one; of what is no list it gives none.
func Elements(list []byte, into [][]byte) [][]byte {
	s := scan{data: list}
	if s.begin() != nil || s.at == len(list) || list[s.at] != '[' || s.open(1) != nil {
		return nil
	}
	for more := !s.closes(']'); more; {
		from := s.at
		if s.value(1) != nil {
			return nil
		}
		into = append(into, list[from:s.at:s.at])
		var err error
		if more, err = s.next(']'); err != nil {
			return nil
		}
	}
	if s.end() != nil {
		return nil
	}
	return into
}

func unreadable(format string, args ...any) error {
	return fault.F("reading a message", fault.Poison, format, args...)
}

// scan is one walk over a JSON text, from left to right, without reflection and
// almost without memory: most messages are looked at once and then dropped.
type scan struct {
	data   []byte
	at     int
	tokens int
	// unique refuses a name that stands twice in one object.
	unique bool
	// loose is set where encoding/json would write the text differently: with
	// spaces between tokens, or characters that it escapes for HTML.
	loose bool
}

// whole walks the whole text.
func (s *scan) whole() error {
	if err := s.begin(); err != nil {
		return err
	}
	return s.rest()
}

// begin goes to the outermost value.
func (s *scan) begin() error {
	if len(s.data) > MaxEnvelope {
		return unreadable("%d bytes exceed the limit of %d", len(s.data), MaxEnvelope)
	}
	if !utf8.Valid(s.data) {
		return unreadable("not UTF-8")
	}
	s.space()
	return nil
}

// rest walks the outermost value, and makes sure that it is the only one.
func (s *scan) rest() error {
	if err := s.value(0); err != nil {
		return err
	}
	return s.end()
}

// end makes sure that nothing follows.
func (s *scan) end() error {
	s.space()
	switch {
	case s.at == len(s.data):
		return nil
	case begins(s.data[s.at]):
		return unreadable("more than one JSON value (the second begins at byte %d)", s.at)
	default:
		return s.broken("something follows the value")
	}
}

// value walks one value that lies in depth objects and lists.
func (s *scan) value(depth int) error {
	if s.at >= len(s.data) {
		return s.broken("it ends where a value belongs")
	}
	switch s.data[s.at] {
	case '{':
		return s.object(depth + 1)
	case '[':
		return s.array(depth + 1)
	case '"':
		_, err := s.text()
		return err
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

// object walks an object, which is the depth-th level.
func (s *scan) object(depth int) error {
	if err := s.open(depth); err != nil {
		return err
	}
	var seen names
	for more := !s.closes('}'); more; {
		name, _, err := s.member(depth)
		if err != nil {
			return err
		}
		if s.unique && !seen.add(name) {
			return unreadable("the name %q stands twice in one object", string(name))
		}
		if more, err = s.next('}'); err != nil {
			return err
		}
	}
	return s.token()
}

// member walks a name and its value.
func (s *scan) member(depth int) (name, value []byte, err error) {
	if name, err = s.name(); err != nil {
		return nil, nil, err
	}
	from := s.at
	if err := s.value(depth); err != nil {
		return nil, nil, err
	}
	return name, s.data[from:s.at:s.at], nil
}

// array walks a list, which is the depth-th level.
func (s *scan) array(depth int) error {
	if err := s.open(depth); err != nil {
		return err
	}
	for more := !s.closes(']'); more; {
		err := s.value(depth)
		if err != nil {
			return err
		}
		if more, err = s.next(']'); err != nil {
			return err
		}
	}
	return s.token()
}

// open takes the bracket of a level.
func (s *scan) open(depth int) error {
	if depth > MaxDepth {
		return unreadable("JSON nests deeper than %d", MaxDepth)
	}
	s.at++
	s.space()
	return s.token()
}

// closes takes the closing bracket, if it stands here.
func (s *scan) closes(bracket byte) bool {
	if s.at < len(s.data) && s.data[s.at] == bracket {
		s.at++
		return true
	}
	return false
}

// next takes what stands behind a member or an element: a comma, so that there
// is more, or the closing bracket.
func (s *scan) next(bracket byte) (more bool, err error) {
	s.space()
	if s.closes(',') {
		s.space()
		return true, nil
	}
	if s.closes(bracket) {
		return false, nil
	}
	return false, s.broken("a comma or " + string(bracket) + " is missing")
}

// name takes a member's name and its colon.
func (s *scan) name() ([]byte, error) {
	if s.at >= len(s.data) || s.data[s.at] != '"' {
		return nil, s.broken("a name is missing")
	}
	from := s.at
	escaped, err := s.text()
	if err != nil {
		return nil, err
	}
	name := s.data[from+1 : s.at-1 : s.at-1]
	if escaped {
		name = []byte(unescaped(s.data[from:s.at]))
	}
	if s.space(); !s.closes(':') {
		return nil, s.broken("a colon is missing")
	}
	s.space()
	return name, nil
}

// unescaped is the text of a JSON string that was walked already.
func unescaped(quoted []byte) string {
	var text string
	// It is valid, so this cannot fail.
	_ = json.Unmarshal(quoted, &text)
	return text
}

// token counts one token.
func (s *scan) token() error {
	if s.tokens++; s.tokens > MaxTokens {
		return unreadable("more than %d JSON tokens", MaxTokens)
	}
	return nil
}

func (s *scan) broken(what string) error {
	return unreadable("not JSON: byte %d of %d: %s", s.at, len(s.data), what)
}

// names are the names that an object has had so far. Most have few.
type names struct {
	few  [8][]byte
	n    int
	many map[string]bool
}

// add reports whether the name is new.
func (n *names) add(name []byte) bool {
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
