package consolidation

// Compared returns the number of comparisons with a node or a block of nodes.
func (f *Prefilter) Compared() int { return f.compared }
