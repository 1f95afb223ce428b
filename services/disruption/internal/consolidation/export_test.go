package consolidation

// Compared returns the number of comparisons with a node or a block of nodes.
func (f *Prefilter) Compared() int { return f.compared }

// Used returns the number of changes that a call has not undone.
func (f *Prefilter) Used() int { return len(f.used) }
