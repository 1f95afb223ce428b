package notice

import "github.com/joist-autoscaler/joist/shared/event"

const (
	healthService  = "EC2"
	healthCategory = "scheduledChange"
)

// scheduledChange reads AWS Health's word of planned maintenance (B177). It has
// no deadline: the time that it names is when work may begin, often days ahead,
// and the drain must not wait for it.
func scheduledChange(r *reading, n *Notice) error {
	listed, err := r.resources()
	if err != nil {
		return err
	}
	if err := r.planned(); err != nil {
		return err
	}
	n.Detail = r.text(code)
	if n.Instances, err = r.entities(); err != nil {
		return err
	}
	if len(n.Instances) == 0 {
		// An event goes on over pages, and its resources may be of all of them; so
		// they count only where the page names nobody.
		n.Instances = once(listed)
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
		return r.poison("%q of %q is spelled %q of %q by AWS", short(what), short(of), healthCategory, healthService)
	case of != healthService || what != healthCategory:
		return r.foreign("it is a %q of %q", short(what), short(of))
	default:
		return nil
	}
}

// entities are the instances that the detail names, by id or ARN.
func (r *reading) entities() ([]string, error) {
	var found []string
	for _, element := range event.Elements(r.detail[affected], nil) {
		members, err := event.Members(element, nil)
		if err != nil {
			continue // It is no object.
		}
		var value [1][]byte
		if err := fill(value[:], []string{"entityValue"}, members); err != nil {
			return nil, err
		}
		if found, err = r.named(found, string(text(value[0]))); err != nil {
			return nil, err
		}
	}
	return once(found), nil
}

// once drops repeated ids.
func once(ids []string) []string {
	seen := make(map[string]bool, len(ids))
	var out []string
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}
