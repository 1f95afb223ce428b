package packing

// alternatives is a column and the planes on which it is asked for.
type alternatives struct {
	column int
	planes uint64
}

// flexible reports whether as many columns as should be could hold whatever fits
// into this one, the column itself counted.
func (p *Packer) flexible(k int, planes uint64) bool {
	c := &p.problem.Columns[k]
	if c.Flexible <= 1 {
		return true
	}
	at := alternatives{k, planes}
	if got, ok := p.flexibles[at]; ok {
		return got
	}
	count := 0
	for other := range p.problem.Columns {
		o := &p.problem.Columns[other]
		if o.Pool != c.Pool || o.Stage != c.Stage || o.planes&planes == 0 || !fits(c.Room, o.Room) || !p.moderateLimits(c, o, nil) {
			continue
		}
		if count++; count >= c.Flexible {
			break
		}
	}
	if p.flexibles == nil {
		p.flexibles = map[alternatives]bool{}
	}
	p.flexibles[at] = count >= c.Flexible
	return count >= c.Flexible
}
