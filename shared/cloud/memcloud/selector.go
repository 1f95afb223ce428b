package memcloud

import "github.com/joist-autoscaler/joist/shared/cloud"

// thing has the fields that selectors match.
type thing struct {
	id, name, owner string
	// owned means that the owner matters: a selector without an owner matches names only of the account and Amazon,
	// because any account may publish an image with that name.
	owned bool
	tags  map[string]string
}

// finds reports whether any selector matches the thing. An empty selector matches nothing.
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
	case s.Name == "" || s.ID != "":
		return true
	}
	return own || t.owner == "amazon"
}
