package cloud

// Glob reports whether text matches EC2's wildcards: * is any text and ? any one character.
func Glob(pattern, text string) bool {
	p, t, star, mark := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0:
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// Tagged reports whether tags match all of wanted, whose values may contain EC2's wildcards.
func Tagged(wanted, tags map[string]string) bool {
	for key, pattern := range wanted {
		if value, ok := tags[key]; !ok || !Glob(pattern, value) {
			return false
		}
	}
	return true
}
