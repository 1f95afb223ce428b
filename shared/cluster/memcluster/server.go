package memcluster

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// Options configure a Server.
type Options struct {
	// Now is the server's clock; nil means that the time is always Epoch.
	Now func() time.Time
	// Seed makes UIDs, jitter and faults repeatable.
	Seed int64
	// Observe is called with every effect, before any later call. It must not call the
	// server.
	Observe func(Effect)
}

// Server is the model. It implements cluster.Client for tests, without faults.
type Server struct {
	*Client

	mu      sync.Mutex
	now     func() time.Time
	seed    int64
	observe func(Effect)

	revision   int64 // the one counter behind every resourceVersion
	uidCount   int64 // the counter behind every UID
	objects    map[cluster.Kind]map[cluster.Key]cluster.Object
	caches     []*Cache
	cacheCount uint64 // how many caches were ever opened, for their seeds

	faults   []*Fault
	random   *rand.Rand
	injected map[string]int
	calls    map[string]int

	acting  caller
	effects []Effect
	events  []cluster.Event
	// lastReported is when an event was last stored, by its identity.
	lastReported map[string]time.Time
	staleBudgets map[string]bool // namespaces whose budgets must be recomputed
	garbage      bool            // something may have to be collected
}

// caller is the actor of the current call, for the effect log.
type caller struct {
	actor string
	verb  Verb
}

// Epoch is the time of a server without a clock.
var Epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// New returns a server with the namespaces and priority classes of every cluster.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = func() time.Time { return Epoch }
	}
	s := &Server{
		now:          o.Now,
		seed:         o.Seed,
		observe:      o.Observe,
		objects:      map[cluster.Kind]map[cluster.Key]cluster.Object{},
		random:       rand.New(rand.NewPCG(uint64(o.Seed), 1)),
		injected:     map[string]int{},
		calls:        map[string]int{},
		staleBudgets: map[string]bool{},

		lastReported: map[string]time.Time{},
	}
	s.Client = &Client{server: s, exempt: true}
	for _, kind := range cluster.Kinds {
		s.objects[kind] = map[cluster.Key]cluster.Object{}
	}
	for _, name := range []string{"default", "kube-node-lease", "kube-public", "kube-system"} {
		s.SeedObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, class := range systemPriorityClasses() {
		s.SeedObjects(class)
	}
	return s
}

// ClientFor returns the client of an actor, such as "lifecycle". Faults affect it.
func (s *Server) ClientFor(actor string) *Client { return &Client{server: s, actor: actor} }

// AsKubernetes returns the client of a part of Kubernetes, such as "scheduler". Faults do not
// affect it.
func (s *Server) AsKubernetes(actor string) *Client {
	return &Client{server: s, actor: actor, exempt: true}
}

// UID is the UID of the kube-system namespace, which stands for the cluster.
func (s *Server) UID() types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[cluster.Namespaces][cluster.Key{Name: "kube-system"}].GetUID()
}

// Version is the resourceVersion of the last write.
func (s *Server) Version() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// ListStored lists the stored objects of a kind, ordered by namespace and name. They are not copies: callers must not
// modify them. No fault affects it.
func (s *Server) ListStored(kind cluster.Kind) []cluster.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updateBudgets()
	out := make([]cluster.Object, 0, len(s.objects[kind]))
	for _, key := range s.sortKeysOf(kind) {
		out = append(out, s.objects[kind][key])
	}
	return out
}

// Calls counts the calls so far by "actor verb kind".
func (s *Server) Calls() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls)
}

// apiTime is the current time in whole seconds, as the API writes it.
func (s *Server) apiTime() metav1.Time { return metav1.NewTime(s.now().Truncate(time.Second)) }

// nextUID derives the next UID from the seed and a counter, in the shape of a
// version 4 UUID.
func (s *Server) nextUID() types.UID {
	s.uidCount++
	var in [16]byte
	binary.BigEndian.PutUint64(in[:8], uint64(s.seed))
	binary.BigEndian.PutUint64(in[8:], uint64(s.uidCount))
	sum := sha256.Sum256(in[:])
	sum[6] = sum[6]&0x0f | 0x40
	sum[8] = sum[8]&0x3f | 0x80
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}
