package podspec

// Tally counts the pods that use each label key, to update Named as pods are added and removed. The
// zero value is ready to use.
type Tally struct {
	named Named
	count map[string]int
}

// Named returns the keys that any pod uses. The map changes with the tally.
func (t *Tally) Named() Named {
	if t.named == nil {
		t.named = Named{}
	}
	return t.named
}

// Add adds the keys of one pod, and returns the keys that are new in Named.
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

// Remove removes the keys of one pod, and returns the keys that are no longer in Named.
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
