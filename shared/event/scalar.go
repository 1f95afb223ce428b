package event

// skipSpace skips whitespace between tokens.
func (s *scanner) skipSpace() {
	if s.at < len(s.data) && s.data[s.at] <= ' ' {
		s.skipBlanks()
	}
}

func (s *scanner) skipBlanks() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
			s.needsRewrite = true
		default:
			return
		}
	}
}

// canBeginValue reports whether a JSON value may begin with the byte.
func canBeginValue(c byte) bool {
	switch c {
	case '{', '[', '"', '-', 't', 'f', 'n':
		return true
	default:
		return isDigit(c)
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHexDigit(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// scanWord scans true, false or null.
func (s *scanner) scanWord(word string) error {
	if len(s.data)-s.at < len(word) || string(s.data[s.at:s.at+len(word)]) != word {
		return s.syntaxError("a value is missing")
	}
	s.at += len(word)
	return s.countToken()
}

// isOrdinary marks the bytes that a JSON string contains unescaped: all but quotes, backslashes, control characters,
// and those that encoding/json escapes for HTML. 0xE2 begins the two line separators that it also escapes.
var isOrdinary = func() (table [256]bool) {
	for c := range table {
		table[c] = c >= 0x20
	}
	for _, c := range []byte{'"', '\\', '<', '>', '&', 0xE2} {
		table[c] = false
	}
	return table
}()

// scanText scans a string and reports whether it has escapes.
func (s *scanner) scanText() (escaped bool, err error) {
	data, at := s.data, s.at+1
	for ; at < len(data); at++ {
		c := data[at]
		if isOrdinary[c] {
			continue
		}
		if s.at = at; c == '"' {
			s.at++
			return escaped, s.countToken()
		}
		switch {
		case c == '\\':
			escaped = true
			if s.at++; !s.scanEscape() {
				return false, s.syntaxError("an escape is none")
			}
			at = s.at
		case c < 0x20:
			return false, s.syntaxError("a control character stands in a string")
		default:
			s.needsRewrite = true
		}
	}
	s.at = at
	return false, s.syntaxError("it ends within a string")
}

// scanEscape scans what follows a backslash, except its last byte.
func (s *scanner) scanEscape() bool {
	if s.at >= len(s.data) {
		return false
	}
	switch s.data[s.at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			if s.at++; s.at >= len(s.data) || !isHexDigit(s.data[s.at]) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

// scanNumber scans a number.
func (s *scanner) scanNumber() error {
	s.acceptByte('-')
	if !s.acceptByte('0') && !s.scanDigits() {
		return s.syntaxError("a value is missing")
	}
	if s.acceptByte('.') && !s.scanDigits() {
		return s.syntaxError("a number ends in a dot")
	}
	if s.acceptByte('e') || s.acceptByte('E') {
		if !s.acceptByte('+') {
			s.acceptByte('-')
		}
		if !s.scanDigits() {
			return s.syntaxError("a number has no exponent")
		}
	}
	return s.countToken()
}

// scanDigits scans digits, and reports whether there are any.
func (s *scanner) scanDigits() bool {
	from := s.at
	for s.at < len(s.data) && isDigit(s.data[s.at]) {
		s.at++
	}
	return s.at > from
}
