package interruption

import (
	"time"

	"github.com/joist-autoscaler/joist/services/interruption/internal/notice"
	"github.com/joist-autoscaler/joist/services/interruption/internal/owner"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// encode appends what is to be said of an event to the session's facts, and names their
// story in the event's line.
func (s *Service) encode(b *session, h *hearing, now time.Time) error {
	for i := range h.question.Found.Ours {
		b.noticed = noticed(&h.notice, &h.question.Found.Ours[i])
		if err := s.write(b, h, now, event.NodeNoticedType, &b.noticed); err != nil {
			return err
		}
	}
	if h.gone.IsZero() {
		return nil
	}
	b.gone = event.InstanceGone{InstanceID: h.notice.Instances[0], Shown: h.gone}
	return s.write(b, h, now, event.InstanceGoneType, &b.gone)
}

// write appends one fact. What was written before may move, and stays where its fact
// has it.
func (s *Service) write(b *session, h *hearing, now time.Time, typ event.Type, body event.Body) error {
	before := len(b.room)
	out, err := s.maker().Append(b.room, now, body)
	if err != nil {
		return err
	}
	b.room = out
	if h.Note.Correlation == "" { // A line has room for one story: that of the first instance.
		h.Note.Correlation = s.maker().Story(body)
	}
	b.facts = append(b.facts, queue.Outgoing{Source: source, Type: string(typ), Body: out[before:len(out):len(out)]})
	return nil
}

// noticed is what is said of one of our instances.
func noticed(n *notice.Notice, i *owner.Instance) event.NodeNoticed {
	return event.NodeNoticed{
		Kind: n.Kind, InstanceID: i.ID, Deadline: n.Deadline, Noticed: n.Noticed, Detail: n.Detail, Offering: i.Offering,
	}
}

// tell begins the stories that an event of AWS is of, or goes on with them: when AWS said
// it, and until we did. AWS sends no trace of its own, and may send an event twice, which
// is the same span then.
func (s *Service) tell(h *hearing, now time.Time) {
	if s.Span == nil {
		return
	}
	for i := range h.question.Found.Ours {
		s.chapter(h, "notice "+string(h.notice.Kind), noticed(&h.notice, &h.question.Found.Ours[i]), now)
	}
	if !h.gone.IsZero() {
		s.chapter(h, "notice of the end", event.InstanceGone{InstanceID: h.notice.Instances[0], Shown: h.gone}, now)
	}
}

func (s *Service) chapter(h *hearing, name string, body event.Body, now time.Time) {
	of := s.maker().Head(now, body)
	h.Stories = append(h.Stories, of.Traceparent)
	s.Span(host.Span{Name: name, Of: of, Begins: true, From: h.notice.Noticed, To: now, Fields: []any{"aws_event", h.notice.EventID}})
}
