// Package memblob is a seeded in-memory model of an S3 bucket, with the faults of the real one as options.
//
// It is strongly consistent, as S3 is, and deterministic: time comes from Options.Now and randomness from the seed.
// Bytes are copied on the way in and out, so that no caller can modify a stored object. It is safe for concurrent
// use, but then results also depend on the order of the calls.
package memblob

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Options configure a store.
type Options struct {
	// Now is the clock.
	Now  func() time.Time
	Seed uint64
	// Faults are the initial faults; SetFaults changes them.
	Faults Faults
	// Retention removes an object that long after its last write, like the bucket's lifecycle rule; zero keeps all.
	Retention time.Duration
}

// Faults are the probabilities, from 0 to 1, of a fault in one call.
type Faults struct {
	// FailPut, FailGet and FailWritten fail a call.
	FailPut, FailGet, FailWritten float64
	// SlowDown begins a burst of up to MaxBurst, in which nine in ten calls fail. S3 returns 503 Slow Down until it has
	// split a prefix that receives many requests.
	SlowDown float64
	// LosePutAnswer writes the object, but the caller gets an error.
	LosePutAnswer float64
	// Missing reports an existing object as missing, as after a shortened lifecycle rule.
	Missing float64
	// Corrupt flips a bit of the data that is read.
	Corrupt float64
}

// Fault is one kind of fault in the counts.
type Fault string

// The kinds of faults.
const (
	PutFailed     Fault = "put-failed"
	PutAnswerLost Fault = "put-answer-lost"
	GetFailed     Fault = "get-failed"
	WrittenFailed Fault = "written-failed"
	BurstBegun    Fault = "slow-down-burst"
	SlowedDown    Fault = "slow-down"
	Hidden        Fault = "missing"
	Corrupted     Fault = "corrupted"
)

const (
	// MaxBurst is the maximum length of a burst of 503 Slow Down. S3 documents none: it "may take some time" to scale
	// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html).
	MaxBurst = 3 * time.Minute
	// burstShare is the fraction of calls that fail in a burst.
	burstShare = 0.9
)

// Store is a bucket.
type Store struct {
	mu        sync.Mutex
	now       func() time.Time
	retention time.Duration
	random    *rand.Rand
	faults    Faults
	counts    map[Fault]int
	objects   map[string]object
	// slowUntil is the end of the burst.
	slowUntil time.Time
}

type object struct {
	data    []byte
	written time.Time
}

var _ blob.Lister = (*Store)(nil)

// New returns an empty store.
func New(o Options) *Store {
	return &Store{
		now: o.Now, retention: o.Retention, faults: o.Faults,
		random: rand.New(rand.NewPCG(o.Seed, 0x626c6f62)),
		counts: map[Fault]int{}, objects: map[string]object{},
	}
}

// Put writes the object.
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	op := "writing " + key
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	if key == "" || len(data) > blob.MaxObject {
		return fault.F(op, fault.Invalid, "%d bytes under a key of %d characters", len(data), len(key))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isSlow() {
		return fault.F(op, fault.Throttled, "injected fault: SlowDown: Please reduce your request rate")
	}
	if s.shouldFail(PutFailed, s.faults.FailPut) {
		return fault.F(op, fault.Retry, "injected fault: the call failed")
	}
	s.objects[key] = object{data: bytes.Clone(data), written: s.now()}
	if s.shouldFail(PutAnswerLost, s.faults.LosePutAnswer) {
		return fault.F(op, fault.Unknown, "injected fault: the response was lost")
	}
	return nil
}

// Get reads the object.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.findObject(ctx, "reading "+key, key, GetFailed, s.faults.FailGet)
	if err != nil {
		return nil, err
	}
	data := append([]byte{}, found.data...)
	if len(data) > 0 && s.shouldFail(Corrupted, s.faults.Corrupt) {
		data[s.random.IntN(len(data))] ^= 1 << s.random.IntN(8)
	}
	return data, nil
}

// LastWritten returns when the object was last written.
func (s *Store) LastWritten(ctx context.Context, key string) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.findObject(ctx, "checking for "+key, key, WrittenFailed, s.faults.FailWritten)
	return found.written, err
}

// findObject looks an object up, unless a fault happens.
func (s *Store) findObject(ctx context.Context, op, key string, kind Fault, chance float64) (object, error) {
	if err := ctx.Err(); err != nil {
		return object{}, fmt.Errorf("%s: %w", op, err)
	}
	if s.isSlow() {
		return object{}, fault.F(op, fault.Throttled, "injected fault: SlowDown: Please reduce your request rate")
	}
	if s.shouldFail(kind, chance) {
		return object{}, fault.F(op, fault.Retry, "injected fault: the call failed")
	}
	s.expireObject(key)
	found, ok := s.objects[key]
	if !ok || s.shouldFail(Hidden, s.faults.Missing) {
		return object{}, fault.F(op, fault.Missing, "the object does not exist")
	}
	return found, nil
}

// expireObject removes an object whose retention has ended.
func (s *Store) expireObject(key string) {
	if o, ok := s.objects[key]; ok && s.retention > 0 && !s.now().Before(o.written.Add(s.retention)) {
		delete(s.objects, key)
	}
}

// ListKeys lists the keys, sorted.
func (s *Store) ListKeys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.objects {
		s.expireObject(key)
	}
	return slices.Sorted(maps.Keys(s.objects))
}

// List yields the objects whose keys begin with prefix, as they are when it is called.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[blob.StoredObject, error] {
	return func(yield func(blob.StoredObject, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(blob.StoredObject{}, fmt.Errorf("listing %s: %w", prefix, err))
			return
		}
		for _, key := range s.ListKeys() {
			if !strings.HasPrefix(key, prefix) {
				continue
			}
			s.mu.Lock()
			found := s.objects[key]
			s.mu.Unlock()
			if !yield(blob.StoredObject{Key: key, Size: len(found.data), LastWritten: found.written}, nil) {
				return
			}
		}
	}
}

// RemoveKey deletes an object, as an operator or a lifecycle rule may.
func (s *Store) RemoveKey(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, key)
}

// SetFaults replaces the faults from now on; the zero value disables them, and ends a burst.
func (s *Store) SetFaults(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
	if f.SlowDown <= 0 {
		s.slowUntil = time.Time{}
	}
}

// Counts returns how often each fault has happened.
func (s *Store) Counts() map[Fault]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts)
}

// isSlow reports whether a call fails because of a burst, which it may begin.
func (s *Store) isSlow() bool {
	now := s.now()
	if !now.Before(s.slowUntil) {
		if !s.shouldFail(BurstBegun, s.faults.SlowDown) {
			return false
		}
		s.slowUntil = now.Add(time.Second + time.Duration(s.random.Int64N(int64(MaxBurst-time.Second))))
	}
	return s.shouldFail(SlowedDown, burstShare)
}

// shouldFail draws whether a fault happens and counts it.
func (s *Store) shouldFail(kind Fault, chance float64) bool {
	if chance <= 0 || s.random.Float64() >= chance {
		return false
	}
	s.counts[kind]++
	return true
}
