package notice

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/event"
)

const (
	healthService  = "EC2"
	healthCategory = "scheduledChange"
)

// scheduledChange reads AWS Health's word of planned maintenance. It has
// no deadline: the time that it names is when work may begin, often days ahead,
// and the drain must not wait for it.
func scheduledChange(r *reading, n *Notice) error {
	var room [4][]byte
	listed, err := r.resources(room[:0])
	if err != nil {
		return err
	}
	if err := r.planned(); err != nil {
		return err
	}
	n.Detail = r.said(code)
	if n.Instances, err = r.entities(n.Instances); err != nil {
		return err
	}
	if len(n.Instances) == 0 {
		// An event goes on over pages, and its resources may be of all of them; so
		// they count only where the page names nobody.
		n.Instances = once(n.Instances, listed)
	}
	switch value := r.detail[affected]; {
	case len(n.Instances) > 0:
		return nil
	case len(value) > 0 && value[0] == '[':
		return r.foreign("it affects no instance")
	default:
		return r.poison("the detail has no affectedEntities")
	}
}

// planned makes sure that the event is of EC2, and of something to come.
func (r *reading) planned() error {
	of, err := r.needed(service)
	if err != nil {
		return err
	}
	what, err := r.needed(category)
	switch {
	case err != nil:
		return err
	case nearly(of, healthService) || nearly(what, healthCategory):
		return r.poison("%q of %q is spelled %q of %q by AWS", short(string(what)), short(string(of)), healthCategory, healthService)
	case string(of) != healthService || string(what) != healthCategory:
		return r.foreign("it is a %q of %q", short(string(what)), short(string(of)))
	default:
		return nil
	}
}

// entities appends the instances that the detail names, by id or ARN.
func (r *reading) entities(into []string) ([]string, error) {
	var elements, names [4][]byte
	found := names[:0]
	for _, element := range event.Elements(r.detail[affected], elements[:0]) {
		var room [6]event.Member
		members, err := event.Members(element, room[:0])
		if err != nil {
			continue // It is no object.
		}
		var value [1][]byte
		if err := fill(value[:], entityNames[:], members); err != nil {
			return nil, err
		}
		if found, err = r.named(found, text(value[0])); err != nil {
			return nil, err
		}
	}
	return once(into, found), nil
}

// entityNames are the known names of an entity.
var entityNames = [...]string{"entityValue"}

// few is up to how many ids are told apart by comparing each with each.
const few = 8

// once appends ids, and none twice.
func once(into []string, ids [][]byte) []string {
	var seen map[string]bool
	if len(ids) > few {
		seen = make(map[string]bool, len(ids))
	}
	for _, id := range ids {
		if seen[string(id)] || seen == nil && slices.Contains(into, string(id)) {
			continue
		}
		said := string(id)
		if into = append(into, said); seen != nil {
			seen[said] = true
		}
	}
	return into
}
