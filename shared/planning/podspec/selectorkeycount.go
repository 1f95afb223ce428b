package podspec

// SelectorKeyCount counts the pods that use each label key, to update Keys as pods are added and
// removed. The zero value is ready to use.
type SelectorKeyCount struct {
	keys  SelectorKeys
	count map[string]int
}

// Keys returns the keys that any pod uses. The map changes with the count.
func (t *SelectorKeyCount) Keys() SelectorKeys {
	if t.keys == nil {
		t.keys = SelectorKeys{}
	}
	return t.keys
}

// Add adds the keys of one pod, and returns the keys that are new in Keys.
func (t *SelectorKeyCount) Add(keys SelectorKeys) (came []string) {
	for key := range keys {
		if t.count == nil {
			t.count = map[string]int{}
		}
		if t.count[key]++; t.count[key] == 1 {
			t.Keys()[key], came = true, append(came, key)
		}
	}
	return came
}

// Remove removes the keys of one pod, and returns the keys that are no longer in Keys.
func (t *SelectorKeyCount) Remove(keys SelectorKeys) (went []string) {
	for key := range keys {
		if t.count[key]--; t.count[key] == 0 {
			delete(t.count, key)
			delete(t.Keys(), key)
			went = append(went, key)
		}
	}
	return went
}
