package interruption

import (
	"time"

	"github.com/joist-autoscaler/joist/services/interruption/internal/notice"
	"github.com/joist-autoscaler/joist/services/interruption/internal/owner"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// encode appends what is to be said of an event to the session's facts.
func (s *Service) encode(b *session, h *hearing, now time.Time) error {
	for i := range h.question.Found.Ours {
		b.noticed = noticed(&h.notice, &h.question.Found.Ours[i])
		if err := s.write(b, now, event.NodeNoticedType, &b.noticed); err != nil {
			return err
		}
	}
	if h.gone.IsZero() {
		return nil
	}
	b.gone = event.InstanceGone{InstanceID: h.notice.Instances[0], Shown: h.gone}
	return s.write(b, now, event.InstanceGoneType, &b.gone)
}

// write appends one fact. What was written before may move, and stays where its fact
// has it.
func (s *Service) write(b *session, now time.Time, typ event.Type, body event.Body) error {
	maker, before := event.Maker{Service: "interruption", Cluster: s.Cluster}, len(b.room)
	out, err := maker.Append(b.room, now, body)
	if err != nil {
		return err
	}
	b.room = out
	b.facts = append(b.facts, queue.Outgoing{Source: source, Type: string(typ), Body: out[before:len(out):len(out)]})
	return nil
}

// noticed is what is said of one of our instances.
func noticed(n *notice.Notice, i *owner.Instance) event.NodeNoticed {
	return event.NodeNoticed{
		Kind: n.Kind, InstanceID: i.ID, Deadline: n.Deadline, Noticed: n.Noticed, Detail: n.Detail, Offering: i.Offering,
	}
}
