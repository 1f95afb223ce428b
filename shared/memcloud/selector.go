package memcloud

import "github.com/joist-autoscaler/joist/shared/cloud"

// thing is what selectors look at.
type thing struct {
	id, name, owner string
	// owned says that owners matter: without one, a name is looked for among
	// one's own and Amazon's alone, lest somebody offers an image of that name.
	owned bool
	tags  map[string]string
}

// finds reports whether any selector finds the thing. A selector that says
// nothing finds nothing.
func (c *Cloud) finds(selectors []cloud.Selector, t thing) bool {
	for _, s := range selectors {
		if c.selects(s, t) {
			return true
		}
	}
	return false
}

func (c *Cloud) selects(s cloud.Selector, t thing) bool {
	if s.ID == "" && s.Name == "" && s.Owner == "" && len(s.Tags) == 0 {
		return false
	}
	if s.ID != "" && s.ID != t.id || s.Name != "" && !glob(s.Name, t.name) || !c.ownedBy(s, t) {
		return false
	}
	for key, pattern := range s.Tags {
		if value, ok := t.tags[key]; !ok || !glob(pattern, value) {
			return false
		}
	}
	return true
}

func (c *Cloud) ownedBy(s cloud.Selector, t thing) bool {
	own := t.owner == c.options.Account || t.owner == "self" || t.owner == ""
	switch {
	case !t.owned:
		return true
	case s.Owner == "self":
		return own
	case s.Owner != "":
		return s.Owner == t.owner
	case s.ID != "":
		return true
	}
	return own || t.owner == "amazon"
}

// glob matches EC2's wildcards: * is any text and ? any one character.
func glob(pattern, text string) bool {
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
