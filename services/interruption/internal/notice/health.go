package notice

import (
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/event"
)

// entitiesMax is how many entities one event may name; AWS Health writes more
// on further pages, each an event of its own.
const entitiesMax = 1000

// scheduledChange reads AWS Health's word of planned maintenance (B177). It has
// no deadline: the time that it names is when work may begin, often days ahead,
// and the drain must not wait for it.
func scheduledChange(h header) (Notice, error) {
	d, err := decode[struct {
		Service  string `json:"service"`
		Category string `json:"eventTypeCategory"`
		Code     string `json:"eventTypeCode"`
		Affected []struct {
			Value string `json:"entityValue"`
		} `json:"affectedEntities"`
	}](h)
	if err != nil {
		return Notice{}, err
	}
	if d.Service != "EC2" || d.Category != "scheduledChange" {
		return Notice{}, h.foreign("it is a %q of %q", short(d.Category), short(d.Service))
	}
	if len(d.Affected) > entitiesMax {
		return Notice{}, h.poison("it names %d entities, and %d is the limit", len(d.Affected), entitiesMax)
	}
	n := Notice{Kind: event.ScheduledChange, Detail: d.Code}
	for _, entity := range d.Affected {
		if id := last(entity.Value); instanceID.MatchString(id) && !slices.Contains(n.Instances, id) {
			n.Instances = append(n.Instances, id)
		}
	}
	if len(n.Instances) == 0 {
		return Notice{}, h.foreign("it affects no instance")
	}
	if len(h.Resources) > 0 && strings.HasPrefix(last(h.Resources[0]), "i-") && !slices.Contains(n.Instances, last(h.Resources[0])) {
		return Notice{}, h.poison("resource %q is not among the affected", short(h.Resources[0]))
	}
	return n, nil
}

// last is what stands after the last slash: an ARN's id, or the text itself.
func last(text string) string { return text[strings.LastIndex(text, "/")+1:] }
