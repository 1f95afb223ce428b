package notice

import (
	"strings"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

// readStateChange decodes a state change. Only instances that stop or terminate are relevant.
func readStateChange(r *eventReader, n *Notice) (err error) {
	if n.Instances, err = r.readInstance(n.Instances); err != nil {
		return err
	}
	state, err := r.requiredText(detailState)
	if err != nil {
		return err
	}
	n.Detail = string(state)
	n.State = cloud.State(n.Detail)
	switch n.State {
	case cloud.Stopping, cloud.Stopped, cloud.ShuttingDown, cloud.Terminated:
		return nil
	case cloud.Pending, cloud.Running:
		return r.foreignError("state %s does not interrupt the instance", state)
	default:
		return r.poisonError("unknown state %q", truncateText(n.Detail))
	}
}

// differsInCase reports whether a text differs from the known one, but only in case.
func differsInCase(text []byte, known string) bool {
	return string(text) != known && strings.EqualFold(string(text), known)
}
