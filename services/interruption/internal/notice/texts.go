package notice

// texts are strings that come again and again: an account, a region, a state. Who has
// read one lately has it without memory of its own.
type texts struct {
	known [textsKnown]string
	// oldest is the place of the one to forget first.
	oldest int
}

const (
	textsKnown = 12
	// textMax keeps what nobody will say again from being remembered, in bytes.
	textMax = 64
)

// of is a text as a string.
func (t *texts) of(text []byte) string {
	if len(text) > textMax {
		return string(text)
	}
	for i := range t.known {
		if t.known[i] == string(text) {
			return t.known[i]
		}
	}
	said := string(text)
	t.known[t.oldest] = said
	t.oldest = (t.oldest + 1) % textsKnown
	return said
}
