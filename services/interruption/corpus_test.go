package interruption

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/event/noticetest"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// newCorpusFixture returns a fixture with the account of the corpus, two seconds after its messages were sent.
func newCorpusFixture() *fixture {
	b := newFixture()
	b.now = start.Add(2 * time.Second)
	b.Account, b.Region = noticetest.Account, noticetest.Region
	tags := map[string]string{"kubernetes.io/cluster/web": "owned", "karpenter.sh/nodepool": "default"}
	b.instances = []cloud.Instance{
		{ID: noticetest.OtherAccount, State: cloud.Running, Tags: map[string]string{"Name": "db"}},
		{ID: noticetest.Ended, State: cloud.Terminated, Tags: tags},
	}
	for _, id := range noticetest.Ours {
		b.instances = append(b.instances, cloud.Instance{ID: id, Type: "m6i.large", Zone: "us-east-2b", CapacityType: "spot", State: cloud.Running, Tags: tags})
	}
	return b
}

// deliverEntry delivers an entry of the corpus.
func (b *fixture) deliverEntry(t *testing.T, e noticetest.Entry) error {
	t.Helper()
	return b.Handle(t.Context(), queue.Message{ID: "m", Body: e.Body, Sent: start, Receives: 1})
}

// dispositionOf returns the corpus's disposition for the error of a handler.
func dispositionOf(err error) noticetest.ExpectedResult {
	if err == nil {
		return noticetest.Act
	}
	switch fault.KindOf(err) {
	case fault.Foreign:
		return noticetest.Foreign
	case fault.Stale:
		return noticetest.Stale
	case fault.Poison:
		return noticetest.Poison
	case fault.Retry:
		return noticetest.NotDelivered
	default:
		return noticetest.ExpectedResult("an error of kind " + string(fault.KindOf(err)))
	}
}

// wantedFact is an expected fact about one instance.
type wantedFact struct {
	Kind     event.NoticeKind
	Instance string
	Deadline time.Time
}

// publishedFacts returns the published facts in their order. InstanceGone has no kind.
func (b *fixture) publishedFacts(t *testing.T) []wantedFact {
	t.Helper()
	var out []wantedFact
	for _, e := range b.published {
		if e.Type == event.InstanceGoneType {
			out = append(out, wantedFact{Instance: decodeBody[event.InstanceGone](t, e).InstanceID})
			continue
		}
		n := decodeBody[event.NodeNoticed](t, e)
		out = append(out, wantedFact{Kind: n.Kind, Instance: n.InstanceID, Deadline: n.Deadline.UTC()})
	}
	return out
}

// wantedFacts returns the expected facts of an entry.
func wantedFacts(e noticetest.Entry) []wantedFact {
	var out []wantedFact
	for _, id := range e.Instances {
		f := wantedFact{Kind: e.Kind, Instance: id}
		if e.Deadline != noticetest.DeadlineNone {
			f.Deadline = start.Add(e.Deadline).UTC()
		}
		out = append(out, f)
		if id == noticetest.Ended {
			out = append(out, wantedFact{Instance: id})
		}
	}
	return out
}

// TestCorpus requires the disposition and the facts of each entry.
func TestCorpus(t *testing.T) {
	for _, e := range noticetest.Corpus(start) {
		b := newCorpusFixture()
		err := b.deliverEntry(t, e)
		if got := dispositionOf(err); got != e.Want {
			t.Errorf("%s: %s (%v), want %s\n%.400q", e.Name, got, err, e.Want, e.Body)
			continue
		}
		if diff := cmp.Diff(wantedFacts(e), b.publishedFacts(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", e.Name, diff)
		}
		if err != nil && !strings.Contains(err.Error(), ": ") {
			t.Errorf("%s: the reason %q is incomplete", e.Name, err)
		}
	}
}

// TestCorpusKeepsTrueWarnings requires a fact for each spot warning about an owned instance, even
// if the rest of the event is unusual.
func TestCorpusKeepsTrueWarnings(t *testing.T) {
	kept := 0
	for _, e := range noticetest.Corpus(start) {
		if !e.Warning {
			continue
		}
		b := newCorpusFixture()
		if err := b.deliverEntry(t, e); err != nil {
			t.Errorf("%s: the warning is lost: %v", e.Name, err)
		}
		facts := b.publishedFacts(t)
		if i := slices.IndexFunc(facts, func(f wantedFact) bool { return f.Kind == event.SpotInterruption }); i < 0 || facts[i].Deadline.After(start.Add(120*time.Second)) {
			t.Errorf("%s: unexpected facts %+v", e.Name, facts)
		}
		kept++
	}
	if kept < 200 {
		t.Errorf("the corpus has %d valid warnings, want at least 200", kept)
	}
}

// FuzzHandle looks for bodies that make the service panic, publish facts about foreign
// instances, or return an error without a disposition.
func FuzzHandle(f *testing.F) {
	seen := map[string]bool{} // One event of each variant: the fuzzer runs all of them before it makes inputs of its own.
	for _, e := range noticetest.Corpus(start) {
		if _, variant, _ := strings.Cut(e.Name, ": "); len(e.Body) < 4096 && !seen[variant] {
			seen[variant] = true
			f.Add(e.Body)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		b := newCorpusFixture()
		err := b.deliverEntry(t, noticetest.Entry{Body: body})
		if disposition := dispositionOf(err); strings.Contains(string(disposition), " ") {
			t.Errorf("%s: %v", disposition, err)
		}
		for _, fact := range b.publishedFacts(t) {
			if fact.Instance != noticetest.Ended && !slices.Contains(noticetest.Ours, fact.Instance) && fact.Kind != "" {
				t.Errorf("%+v is about a foreign instance", fact)
			}
		}
	})
}
