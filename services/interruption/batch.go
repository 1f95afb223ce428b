package interruption

import (
	"context"
	"time"

	"github.com/joist-autoscaler/joist/services/interruption/internal/notice"
	"github.com/joist-autoscaler/joist/services/interruption/internal/owner"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// hearing is an event of AWS on its way from its message to its facts.
type hearing struct {
	*host.Delivery
	notice   notice.Notice
	question owner.Question
	// facts are what is to be said of it, and err is its fate once they are said.
	facts []queue.Outgoing
	err   error
}

// Batch takes messages that were received together: owners are asked for and facts
// are said with one call each. Envelopes are left to Handle. It is a host.Batch.
//
// What needs no question is said before the question is asked, so that a warning of
// a known instance does not wait for EC2.
func (s *Service) Batch(ctx context.Context, batch []host.Delivery) {
	heard := make([]hearing, 0, len(batch))
	now := s.Now()
	for i := range batch {
		h := hearing{Delivery: &batch[i]}
		if batch[i].Err = s.hear(&h, now); batch[i].Err == nil {
			batch[i].Err = host.ErrAlone // until it is known whose it is
			heard = append(heard, h)
		}
	}
	if len(heard) == 0 {
		return
	}
	known, unknown := s.recall(heard)
	s.say(ctx, known, now)
	if len(unknown) > 0 && s.ask(ctx, unknown) {
		s.say(ctx, unknown, s.Now())
	}
}

// hear reads a message; with an error its fate is known.
func (s *Service) hear(h *hearing, now time.Time) error {
	d, err := notice.Open(h.Message.Body)
	if err != nil {
		return err
	}
	if d.Ours() {
		return host.ErrAlone
	}
	taken := h.Message.Sent
	if taken.IsZero() {
		taken = now
	}
	h.Note.Type = labels[d.Kind()]
	if h.notice, err = d.Notice(taken); err != nil {
		return err
	}
	n := &h.notice
	h.Note.ID, h.Note.Subject = n.EventID, "instance/"+n.Instances[0]
	if n.Detail != "" {
		h.Note.Say("detail", n.Detail)
	}
	if err := s.elsewhere(n); err != nil {
		return err
	}
	if age := now.Sub(n.Noticed); age > life(n) {
		return fault.F("obeying a notice", fault.Stale, "%s is %s old", n.Kind, age.Round(time.Second))
	}
	h.question = owner.Question{IDs: n.Instances, Said: n.Noticed, Fresh: n.State.Gone()}
	return nil
}

// recall parts events of known instances from the others.
func (s *Service) recall(heard []hearing) (known, unknown []*hearing) {
	questions := make([]*owner.Question, len(heard))
	for i := range heard {
		questions[i] = &heard[i].question
	}
	others := s.owners().Recall(questions)
	known = make([]*hearing, 0, len(heard))
	for i := range heard {
		if len(others) > 0 && others[0] == &heard[i].question {
			others, unknown = others[1:], append(unknown, &heard[i])
			continue
		}
		known = append(known, &heard[i])
	}
	return known, unknown
}

// ask finds the owners, and reports whether it did.
func (s *Service) ask(ctx context.Context, unknown []*hearing) bool {
	questions := make([]*owner.Question, len(unknown))
	for i, h := range unknown {
		questions[i] = &h.question
	}
	err := s.owners().Ask(ctx, questions)
	if err != nil {
		failed(unknown, err)
	}
	return err == nil
}

// say says what the events mean, with one call, and only then is their fate what
// follows from them.
func (s *Service) say(ctx context.Context, heard []*hearing, now time.Time) {
	said, facts := heard[:0:0], []queue.Outgoing(nil)
	var room []byte
	for _, h := range heard {
		bodies, err := s.obey(h, now)
		before := len(facts)
		facts, room, h.Err = s.encode(facts, room, now, bodies)
		if h.Err == nil {
			h.Err = err
		} else {
			facts = facts[:before]
		}
		if len(facts) > before {
			h.err, h.Err = h.Err, host.ErrAlone // until it is said
			said = append(said, h)
		}
	}
	if err := s.send(ctx, facts); err != nil {
		failed(said, err)
		return
	}
	for _, h := range said {
		h.Err = h.err
	}
}

// room of a fact in bytes.
const factSize = 800

// encode appends facts to those that are to be sent, all in one piece of memory.
func (s *Service) encode(facts []queue.Outgoing, room []byte, now time.Time, bodies []event.Body) ([]queue.Outgoing, []byte, error) {
	maker := event.Maker{Service: "interruption", Cluster: s.Cluster}
	for _, body := range bodies {
		if cap(room)-len(room) < factSize {
			room = make([]byte, 0, queue.MaxBatch*factSize)
		}
		before := len(room)
		out, err := maker.Append(room, now, body)
		if err != nil {
			return facts, room, err
		}
		room = out
		facts = append(facts, queue.Outgoing{Source: source, Type: string(body.EventType()), Body: out[before:len(out):len(out)]})
	}
	return facts, room, nil
}

// failed gives all the error of their call, unless it was refused because of one of
// them: then each is tried alone.
func failed(heard []*hearing, err error) {
	if len(heard) > 1 && fault.Is(err, fault.Invalid, fault.Denied) {
		err = host.ErrAlone
	}
	for _, h := range heard {
		h.Err = err
	}
}
