package podspec

// Tally counts by how many pods each key is named, so that Named can be kept up
// while pods come and go. The zero value is ready.
type Tally struct {
	named Named
	count map[string]int
}

// Named are the keys that some pod names. They change with the tally.
func (t *Tally) Named() Named {
	if t.named == nil {
		t.named = Named{}
	}
	return t.named
}

// Add counts the keys of one pod, and tells which were not in Named before.
func (t *Tally) Add(keys Named) (came []string) {
	for key := range keys {
		if t.count == nil {
			t.count = map[string]int{}
		}
		if t.count[key]++; t.count[key] == 1 {
			t.Named()[key], came = true, append(came, key)
		}
	}
	return came
}

// Remove is Add's inverse: it tells which are not in Named any more.
func (t *Tally) Remove(keys Named) (went []string) {
	for key := range keys {
		if t.count[key]--; t.count[key] == 0 {
			delete(t.count, key)
			delete(t.Named(), key)
			went = append(went, key)
		}
	}
	return went
}
