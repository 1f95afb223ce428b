package lifecycle_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// paused is the client of a replica that stands still before it deletes a claim, for as
// long as others need to do something.
type paused struct {
	cluster.Client
	meanwhile func()
}

func (p *paused) Delete(ctx context.Context, kind cluster.Kind, key cluster.Key, uid types.UID) error {
	p.stand(kind)
	return p.Client.Delete(ctx, kind, key, uid)
}

func (p *paused) DeleteAsRead(ctx context.Context, kind cluster.Kind, o cluster.Object) error {
	p.stand(kind)
	return p.Client.DeleteAsRead(ctx, kind, o)
}

func (p *paused) stand(kind cluster.Kind) {
	if kind == cluster.NodeClaims && p.meanwhile != nil {
		p.meanwhile()
		p.meanwhile = nil
	}
}

// A replica that was paused before the end of a disruption, and leads no more, does not
// end what another has rolled back by then: neither where nodes go at once, nor where they
// went once their replacement was there.
func TestB164PausedBeforeTheEnd(t *testing.T) {
	rolledBack := func(s *site, stood *bool) func() {
		return func() {
			*stood = true
			c := s.claim("old-0").DeepCopy()
			delete(c.Annotations, scheduling.ProposalAnnotation)
			if _, err := s.As("other").Update(context.Background(), c); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	t.Run("removed", func(t *testing.T) {
		s, stood := estate(t, 3), false
		m := s.moves(0, "old-0")
		s.start(&paused{s.As("lifecycle"), rolledBack(s, &stood)})
		m.take(event.Confirmed, "")
		s.ends(stood)
	})
	t.Run("replaced", func(t *testing.T) {
		s, stood := estate(t, 3), false
		m := s.moves(1, "old-0")
		m.take(event.Confirmed, "")
		s.handle(s.message(settled("new", 1, "i-new")), "")
		s.join("new-0", "i-new")
		s.start(&paused{s.As("lifecycle"), rolledBack(s, &stood)})
		for range 10 {
			s.pass(3 * time.Second)
		}
		s.ends(stood)
	})
}

// ends demands that the disruption of old-0 is over, and that it stays.
func (s *site) ends(stood bool) {
	s.t.Helper()
	s.restart()
	s.leap(time.Second)
	s.leap(time.Second)
	if !stood {
		s.t.Error("nobody came to the end of it")
	}
	s.each(untouched, "old-0")
}
