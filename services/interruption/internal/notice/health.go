package notice

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/event"
)

const (
	healthService  = "EC2"
	healthCategory = "scheduledChange"
)

// readScheduledChange reads AWS Health's word of planned maintenance. It has
// no deadline: the time that it names is when work may begin, often days ahead,
// and the drain must not wait for it.
func readScheduledChange(r *eventReader, n *Notice) error {
	var room [4][]byte
	listed, err := r.resourceInstances(room[:0])
	if err != nil {
		return err
	}
	if err := r.checkScheduled(); err != nil {
		return err
	}
	n.Detail = r.internedText(detailCode)
	if n.Instances, err = r.affectedInstances(n.Instances); err != nil {
		return err
	}
	if len(n.Instances) == 0 {
		// An event goes on over pages, and its resources may be of all of them; so
		// they count only where the page names nobody.
		n.Instances = appendUnique(n.Instances, listed)
	}
	switch value := r.detail[detailAffected]; {
	case len(n.Instances) > 0:
		return nil
	case len(value) > 0 && value[0] == '[':
		return r.foreignError("it affects no instance")
	default:
		return r.poisonError("the detail has no affectedEntities")
	}
}

// checkScheduled makes sure that the event is of EC2, and of something to come.
func (r *eventReader) checkScheduled() error {
	of, err := r.requiredText(detailService)
	if err != nil {
		return err
	}
	what, err := r.requiredText(detailCategory)
	switch {
	case err != nil:
		return err
	case differsInCase(of, healthService) || differsInCase(what, healthCategory):
		return r.poisonError("%q of %q is spelled %q of %q by AWS", truncateText(string(what)), truncateText(string(of)), healthCategory, healthService)
	case string(of) != healthService || string(what) != healthCategory:
		return r.foreignError("it is a %q of %q", truncateText(string(what)), truncateText(string(of)))
	default:
		return nil
	}
}

// affectedInstances appends the instances that the detail names, by id or ARN.
func (r *eventReader) affectedInstances(into []string) ([]string, error) {
	var elements, names [4][]byte
	found := names[:0]
	for _, element := range event.Elements(r.detail[detailAffected], elements[:0]) {
		var room [6]event.Member
		members, err := event.Members(element, room[:0])
		if err != nil {
			continue // It is no object.
		}
		var value [1][]byte
		if err := collectFields(value[:], entityNames[:], members); err != nil {
			return nil, err
		}
		if found, err = r.appendInstance(found, stringValue(value[0])); err != nil {
			return nil, err
		}
	}
	return appendUnique(into, found), nil
}

// entityNames are the known names of an entity.
var entityNames = [...]string{"entityValue"}

// linearSearchLimit is up to how many ids are told apart by comparing each with each.
const linearSearchLimit = 8

// appendUnique appends ids, and none twice.
func appendUnique(into []string, ids [][]byte) []string {
	var seen map[string]bool
	if len(ids) > linearSearchLimit {
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
