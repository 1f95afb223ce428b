package lifecycle

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/tally"
	"github.com/joist-autoscaler/joist/shared/event"
)

// stories remember which message began what a look goes on with, so that what the look
// sends belongs to the same story: a launch that is asked for again, the tags, the end of
// an instance that was noticed. It is memory only: a process that lost it tells the rest
// as a story of its own, and does nothing else otherwise.
type stories struct {
	mu  sync.Mutex
	all map[string]story
}

type story struct {
	cause event.Envelope
	at    time.Time
}

// storyMax is how long a story is kept that nothing was heard of.
const storyMax = 24 * time.Hour

func launchOf(id string) string    { return "intent/" + id }
func ofClaim(uid types.UID) string { return "claim/" + string(uid) }

// note remembers the cause of something. Its body is not needed.
func (t *stories) note(key string, cause event.Envelope, now time.Time) {
	cause.Data = nil
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[string]story{}
	}
	t.all[key] = story{cause, now}
}

func (t *stories) find(key string) *event.Envelope {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found, ok := t.all[key]; ok {
		return &found.cause
	}
	return nil
}

// of is the cause of a message that no message at hand causes; nil is none.
func (t *stories) of(body event.Body) *event.Envelope {
	switch b := body.(type) {
	case event.LaunchRequested:
		return t.find(launchOf(b.Intent))
	case event.TagRequested:
		return t.find(ofClaim(types.UID(b.ClaimUID)))
	case event.TerminateRequested:
		return t.find(ofClaim(types.UID(b.ClaimUID)))
	default:
		return nil
	}
}

// forget drops the stories of claims that are gone, and those that are old.
func (t *stories) forget(before, now map[types.UID]sight, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for uid := range before {
		if _, still := now[uid]; !still {
			delete(t.all, ofClaim(uid))
		}
	}
	for key, s := range t.all {
		if at.Sub(s.at) > storyMax {
			delete(t.all, key)
		}
	}
}

// narrate adds what a look saw to the story of the claim: there is no message about it.
func (s *Service) narrate(c tally.Count) {
	name := map[tally.What]string{tally.Initialized: "node initialized", tally.ClaimTermination: "node gone"}[c.What]
	if name == "" || s.Span == nil {
		return
	}
	if cause := s.stories.find(ofClaim(c.Claim)); cause != nil {
		s.Span(name, *cause, s.looked.Add(-time.Duration(c.Value*float64(time.Second))), s.looked)
	}
}
