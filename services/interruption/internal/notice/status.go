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

// FromStatus returns the notices of one instance's status. due is the scheduled time of the
// poll; it is the time of a notice if AWS gives none.
func FromStatus(s cloud.Status, due, now time.Time) []Notice {
	var out []Notice
	switch {
	case !s.Impaired.IsZero() && now.Sub(s.Impaired) >= ImpairedAfter:
		// The deadline has passed, so the drain does not wait for a kubelet that does not
		// respond.
		out = append(out, Notice{
			Kind: event.StatusImpaired, Instances: []string{s.InstanceID}, Detail: "impaired",
			Noticed: s.Impaired.UTC(), Deadline: s.Impaired.UTC().Add(ImpairedAfter),
		})
	case s.Undated:
		// AWS reports no start of the failure; like Karpenter, assume that it lasted long enough.
		out = append(out, Notice{
			Kind: event.StatusImpaired, Instances: []string{s.InstanceID}, Detail: "impaired", Noticed: due.UTC(), Deadline: due.UTC(),
		})
	}
	var seen []string
	for _, scheduled := range s.Events {
		if slices.Contains(interruptingCodes, scheduled.Code) && !slices.Contains(seen, scheduled.Code) {
			seen = append(seen, scheduled.Code)
			out = append(out, Notice{
				Kind: event.ScheduledChange, Instances: []string{s.InstanceID}, Detail: scheduled.Code, Noticed: due.UTC(),
			})
		}
	}
	return out
}
