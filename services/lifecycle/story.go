package lifecycle

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/metrics"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// stories remember which message began what a look goes on with, by the claim, so that
// what the look sends and sees belongs to the same story: the tags, the end of an instance
// that was noticed, the node that came. What is written on the claim says the same to the
// next leader (within). This is the memory of one: it is ahead of its cache, and knows of
// notices that have no deadline, for which nothing is written on the claim.
type stories struct {
	mu  sync.Mutex
	all map[types.UID]story
}

type story struct {
	cause event.Envelope
	at    time.Time
}

// storyMax is how long a story is kept that nothing was heard of.
const storyMax = 24 * time.Hour

// within puts a claim that is about to be written for a message into its story. It is no
// write of its own, and without a trace nothing is written.
func (s *Service) within(c *karpenter.NodeClaim, e event.Envelope) {
	if c.UID != "" {
		s.stories.note(c.UID, e, s.Now())
	}
	if e.Traceparent != "" {
		annotate(c, planning.StoryAnnotation, e.Traceparent)
	}
}

// ending is within for a notice. AWS warns, and then tells of each step: what it said first
// led to the rest, and is what the rest hangs below.
func (s *Service) ending(c *karpenter.NodeClaim, e event.Envelope) {
	s.remember(c, e)
	// What is remembered may have come to nothing: the write before was lost.
	if written := planning.StoryOf(c); e.Traceparent != "" && (written == nil || written.Correlation != e.Correlation) {
		annotate(c, planning.StoryAnnotation, e.Traceparent)
	}
}

// remember is ending where nothing is written on the claim.
func (s *Service) remember(c *karpenter.NodeClaim, e event.Envelope) {
	if known := s.storyOfClaim(c); known == nil || known.Correlation != e.Correlation {
		s.stories.note(c.UID, e, s.Now())
	}
}

// storyOfClaim is the cause of what becomes of a claim; nil is none that is known.
func (s *Service) storyOfClaim(c *karpenter.NodeClaim) *event.Envelope {
	if cause := s.stories.find(c.UID); cause != nil {
		return cause
	}
	return planning.StoryOf(c)
}

// note remembers the cause of what becomes of a claim. Its body is not needed.
func (t *stories) note(claim types.UID, cause event.Envelope, now time.Time) {
	cause.Data = nil
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[types.UID]story{}
	}
	t.all[claim] = story{cause, now}
}

func (t *stories) find(claim types.UID) *event.Envelope {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found, ok := t.all[claim]; ok {
		return &found.cause
	}
	return nil
}

// drop forgets everything: another leads, and writes what goes on from here.
func (t *stories) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = nil
}

// forget drops the stories of claims that are gone, and those that are old.
func (t *stories) forget(before, now map[types.UID]sight, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for uid := range before {
		if _, still := now[uid]; !still {
			delete(t.all, uid)
		}
	}
	for uid, s := range t.all {
		if at.Sub(s.at) > storyMax {
			delete(t.all, uid)
		}
	}
}

// storyOf is the cause of a message about a claim that no message at hand causes; nil is
// none.
func (s *Service) storyOf(body event.Body) *event.Envelope {
	name, uid := "", types.UID("")
	switch b := body.(type) {
	case event.TagRequested:
		name, uid = b.Tags[karpenter.NodeClaimTagKey], types.UID(b.ClaimUID)
	case event.TerminateRequested:
		name, uid = b.Claim, types.UID(b.ClaimUID)
	default:
		return nil
	}
	if cause := s.stories.find(uid); cause != nil {
		return cause
	}
	if object, ok := s.Cache.Get(cluster.NodeClaims, cluster.Key{Name: name}); ok && object.GetUID() == uid {
		return planning.StoryOf(object)
	}
	return nil
}

// launchStory is the cause of asking for a claim's launch. Behind a plan all launches are
// asked for that wait, those of other plans too, and each stays in its own story. A plan
// without a trace has written none on its claims.
func launchStory(cause *event.Envelope, c *karpenter.NodeClaim) *event.Envelope {
	written := planning.StoryOf(c)
	switch {
	case cause == nil:
		return written
	case written == nil && cause.Traceparent == "", written != nil && written.Correlation == cause.Correlation:
		return cause
	default:
		return written
	}
}

// narrate adds what a look saw of a claim to its story: there is no message about it.
func (s *Service) narrate(c metrics.Count, of *karpenter.NodeClaim) {
	name := map[metrics.ChangeKind]string{metrics.Initialized: "node initialized", metrics.ClaimTermination: "node gone"}[c.Kind]
	if name == "" || s.Span == nil {
		return
	}
	cause := s.storyOfClaim(of)
	if cause == nil {
		return
	}
	told := *cause
	told.Cluster = s.Cluster.Name
	s.Span(host.Span{
		Name: name, Of: told, From: s.looked.Add(-time.Duration(c.Value * float64(time.Second))), To: s.looked,
		Fields: []any{"nodeclaim", of.Name, "instance", of.Status.ProviderID},
	})
}
