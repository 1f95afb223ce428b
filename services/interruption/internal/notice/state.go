package notice

import (
	"strings"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

// readStateChange reads that an instance has stopped, ended, or is about to.
// Its beginning is of no interest.
func readStateChange(r *eventReader, n *Notice) (err error) {
	if n.Instances, err = r.readInstance(n.Instances); err != nil {
		return err
	}
	said, err := r.requiredText(detailState)
	if err != nil {
		return err
	}
	n.Detail = r.strings.intern(said)
	n.State = cloud.State(n.Detail)
	switch n.State {
	case cloud.Stopping, cloud.Stopped, cloud.ShuttingDown, cloud.Terminated:
		return nil
	case cloud.Pending, cloud.Running:
		return r.foreignError("state %s takes nothing away", said)
	default:
		return r.poisonError("state %q is none", truncateText(n.Detail))
	}
}

// differsInCase reports whether a text differs from the known one by the case of its
// letters alone.
func differsInCase(said []byte, known string) bool {
	return string(said) != known && strings.EqualFold(string(said), known)
}
