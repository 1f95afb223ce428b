package event

// space passes over blanks between tokens.
func (s *scan) space() {
	if s.at < len(s.data) && s.data[s.at] <= ' ' {
		s.blanks()
	}
}

func (s *scan) blanks() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
			s.loose = true
		default:
			return
		}
	}
}

// begins reports whether a JSON value may begin with the byte.
func begins(c byte) bool {
	switch c {
	case '{', '[', '"', '-', 't', 'f', 'n':
		return true
	default:
		return digit(c)
	}
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func hexDigit(c byte) bool { return digit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// word takes true, false or null.
func (s *scan) word(word string) error {
	if len(s.data)-s.at < len(word) || string(s.data[s.at:s.at+len(word)]) != word {
		return s.broken("a value is missing")
	}
	s.at += len(word)
	return s.token()
}

// ordinary are the bytes that stand in a string for themselves, wherever it is
// written: all but its end, escapes, control characters, and what encoding/json
// escapes for HTML. 0xE2 begins the two line separators that it escapes too.
var ordinary = func() (table [256]bool) {
	for c := range table {
		table[c] = c >= 0x20
	}
	for _, c := range []byte{'"', '\\', '<', '>', '&', 0xE2} {
		table[c] = false
	}
	return table
}()

// text takes a string, and reports whether it has escapes.
func (s *scan) text() (escaped bool, err error) {
	data, at := s.data, s.at+1
	for ; at < len(data); at++ {
		c := data[at]
		if ordinary[c] {
			continue
		}
		if s.at = at; c == '"' {
			s.at++
			return escaped, s.token()
		}
		switch {
		case c == '\\':
			escaped = true
			if s.at++; !s.escape() {
				return false, s.broken("an escape is none")
			}
			at = s.at
		case c < 0x20:
			return false, s.broken("a control character stands in a string")
		default:
			s.loose = true
		}
	}
	s.at = at
	return false, s.broken("it ends within a string")
}

// escape takes what follows a backslash, but for its last byte.
func (s *scan) escape() bool {
	if s.at >= len(s.data) {
		return false
	}
	switch s.data[s.at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			if s.at++; s.at >= len(s.data) || !hexDigit(s.data[s.at]) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

// number takes a number.
func (s *scan) number() error {
	s.closes('-')
	if !s.closes('0') && !s.digits() {
		return s.broken("a value is missing")
	}
	if s.closes('.') && !s.digits() {
		return s.broken("a number ends in a dot")
	}
	if s.closes('e') || s.closes('E') {
		if !s.closes('+') {
			s.closes('-')
		}
		if !s.digits() {
			return s.broken("a number has no exponent")
		}
	}
	return s.token()
}

// digits takes digits, and reports whether there are any.
func (s *scan) digits() bool {
	from := s.at
	for s.at < len(s.data) && digit(s.data[s.at]) {
		s.at++
	}
	return s.at > from
}
