package notice

import (
	"strings"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

// stateChange reads that an instance has stopped, ended, or is about to.
// Its beginning is of no interest.
func stateChange(r *reading, n *Notice) (err error) {
	if n.Instances, err = r.one(n.Instances); err != nil {
		return err
	}
	said, err := r.needed(state)
	if err != nil {
		return err
	}
	n.Detail = r.texts.of(said)
	n.State = cloud.State(n.Detail)
	switch n.State {
	case cloud.Stopping, cloud.Stopped, cloud.ShuttingDown, cloud.Terminated:
		return nil
	case cloud.Pending, cloud.Running:
		return r.foreign("state %s takes nothing away", said)
	default:
		return r.poison("state %q is none", short(n.Detail))
	}
}

// nearly reports whether a text differs from the known one by the case of its
// letters alone.
func nearly(said []byte, known string) bool {
	return string(said) != known && strings.EqualFold(string(said), known)
}
