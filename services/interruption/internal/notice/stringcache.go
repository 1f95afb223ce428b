package notice

// stringCache interns recent strings: accounts, regions and states repeat, and interning
// them saves allocations.
type stringCache struct {
	entries [stringCacheSize]string
	// oldest is the index of the entry that is replaced next.
	oldest int
}

const (
	stringCacheSize = 12
	// maxCachedBytes excludes long texts, which rarely repeat.
	maxCachedBytes = 64
)

// intern returns the text as a string.
func (c *stringCache) intern(text []byte) string {
	if len(text) > maxCachedBytes {
		return string(text)
	}
	for i := range c.entries {
		if c.entries[i] == string(text) {
			return c.entries[i]
		}
	}
	s := string(text)
	c.entries[c.oldest] = s
	c.oldest = (c.oldest + 1) % stringCacheSize
	return s
}
