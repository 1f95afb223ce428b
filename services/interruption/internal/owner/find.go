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
	// ConsistencyDelay is how long after an event EC2's answers may still be older than it:
	// an instance may not be shown, or be shown in an earlier state.
	ConsistencyDelay = 2 * time.Minute
	// notFoundTTL is how long it is believed that EC2 does not show an instance, and
	// strangeFor that one is somebody else's: EC2 may have answered with old tags.
	notFoundTTL = 10 * time.Minute
	foreignTTL  = 10 * time.Minute
	// parallelCalls is how many calls are under way at a time, and chunk how many ids one
	// asks for: as many as a filter takes.
	parallelCalls = 2
	idsPerCall    = 200
	// entriesPerBlock is how many entries share a piece of memory.
	entriesPerBlock = 16
)

// Finder finds owners. The zero memory is valid; it is safe for concurrent use.
type Finder struct {
	EC2     cloud.Instances
	Cluster string
	Now     func() time.Time
	// Limit is how long one call may take; zero is as long as it likes.
	Limit time.Duration

	once    sync.Once
	batcher *batcher.Convoy[*query]
	cache   cache
}

// Owners is whose the instances of one event are.
type Owners struct {
	// Owned are those that carry the cluster's tags.
	Owned []Instance
	// NotFound are those that EC2 does not show, or shows ended and without tags, and
	// Untagged those that it shows without tags otherwise.
	NotFound, Untagged []string
}

// Lookup is whose the instances of one event are.
type Lookup struct {
	IDs []string
	// EventTime is the time of which the event speaks.
	EventTime time.Time
	// CurrentState wants the state of ours as it is now.
	CurrentState bool
	// Result is the answer.
	Result Owners

	entries []*entry
	// Most events speak of one instance, and then nothing more is needed. What has
	// been asked is not to be copied, for its answer lies in it.
	one struct {
		query    query
		answer   [1]*entry
		instance [1]Instance
	}
}

// newQuery is that for the i-th id.
func (q *Lookup) newQuery(i int) *query {
	if len(q.IDs) > 1 {
		return &query{id: q.IDs[i]}
	}
	q.one.query = query{id: q.IDs[i]}
	return &q.one.query
}

// allocate makes room for the answers.
func (q *Lookup) allocate() {
	if len(q.IDs) > 1 {
		q.entries = make([]*entry, len(q.IDs))
		return
	}
	q.entries, q.Result.Owned = q.one.answer[:len(q.IDs)], q.one.instance[:0]
}

// query is one id, and in the end its answer.
type query struct {
	id    string
	entry *entry
}

// FindOwners looks instances up that an event of some time speaks of. Those that are
// known cost no call, but that who asks fresh gets the state of ours as it is now.
func (f *Finder) FindOwners(ctx context.Context, ids []string, said time.Time, fresh bool) (Owners, error) {
	q := Lookup{IDs: ids, EventTime: said, CurrentState: fresh}
	if err := f.FetchOwners(ctx, f.LookUpCached([]*Lookup{&q})); err != nil {
		return Owners{}, err
	}
	return q.Result, nil
}

// LookUpCached answers those questions that need no call, and gives back the others, in
// their order and in the memory of all.
func (f *Finder) LookUpCached(all []*Lookup) (others []*Lookup) {
	now := f.Now()
	others = all[:0]
	f.cache.Lock()
	defer f.cache.Unlock()
	for _, q := range all {
		q.allocate()
		f.cache.lookUp(q.IDs, q.entries, now)
		if q.dropStale(now); slices.Contains(q.entries, nil) {
			others = append(others, q)
			continue
		}
		q.collectResult()
	}
	return others
}

// dropStale drops the answers that are too old for who asks: for a young event EC2 is asked
// again about what it did not show to an older one.
func (q *Lookup) dropStale(now time.Time) {
	settled := now.Sub(q.EventTime) >= ConsistencyDelay
	for i, e := range q.entries {
		if e != nil && (e.ownership == Owned && q.CurrentState || e.ownership.mayChange() && !settled) {
			q.entries[i] = nil
		}
	}
}

// FetchOwners answers questions that Recall gave back, with as few calls as it takes.
func (f *Finder) FetchOwners(ctx context.Context, all []*Lookup) error {
	count := 0
	for _, q := range all {
		count += len(q.IDs)
	}
	asked := make([]*query, 0, count)
	for _, q := range all {
		for i, e := range q.entries {
			if e == nil {
				asked = append(asked, q.newQuery(i))
			}
		}
	}
	for part := range slices.Chunk(asked, idsPerCall) {
		if err := f.callBatcher().Do(ctx, part...); err != nil {
			return fmt.Errorf("finding the owners of %d instances: %w", len(asked), err)
		}
	}
	now := f.Now()
	f.cache.Lock()
	defer f.cache.Unlock()
	for _, q := range all {
		settled := now.Sub(q.EventTime) >= ConsistencyDelay
		for i, e := range q.entries {
			if e != nil {
				continue
			}
			q.entries[i], asked = asked[0].entry, asked[1:]
			if !q.entries[i].ownership.mayChange() || settled {
				f.cache.store(q.IDs[i], q.entries[i])
			}
		}
		q.collectResult()
	}
	return nil
}

// collectResult makes the answer of those for each id.
func (q *Lookup) collectResult() {
	for i, e := range q.entries {
		q.Result.addInstance(q.IDs[i], e)
	}
}

// addInstance sorts one instance in.
func (f *Owners) addInstance(id string, e *entry) {
	switch e.ownership {
	case Owned:
		f.Owned = append(f.Owned, e.instance)
	case NotFound:
		f.NotFound = append(f.NotFound, id)
	case Untagged:
		f.Untagged = append(f.Untagged, id)
	default:
		// Somebody else's: nothing is to be said of it.
	}
}

func (f *Finder) callBatcher() *batcher.Convoy[*query] {
	f.once.Do(func() {
		f.batcher = batcher.New(batcher.Options[*query]{Lanes: parallelCalls, Items: idsPerCall, Call: f.describeOwners})
	})
	return f.batcher
}

// describeOwners answers queries with one call.
func (f *Finder) describeOwners(ctx context.Context, queries []*query) error {
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
	unseen, untagged := &entry{ownership: NotFound, expires: now.Add(notFoundTTL)}, &entry{ownership: Untagged, expires: now.Add(notFoundTTL)}
	strange := &entry{ownership: Foreign, expires: now.Add(foreignTTL)}
	answers, key := make([]*entry, len(ids)), karpenter.ClusterTagPrefix+f.Cluster
	var room []entry // What is noted together is forgotten together.
	for i := range shown {
		at, asked := slices.BinarySearch(ids, shown[i].ID)
		if !asked {
			continue
		}
		if answers[at] = classifyInstance(&shown[i], key, unseen, untagged, strange); answers[at] == nil {
			if len(room) == cap(room) {
				room = make([]entry, 0, min(entriesPerBlock, len(shown)-i))
			}
			room = append(room, newOwnedEntry(&shown[i]))
			answers[at] = &room[len(room)-1]
		}
	}
	for _, q := range queries {
		at, _ := slices.BinarySearch(ids, q.id)
		if q.entry = answers[at]; q.entry == nil {
			q.entry = unseen
		}
	}
	return nil
}

// classifyInstance says whose an instance is that EC2 shows: nothing, if it is ours. EC2 may show a
// young instance before its tags, and takes them off what is terminated a while before it
// forgets it: one without any tags is not seen yet.
func classifyInstance(i *cloud.Instance, key string, unseen, untagged, strange *entry) *entry {
	switch {
	case hasClusterTags(i, key):
		return nil
	case len(i.Tags) == 0 && i.State.Gone():
		return unseen
	case len(i.Tags) == 0:
		return untagged
	default:
		return strange
	}
}

// newOwnedEntry is what is remembered of an instance of ours. The rest is not asked for, and a
// book has many.
func newOwnedEntry(i *cloud.Instance) entry {
	return entry{ownership: Owned, instance: Instance{
		ID: i.ID, Offering: event.Offering{InstanceType: i.Type, Zone: i.Zone, CapacityType: i.CapacityType}, State: i.State,
	}}
}
