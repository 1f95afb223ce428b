package interruption

import (
	"time"

	"github.com/joist-autoscaler/joist/services/interruption/internal/notice"
	"github.com/joist-autoscaler/joist/services/interruption/internal/owner"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// factSize is what most facts need, in bytes. One that needs more gets memory of
// its own.
const factSize = 680

// encode appends what is to be said of an event to facts, with the bytes in room.
func (s *Service) encode(b *session, h *hearing, now time.Time, facts []queue.Outgoing, room []byte) ([]queue.Outgoing, []byte, error) {
	maker := event.Maker{Service: "interruption", Cluster: s.Cluster}
	write := func(typ event.Type, body event.Body) error {
		before := len(room)
		out, err := maker.Append(room, now, body)
		if err != nil {
			return err
		}
		facts, room = append(facts, queue.Outgoing{Source: source, Type: string(typ), Body: out[before:len(out):len(out)]}), out
		return nil
	}
	for i := range h.question.Found.Ours {
		b.noticed = noticed(&h.notice, &h.question.Found.Ours[i])
		if err := write(event.NodeNoticedType, &b.noticed); err != nil {
			return facts, room, err
		}
	}
	if h.gone.IsZero() {
		return facts, room, nil
	}
	b.gone = event.InstanceGone{InstanceID: h.notice.Instances[0], Shown: h.gone}
	err := write(event.InstanceGoneType, &b.gone)
	return facts, room, err
}

// noticed is what is said of one of our instances.
func noticed(n *notice.Notice, i *owner.Instance) event.NodeNoticed {
	return event.NodeNoticed{
		Kind: n.Kind, InstanceID: i.ID, Deadline: n.Deadline, Noticed: n.Noticed, Detail: n.Detail, Offering: i.Offering,
	}
}
