package notice

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
)

// reservation reads the warning that the owner of a capacity reservation takes
// an instance back (B180). If it names the end, the earlier of the two counts.
func reservation(h header) (Notice, error) {
	d, err := decode[interruption](h)
	if err != nil {
		return Notice{}, err
	}
	deadline := h.Time.UTC().Add(Warning)
	if ends, err := time.Parse(time.RFC3339, d.Ends); err == nil && ends.Before(deadline) {
		deadline = ends.UTC()
	}
	return Notice{
		Kind: event.ReservationInterruption, Instances: []string{d.InstanceID}, Detail: d.Action, Deadline: deadline,
	}, h.instance(d.InstanceID)
}
