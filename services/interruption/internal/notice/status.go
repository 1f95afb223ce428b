package notice

import (
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
)

// ImpairedAfter is how long a status check must fail before it counts.
const ImpairedAfter = 120 * time.Second

// interruptingCodes are the scheduled events that end or interrupt a node.
var interruptingCodes = []string{"instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop"}

// FromStatus reads what a poll of the status checks says of one instance. Due is
// when the poll was due, and stands for when AWS said so where AWS does not say.
func FromStatus(s cloud.Status, due, now time.Time) []Notice {
	var out []Notice
	switch {
	case !s.Impaired.IsZero() && now.Sub(s.Impaired) >= ImpairedAfter:
		// The end of the patience is the deadline: it has passed, so the drain
		// does not wait for a kubelet that does not answer.
		out = append(out, Notice{
			Kind: event.StatusImpaired, Instances: []string{s.InstanceID}, Detail: "impaired",
			Noticed: s.Impaired.UTC(), Deadline: s.Impaired.UTC().Add(ImpairedAfter),
		})
	case s.Undated:
		// Since when is not said; upstream takes that for long enough.
		out = append(out, Notice{
			Kind: event.StatusImpaired, Instances: []string{s.InstanceID}, Detail: "impaired", Noticed: due.UTC(), Deadline: due.UTC(),
		})
	}
	var seen []string
	for _, planned := range s.Events {
		if slices.Contains(interruptingCodes, planned.Code) && !slices.Contains(seen, planned.Code) {
			seen = append(seen, planned.Code)
			out = append(out, Notice{
				Kind: event.ScheduledChange, Instances: []string{s.InstanceID}, Detail: planned.Code, Noticed: due.UTC(),
			})
		}
	}
	return out
}
