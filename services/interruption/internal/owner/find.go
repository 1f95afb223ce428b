package owner

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/queue/batcher"
)

const (
	// Settle is how long after an event EC2's answers may still be older than it:
	// an instance may not be shown, or be shown in an earlier state.
	Settle = 2 * time.Minute
	// unseenFor is how long it is believed that EC2 does not show an instance, and
	// strangeFor that one is somebody else's: EC2 may have answered with old tags.
	unseenFor  = 10 * time.Minute
	strangeFor = 10 * time.Minute
	// lanes is how many calls are under way at a time, and chunk how many ids one
	// asks for: as many as a filter takes.
	lanes = 2
	chunk = 200
	// together is how many entries share a piece of memory.
	together = 16
)

// Finder finds owners. The zero memory is valid; it is safe for concurrent use.
type Finder struct {
	EC2     cloud.Instances
	Cluster string
	Now     func() time.Time
	// Limit is how long one call may take; zero is as long as it likes.
	Limit time.Duration

	once  sync.Once
	calls *batcher.Convoy[*query]
	book  book
}

// Found is whose the instances of one event are.
type Found struct {
	// Ours are those that carry the cluster's tags.
	Ours []Instance
	// Unseen are those that EC2 does not show, or shows ended and without tags, and
	// Untagged those that it shows without tags otherwise.
	Unseen, Untagged []string
}

// Question is whose the instances of one event are.
type Question struct {
	IDs []string
	// Said is the time of which the event speaks.
	Said time.Time
	// Fresh wants the state of ours as it is now.
	Fresh bool
	// Found is the answer.
	Found Found

	answers []*entry
	// Most events speak of one instance, and then nothing more is needed. What has
	// been asked is not to be copied, for its answer lies in it.
	one struct {
		query    query
		answer   [1]*entry
		instance [1]Instance
	}
}

// query is that for the i-th id.
func (q *Question) query(i int) *query {
	if len(q.IDs) > 1 {
		return &query{id: q.IDs[i]}
	}
	q.one.query = query{id: q.IDs[i]}
	return &q.one.query
}

// begin makes room for the answers.
func (q *Question) begin() {
	if len(q.IDs) > 1 {
		q.answers = make([]*entry, len(q.IDs))
		return
	}
	q.answers, q.Found.Ours = q.one.answer[:len(q.IDs)], q.one.instance[:0]
}

// query is one id, and in the end its answer.
type query struct {
	id     string
	answer *entry
}

// Find looks instances up that an event of some time speaks of. Those that are
// known cost no call, but that who asks fresh gets the state of ours as it is now.
func (f *Finder) Find(ctx context.Context, ids []string, said time.Time, fresh bool) (Found, error) {
	q := Question{IDs: ids, Said: said, Fresh: fresh}
	if err := f.Ask(ctx, f.Recall([]*Question{&q})); err != nil {
		return Found{}, err
	}
	return q.Found, nil
}

// Recall answers those questions that need no call, and gives back the others, in
// their order and in the memory of all.
func (f *Finder) Recall(all []*Question) (others []*Question) {
	now := f.Now()
	others = all[:0]
	f.book.Lock()
	defer f.book.Unlock()
	for _, q := range all {
		q.begin()
		f.book.look(q.IDs, q.answers, now)
		if q.forget(now); slices.Contains(q.answers, nil) {
			others = append(others, q)
			continue
		}
		q.sort()
	}
	return others
}

// forget drops the answers that are too old for who asks: for a young event EC2 is asked
// again about what it did not show to an older one.
func (q *Question) forget(now time.Time) {
	settled := now.Sub(q.Said) >= Settle
	for i, e := range q.answers {
		if e != nil && (e.answer == Ours && q.Fresh || e.answer.open() && !settled) {
			q.answers[i] = nil
		}
	}
}

// Ask answers questions that Recall gave back, with as few calls as it takes.
func (f *Finder) Ask(ctx context.Context, all []*Question) error {
	count := 0
	for _, q := range all {
		count += len(q.IDs)
	}
	asked := make([]*query, 0, count)
	for _, q := range all {
		for i, e := range q.answers {
			if e == nil {
				asked = append(asked, q.query(i))
			}
		}
	}
	for part := range slices.Chunk(asked, chunk) {
		if err := f.convoy().Do(ctx, part...); err != nil {
			return fmt.Errorf("finding the owners of %d instances: %w", len(asked), err)
		}
	}
	now := f.Now()
	f.book.Lock()
	defer f.book.Unlock()
	for _, q := range all {
		settled := now.Sub(q.Said) >= Settle
		for i, e := range q.answers {
			if e != nil {
				continue
			}
			q.answers[i], asked = asked[0].answer, asked[1:]
			if !q.answers[i].answer.open() || settled {
				f.book.note(q.IDs[i], q.answers[i])
			}
		}
		q.sort()
	}
	return nil
}

// sort makes the answer of those for each id.
func (q *Question) sort() {
	for i, e := range q.answers {
		q.Found.take(q.IDs[i], e)
	}
}

// take sorts one instance in.
func (f *Found) take(id string, e *entry) {
	switch e.answer {
	case Ours:
		f.Ours = append(f.Ours, e.instance)
	case Unseen:
		f.Unseen = append(f.Unseen, id)
	case Untagged:
		f.Untagged = append(f.Untagged, id)
	default:
		// Somebody else's: nothing is to be said of it.
	}
}

func (f *Finder) convoy() *batcher.Convoy[*query] {
	f.once.Do(func() {
		f.calls = batcher.New(batcher.Options[*query]{Lanes: lanes, Items: chunk, Call: f.ask})
	})
	return f.calls
}

// ask answers queries with one call.
func (f *Finder) ask(ctx context.Context, queries []*query) error {
	if f.Limit > 0 {
		limited, cancel := context.WithTimeout(ctx, f.Limit)
		defer cancel()
		ctx = limited
	}
	ids := make([]string, 0, len(queries))
	for _, q := range queries {
		ids = append(ids, q.id)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	shown, err := f.EC2.DescribeInstances(ctx, cloud.InstanceFilter{IDs: ids})
	if err != nil {
		return fmt.Errorf("describing %d instances: %w", len(ids), err)
	}
	now := f.Now()
	unseen, untagged := &entry{answer: Unseen, until: now.Add(unseenFor)}, &entry{answer: Untagged, until: now.Add(unseenFor)}
	strange := &entry{answer: Strange, until: now.Add(strangeFor)}
	answers, key := make([]*entry, len(ids)), karpenter.ClusterTagPrefix+f.Cluster
	var room []entry // What is noted together is forgotten together.
	for i := range shown {
		at, asked := slices.BinarySearch(ids, shown[i].ID)
		if !asked {
			continue
		}
		if answers[at] = judge(&shown[i], key, unseen, untagged, strange); answers[at] == nil {
			if len(room) == cap(room) {
				room = make([]entry, 0, min(together, len(shown)-i))
			}
			room = append(room, ours(&shown[i]))
			answers[at] = &room[len(room)-1]
		}
	}
	for _, q := range queries {
		at, _ := slices.BinarySearch(ids, q.id)
		if q.answer = answers[at]; q.answer == nil {
			q.answer = unseen
		}
	}
	return nil
}

// judge says whose an instance is that EC2 shows: nothing, if it is ours. EC2 may show a
// young instance before its tags, and takes them off what is terminated a while before it
// forgets it: one without any tags is not seen yet.
func judge(i *cloud.Instance, key string, unseen, untagged, strange *entry) *entry {
	switch {
	case owned(i, key):
		return nil
	case len(i.Tags) == 0 && i.State.Gone():
		return unseen
	case len(i.Tags) == 0:
		return untagged
	default:
		return strange
	}
}

// ours is what is remembered of an instance of ours. The rest is not asked for, and a
// book has many.
func ours(i *cloud.Instance) entry {
	return entry{answer: Ours, instance: Instance{
		ID: i.ID, Offering: event.Offering{InstanceType: i.Type, Zone: i.Zone, CapacityType: i.CapacityType}, State: i.State,
	}}
}
