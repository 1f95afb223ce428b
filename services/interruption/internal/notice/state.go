package notice

import (
	"strings"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
)

// stateChange reads that an instance has stopped, ended, or is about to (B178).
// Its beginning is of no interest.
func stateChange(h header) (Notice, error) {
	d, err := decode[struct {
		InstanceID string `json:"instance-id"`
		State      string `json:"state"`
	}](h)
	if err != nil {
		return Notice{}, err
	}
	if err := h.instance(d.InstanceID); err != nil {
		return Notice{}, err
	}
	state := cloud.State(strings.ToLower(d.State))
	switch state {
	case cloud.Stopping, cloud.Stopped, cloud.ShuttingDown, cloud.Terminated:
		return Notice{Kind: event.StateChange, Instances: []string{d.InstanceID}, Detail: string(state), State: state}, nil
	case cloud.Pending, cloud.Running:
		return Notice{}, h.foreign("state %s takes nothing away", state)
	default:
		return Notice{}, h.poison("state %q is none", short(d.State))
	}
}
