package notice

// stringCache are strings that come again and again: an account, a region, a state. Who has
// read one lately has it without memory of its own.
type stringCache struct {
	entries [stringCacheSize]string
	// oldest is the place of the one to forget first.
	oldest int
}

const (
	stringCacheSize = 12
	// maxCachedBytes keeps what nobody will say again from being remembered, in bytes.
	maxCachedBytes = 64
)

// intern is a text as a string.
func (t *stringCache) intern(text []byte) string {
	if len(text) > maxCachedBytes {
		return string(text)
	}
	for i := range t.entries {
		if t.entries[i] == string(text) {
			return t.entries[i]
		}
	}
	said := string(text)
	t.entries[t.oldest] = said
	t.oldest = (t.oldest + 1) % stringCacheSize
	return said
}
