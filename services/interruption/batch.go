package interruption

import (
	"context"
	"slices"
	"sync"
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
	// instance is room for the instance of the notice, which is one nearly always.
	instance [1]string
	// gone is set where the instance is to be called gone, and when it was.
	gone time.Time
	// err is its fate once the facts are said.
	err error
}

// session is what one batch needs. It is used again, for it is large.
type session struct {
	heard          []hearing
	known, unknown []*hearing
	questions      []*owner.Question
	// document is the message that is being read.
	document notice.Document
	// noticed and gone are the facts that are being written.
	noticed event.NodeNoticed
	gone    event.InstanceGone
	// facts are those that are to be sent, with their bytes in room.
	facts []queue.Outgoing
	room  []byte
}

var sessions = sync.Pool{New: func() any { return &session{} }}

// free lets another batch use the memory, and keeps nothing of what was in it.
func (b *session) free() {
	clear(b.heard)
	clear(b.known)
	clear(b.unknown)
	clear(b.questions)
	clear(b.facts)
	b.document.Close()
	*b = session{
		heard: b.heard[:0], known: b.known[:0], unknown: b.unknown[:0], questions: b.questions[:0], facts: b.facts[:0], room: b.room[:0],
		document: b.document,
	}
	sessions.Put(b)
}

// Batch takes messages that were received together: owners are asked for and facts
// are said with one call each. Envelopes are left to Handle. It is a host.Batch.
//
// What needs no question is said before the question is asked, so that a warning of
// a known instance does not wait for EC2.
func (s *Service) Batch(ctx context.Context, batch []host.Delivery) {
	b := sessions.Get().(*session)
	defer b.free()
	now := s.Now()
	b.heard = slices.Grow(b.heard, len(batch)) // Pointers go into it.
	for i := range batch {
		d := &batch[i]
		b.heard = append(b.heard, hearing{Delivery: d})
		if d.Err = s.hear(&b.heard[len(b.heard)-1], &b.document, now); d.Err != nil {
			b.heard = b.heard[:len(b.heard)-1]
			continue
		}
		d.Err = host.ErrAlone // until it is known whose it is
	}
	s.recall(b)
	s.say(ctx, b, b.known, now)
	if len(b.unknown) > 0 && s.ask(ctx, b) {
		s.say(ctx, b, b.unknown, s.Now())
	}
}

// detailField is what the line calls the detail of a notice.
const detailField = "detail"

// hear reads a message; with an error its fate is known.
func (s *Service) hear(h *hearing, d *notice.Document, now time.Time) error {
	if err := d.Open(h.Message.Body); err != nil {
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
	n := &h.notice
	n.Instances = h.instance[:0]
	if err := d.Notice(taken, n); err != nil {
		return err
	}
	h.Note.ID, h.Note.Subject = n.EventID, "instance/"+n.Instances[0]
	if n.Detail != "" {
		h.Note.Say(detailField, n.Detail)
	}
	if err := s.elsewhere(n); err != nil {
		return err
	}
	if age := now.Sub(n.Noticed); age > life(n) {
		return fault.F("obeying a notice", fault.Stale, "%s is %s old", n.Kind, age.Round(time.Second))
	}
	h.question.IDs, h.question.Said, h.question.Fresh = n.Instances, n.Noticed, n.State.Gone()
	return nil
}

// recall parts events of known instances from the others.
func (s *Service) recall(b *session) {
	for i := range b.heard {
		b.questions = append(b.questions, &b.heard[i].question)
	}
	others := s.owners().Recall(b.questions)
	for i := range b.heard {
		h := &b.heard[i]
		if len(others) > 0 && others[0] == &h.question {
			others, b.unknown = others[1:], append(b.unknown, h)
			continue
		}
		b.known = append(b.known, h)
	}
}

// ask finds the owners, and reports whether it did.
func (s *Service) ask(ctx context.Context, b *session) bool {
	b.questions = b.questions[:0]
	for _, h := range b.unknown {
		b.questions = append(b.questions, &h.question)
	}
	err := s.owners().Ask(ctx, b.questions)
	if err != nil {
		failed(b.unknown, err)
	}
	return err == nil
}

// say says what the events mean, with one call, and only then is their fate what
// follows from them.
func (s *Service) say(ctx context.Context, b *session, heard []*hearing, now time.Time) {
	b.facts, b.room = b.facts[:0], b.room[:0]
	said := heard[:0]
	for _, h := range heard {
		speaks, err := s.obey(h, now)
		if !speaks {
			h.Err = err
			continue
		}
		before := len(b.facts)
		if h.Err = s.encode(b, h, now); h.Err != nil {
			b.facts = b.facts[:before]
			continue
		}
		h.err, h.Err = err, host.ErrAlone // until it is said
		said = append(said, h)
	}
	if err := s.send(ctx, b.facts); err != nil {
		failed(said, err)
		return
	}
	for _, h := range said {
		s.tell(h, now)
		h.Err = h.err
	}
}

// failed gives all the error of their call, unless it was refused because of one of
// them: then each is tried alone.
func failed(heard []*hearing, err error) {
	if len(heard) > 1 && fault.Is(err, fault.Invalid, fault.Rejected, fault.Denied) {
		err = host.ErrAlone
	}
	for _, h := range heard {
		h.Err = err
	}
}
