package notice

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
)

// Warning is how long before the end EC2 warns. The deadline that follows from
// it is absolute: the event's own time plus this, however long it travelled.
const Warning = 120 * time.Second

// interruption is the detail of a warning about one instance.
type interruption struct {
	InstanceID string `json:"instance-id"`
	Action     string `json:"instance-action"`
	// Ends is written for capacity reservations alone. It is text, because a
	// warning is worth more than the form of this field.
	Ends string `json:"instance-termination-time"`
}

// spot reads the warning that a spot instance is taken back (B176).
func spot(h header) (Notice, error) {
	d, err := decode[interruption](h)
	if err != nil {
		return Notice{}, err
	}
	return Notice{
		Kind: event.SpotInterruption, Instances: []string{d.InstanceID}, Detail: d.Action,
		Deadline: h.Time.UTC().Add(Warning),
	}, h.instance(d.InstanceID)
}
