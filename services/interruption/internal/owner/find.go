package owner

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/convoy"
	"github.com/joist-autoscaler/joist/shared/event"
)

const (
	// Settle is how long after an event EC2's answers may still be older than it:
	// an instance may not be shown, or be shown in an earlier state.
	Settle = 2 * time.Minute
	// unseenFor is how long it is believed that EC2 does not show an instance.
	unseenFor = 10 * time.Minute
	// lanes is how many calls are under way at a time, and chunk how many ids one
	// asks for: as many as a filter takes.
	lanes = 2
	chunk = 200
)

// Finder finds owners. The zero memory is valid; it is safe for concurrent use.
type Finder struct {
	EC2     cloud.Instances
	Cluster string
	Now     func() time.Time
	// Limit is how long one call may take; zero is as long as it likes.
	Limit time.Duration

	once  sync.Once
	calls *convoy.Convoy[*question]
	book  book
}

// Found is whose the instances of one event are.
type Found struct {
	// Ours are those that carry the cluster's tags.
	Ours []Instance
	// Unseen are those of which EC2 shows no owner.
	Unseen []string
}

// question is one id, and in the end its answer.
type question struct {
	id     string
	answer entry
}

// Find looks instances up that an event of some time speaks of. Those that are
// known cost no call, but that who asks fresh gets the state of ours as it is now.
func (f *Finder) Find(ctx context.Context, ids []string, said time.Time, fresh bool) (Found, error) {
	var found Found
	var asked []*question
	settled := f.Now().Sub(said) >= Settle
	for _, id := range ids {
		known := f.book.look(id, f.Now())
		if known.answer == Unknown || fresh && (known.answer == Ours || known.answer == Unseen && !settled) {
			asked = append(asked, &question{id: id})
			continue
		}
		found.take(id, known)
	}
	for part := range slices.Chunk(asked, chunk) {
		if err := f.convoy().Do(ctx, part...); err != nil {
			return Found{}, fmt.Errorf("finding the owners of %d instances: %w", len(asked), err)
		}
	}
	for _, q := range asked {
		found.take(q.id, q.answer)
		if q.answer.answer != Unseen || settled {
			f.book.note(q.id, q.answer)
		}
	}
	return found, nil
}

// take sorts one instance in.
func (f *Found) take(id string, e entry) {
	switch e.answer {
	case Ours:
		f.Ours = append(f.Ours, e.instance)
	case Unseen:
		f.Unseen = append(f.Unseen, id)
	default:
		// Somebody else's: nothing is to be said of it.
	}
}

func (f *Finder) convoy() *convoy.Convoy[*question] {
	f.once.Do(func() {
		f.calls = convoy.New(convoy.Options[*question]{Lanes: lanes, Items: chunk, Call: f.ask})
	})
	return f.calls
}

// ask answers questions with one call.
func (f *Finder) ask(ctx context.Context, questions []*question) error {
	if f.Limit > 0 {
		limited, cancel := context.WithTimeout(ctx, f.Limit)
		defer cancel()
		ctx = limited
	}
	ids := make([]string, 0, len(questions))
	for _, q := range questions {
		ids = append(ids, q.id)
	}
	slices.Sort(ids)
	shown, err := f.EC2.DescribeInstances(ctx, cloud.InstanceFilter{IDs: slices.Compact(ids)})
	if err != nil {
		return fmt.Errorf("describing %d instances: %w", len(ids), err)
	}
	answers := make(map[string]entry, len(shown))
	for _, i := range shown {
		answers[i.ID] = f.judge(i)
	}
	unseen := entry{answer: Unseen, until: f.Now().Add(unseenFor)}
	for _, q := range questions {
		q.answer = unseen
		if e, ok := answers[q.id]; ok {
			q.answer = e
		}
	}
	return nil
}

// judge says whose an instance is that EC2 shows.
func (f *Finder) judge(i cloud.Instance) entry {
	switch {
	case Owned(i, f.Cluster):
		// The rest is not asked for, and a book has many.
		return entry{answer: Ours, instance: Instance{
			ID: i.ID, Offering: event.Offering{InstanceType: i.Type, Zone: i.Zone, CapacityType: i.CapacityType}, State: i.State,
		}}
	case i.State.Gone() && len(i.Tags) == 0:
		// EC2 takes the tags off what is terminated, a while before it forgets it.
		return entry{answer: Unseen, until: f.Now().Add(unseenFor)}
	default:
		return entry{answer: Strange}
	}
}
