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
	// ConsistencyDelay is how long after an event EC2's answers may be older than the
	// event: EC2 may not return an instance, or return its previous state.
	ConsistencyDelay = 2 * time.Minute
	// notFoundTTL and foreignTTL are how long such an entry is cached. They are limited, because
	// EC2 may have answered without the instance or with old tags.
	notFoundTTL = 10 * time.Minute
	foreignTTL  = 10 * time.Minute
	// parallelCalls is the maximum number of calls in flight. idsPerCall is the maximum number of
	// IDs in one call: the limit of a filter.
	parallelCalls = 2
	idsPerCall    = 200
	// entriesPerBlock is how many entries are allocated together.
	entriesPerBlock = 16
)

// Finder finds the owners of instances. A Finder with an empty cache is ready. It is safe
// for concurrent use.
type Finder struct {
	EC2     cloud.Instances
	Cluster string
	Now     func() time.Time
	// Limit is the timeout of one call; zero means none.
	Limit time.Duration

	once    sync.Once
	batcher *batcher.CallBatcher[*query]
	cache   cache
}

// Owners has the instances of one event by owner. It omits foreign instances.
type Owners struct {
	// Owned instances have the cluster's tags.
	Owned []Instance
	// NotFound instances are not returned by EC2, or are terminated and without tags.
	// Untagged instances exist without tags.
	NotFound, Untagged []string
}

// Lookup is a request for the owners of one event's instances.
type Lookup struct {
	IDs []string
	// EventTime is the time of the event.
	EventTime time.Time
	// CurrentState requires the current state of owned instances, which is not cached.
	CurrentState bool
	// Result is set by LookUpCached or FetchOwners.
	Result Owners

	entries []*entry
	// one is the memory of a lookup with one ID; most lookups have one. A Lookup must not be copied
	// while it is in use, because its result points into it.
	one struct {
		query    query
		answer   [1]*entry
		instance [1]Instance
	}
}

// newQuery returns the query for the i-th id.
func (q *Lookup) newQuery(i int) *query {
	if len(q.IDs) > 1 {
		return &query{id: q.IDs[i]}
	}
	q.one.query = query{id: q.IDs[i]}
	return &q.one.query
}

// allocate allocates the entries.
func (q *Lookup) allocate() {
	if len(q.IDs) > 1 {
		q.entries = make([]*entry, len(q.IDs))
		return
	}
	q.entries, q.Result.Owned = q.one.answer[:len(q.IDs)], q.one.instance[:0]
}

// query is one id and, after the call, its entry.
type query struct {
	id    string
	entry *entry
}

// FindOwners returns the owners of an event's instances. Cached instances need no call, unless the
// event needs the current state of owned ones.
func (f *Finder) FindOwners(ctx context.Context, ids []string, eventTime time.Time, currentState bool) (Owners, error) {
	q := Lookup{IDs: ids, EventTime: eventTime, CurrentState: currentState}
	if err := f.FetchOwners(ctx, f.LookUpCached([]*Lookup{&q})); err != nil {
		return Owners{}, err
	}
	return q.Result, nil
}

// LookUpCached answers the lookups that need no call and returns the others in their order. It
// reuses the memory of the slice.
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

// dropStale drops cached entries that the lookup must not use: entries of owned instances if it
// needs the current state, and entries that may change if its event is recent.
func (q *Lookup) dropStale(now time.Time) {
	consistent := now.Sub(q.EventTime) >= ConsistencyDelay
	for i, e := range q.entries {
		if e != nil && (e.ownership == Owned && q.CurrentState || e.ownership.mayChange() && !consistent) {
			q.entries[i] = nil
		}
	}
}

// FetchOwners answers the lookups that LookUpCached returned, with as few calls as possible.
func (f *Finder) FetchOwners(ctx context.Context, all []*Lookup) error {
	count := 0
	for _, q := range all {
		count += len(q.IDs)
	}
	queries := make([]*query, 0, count)
	for _, q := range all {
		for i, e := range q.entries {
			if e == nil {
				queries = append(queries, q.newQuery(i))
			}
		}
	}
	for part := range slices.Chunk(queries, idsPerCall) {
		if err := f.callBatcher().Do(ctx, part...); err != nil {
			return fmt.Errorf("finding the owners of %d instances: %w", len(queries), err)
		}
	}
	now := f.Now()
	f.cache.Lock()
	defer f.cache.Unlock()
	for _, q := range all {
		consistent := now.Sub(q.EventTime) >= ConsistencyDelay
		for i, e := range q.entries {
			if e != nil {
				continue
			}
			q.entries[i], queries = queries[0].entry, queries[1:]
			if !q.entries[i].ownership.mayChange() || consistent {
				f.cache.store(q.IDs[i], q.entries[i])
			}
		}
		q.collectResult()
	}
	return nil
}

// collectResult sets the result from the entries.
func (q *Lookup) collectResult() {
	for i, e := range q.entries {
		q.Result.addInstance(q.IDs[i], e)
	}
}

func (o *Owners) addInstance(id string, e *entry) {
	switch e.ownership {
	case Owned:
		o.Owned = append(o.Owned, e.instance)
	case NotFound:
		o.NotFound = append(o.NotFound, id)
	case Untagged:
		o.Untagged = append(o.Untagged, id)
	default: // Foreign instances are omitted.
	}
}

func (f *Finder) callBatcher() *batcher.CallBatcher[*query] {
	f.once.Do(func() {
		f.batcher = batcher.New(batcher.Options[*query]{MaxCalls: parallelCalls, MaxItems: idsPerCall, Call: f.describeOwners})
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
	instances, err := f.EC2.DescribeInstances(ctx, cloud.InstanceFilter{IDs: ids})
	if err != nil {
		return fmt.Errorf("describing %d instances: %w", len(ids), err)
	}
	now := f.Now()
	notFound, untagged := &entry{ownership: NotFound, expires: now.Add(notFoundTTL)}, &entry{ownership: Untagged, expires: now.Add(notFoundTTL)}
	foreign := &entry{ownership: Foreign, expires: now.Add(foreignTTL)}
	entries, key := make([]*entry, len(ids)), karpenter.ClusterTagPrefix+f.Cluster
	var block []entry // Entries that are stored together are also evicted together.
	for i := range instances {
		at, requested := slices.BinarySearch(ids, instances[i].ID)
		if !requested {
			continue
		}
		if entries[at] = classifyInstance(&instances[i], key, notFound, untagged, foreign); entries[at] == nil {
			if len(block) == cap(block) {
				block = make([]entry, 0, min(entriesPerBlock, len(instances)-i))
			}
			block = append(block, newOwnedEntry(&instances[i]))
			entries[at] = &block[len(block)-1]
		}
	}
	for _, q := range queries {
		at, _ := slices.BinarySearch(ids, q.id)
		if q.entry = entries[at]; q.entry == nil {
			q.entry = notFound
		}
	}
	return nil
}

// classifyInstance returns the entry of an instance that EC2 returned, or nil if it is owned. EC2
// may return a new instance before its tags, and removes the tags of a terminated one before it
// stops returning it: in neither case is the instance foreign.
func classifyInstance(i *cloud.Instance, key string, notFound, untagged, foreign *entry) *entry {
	switch {
	case hasClusterTags(i, key):
		return nil
	case len(i.Tags) == 0 && i.State.Gone():
		return notFound
	case len(i.Tags) == 0:
		return untagged
	default:
		return foreign
	}
}

// newOwnedEntry returns an entry with only the needed properties, because the cache is large.
func newOwnedEntry(i *cloud.Instance) entry {
	return entry{ownership: Owned, instance: Instance{
		ID: i.ID, Offering: event.Offering{InstanceType: i.Type, Zone: i.Zone, CapacityType: i.CapacityType}, State: i.State,
	}}
}
