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
	if s.Any {
		return true
	}
	if s.ID == "" && s.Name == "" && s.Owner == "" && len(s.Tags) == 0 {
		return false
	}
	if s.ID != "" && s.ID != t.id || s.Name != "" && !cloud.Glob(s.Name, t.name) || !c.ownedBy(s, t) {
		return false
	}
	return cloud.Tagged(s.Tags, t.tags)
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
