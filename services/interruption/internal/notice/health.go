package notice

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/event"
)

const (
	healthService  = "EC2"
	healthCategory = "scheduledChange"
)

// readScheduledChange decodes an AWS Health event about planned maintenance. It sets no
// deadline: the event's time is when the maintenance may begin, often days later, and the
// drain must not wait for it.
func readScheduledChange(r *eventReader, n *Notice) error {
	var buffer [4][]byte
	listed, err := r.resourceInstances(buffer[:0])
	if err != nil {
		return err
	}
	if err := r.checkScheduled(); err != nil {
		return err
	}
	n.Detail = string(r.text(detailCode))
	if n.Instances, err = r.affectedInstances(n.Instances); err != nil {
		return err
	}
	if len(n.Instances) == 0 {
		// A Health event may have several pages, and its resources may be those of all
		// pages, so they count only if this page names no instance.
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

// checkScheduled returns fault.Foreign for an event of another service or category than
// EC2's scheduled changes.
func (r *eventReader) checkScheduled() error {
	service, err := r.requiredText(detailService)
	if err != nil {
		return err
	}
	category, err := r.requiredText(detailCategory)
	switch {
	case err != nil:
		return err
	case differsInCase(service, healthService) || differsInCase(category, healthCategory):
		return r.poisonError("%q of %q differs in case from AWS's %q of %q", truncateText(string(category)), truncateText(string(service)), healthCategory, healthService)
	case string(service) != healthService || string(category) != healthCategory:
		return r.foreignError("it is a %q of %q", truncateText(string(category)), truncateText(string(service)))
	default:
		return nil
	}
}

// affectedInstances appends the instances among the affected entities, which are ids or
// ARNs.
func (r *eventReader) affectedInstances(into []string) ([]string, error) {
	var elements, names [4][]byte
	found := names[:0]
	for _, element := range event.SplitJSON(r.detail[detailAffected], '[', elements[:0]) {
		var value [1][]byte
		err := collectFields(value[:], entityNames[:], element)
		if err != nil {
			return nil, err
		}
		if found, err = r.appendInstance(found, stringValue(value[0])); err != nil {
			return nil, err
		}
	}
	return appendUnique(into, found), nil
}

// entityNames are the known fields of an entity.
var entityNames = [...]string{"entityValue"}

// linearSearchLimit is the number of ids above which appendUnique uses a map.
const linearSearchLimit = 8

// appendUnique appends the ids that the list does not have.
func appendUnique(into []string, ids [][]byte) []string {
	var seen map[string]bool
	if len(ids) > linearSearchLimit {
		seen = make(map[string]bool, len(ids))
	}
	for _, id := range ids {
		if seen[string(id)] || seen == nil && slices.Contains(into, string(id)) {
			continue
		}
		text := string(id)
		if into = append(into, text); seen != nil {
			seen[text] = true
		}
	}
	return into
}
