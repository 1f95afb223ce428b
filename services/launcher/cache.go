package launcher

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/joist-autoscaler/joist/services/launcher/internal/breaker"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Limits are the limits of the breaker; zero values mean breaker.DefaultLimits.
type Limits = breaker.Limits

const (
	// templateTTL is how long a launch template is assumed to exist. A template that is deleted
	// earlier is created again when EC2 does not find it.
	templateTTL = time.Minute
	// dryRunTTL is how long successful dry runs are not repeated.
	dryRunTTL = 30 * time.Minute
	// maxCached is the maximum number of templates, of dry runs and of results. It is far above the
	// launches within the minutes in which lifecycle repeats a request.
	maxCached = 10_000
)

// LaunchCache saves calls to EC2 and contains the breaker. Each process has one for each cluster.
// Losing it costs calls but never correctness. The methods work on nil.
type LaunchCache struct {
	// templates has the times at which templates were last ensured, and used the times at which
	// this process last launched with them.
	templates, used, dryRuns *lru.Cache[string, time.Time]
	// results has the final results of intents.
	results *lru.Cache[string, event.LaunchSettled]

	mu      sync.Mutex
	breaker breaker.Breaker
	// inFlight has the intents that a handler of this process is launching.
	inFlight map[string]bool
}

// NewLaunchCache returns an empty cache whose breaker has the limits.
func NewLaunchCache(limits Limits) *LaunchCache {
	return &LaunchCache{
		templates: newLRU[time.Time](), used: newLRU[time.Time](), dryRuns: newLRU[time.Time](), results: newLRU[event.LaunchSettled](),
		breaker: breaker.Breaker{Limits: limits}, inFlight: map[string]bool{},
	}
}

func newLRU[V any]() *lru.Cache[string, V] {
	cache, _ := lru.New[string, V](maxCached) // It fails only if the size is not positive.
	return cache
}

// reserveIntent reserves an intent for one handler until it calls release. It returns
// the cached result if there is one: EC2 would only repeat it. For an intent that is
// in flight it returns fault.Retry, so that duplicates do not use EC2's request rate.
func (m *LaunchCache) reserveIntent(intent string) (result *event.LaunchSettled, release func(), err error) {
	if m == nil {
		return nil, func() {}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if cached, ok := m.results.Get(intent); ok {
		return &cached, func() {}, nil
	}
	if m.inFlight[intent] {
		return nil, nil, fault.F("launching intent "+intent, fault.Retry, "a duplicate of the request is in flight")
	}
	m.inFlight[intent] = true
	return nil, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.inFlight, intent)
	}, nil
}

// storeResult caches a result whose token is spent, because it cannot change.
func (m *LaunchCache) storeResult(result event.LaunchSettled) {
	if m != nil && result.Spent {
		m.results.Add(result.Intent, result)
	}
}

// allowLaunch calls the breaker. Without a cache it checks only the size of the intent.
func (m *LaunchCache) allowLaunch(now time.Time, intent string, count int) error {
	if m == nil {
		return (&breaker.Breaker{}).Allow(now, intent, count)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.breaker.Allow(now, intent, count)
}

// hasTemplate reports whether the template was ensured within templateTTL.
func (m *LaunchCache) hasTemplate(template string, now time.Time) bool {
	return m != nil && isRecent(m.templates, template, now, templateTTL)
}

// isTemplateInUse reports whether this process launched with the template within age.
func (m *LaunchCache) isTemplateInUse(template string, now time.Time, age time.Duration) bool {
	return m != nil && isRecent(m.used, template, now, age)
}

// hasPassedDryRun reports whether these dry runs succeeded within dryRunTTL.
func (m *LaunchCache) hasPassedDryRun(key string, now time.Time) bool {
	return m != nil && isRecent(m.dryRuns, key, now, dryRunTTL)
}

func isRecent(times *lru.Cache[string, time.Time], key string, now time.Time, age time.Duration) bool {
	at, ok := times.Get(key)
	return ok && now.Sub(at) < age
}

// storeTemplate records that the template exists and is about to be used.
func (m *LaunchCache) storeTemplate(template string, now time.Time) {
	if m != nil {
		m.templates.Add(template, now)
		m.used.Add(template, now)
	}
}

// storeDryRun records that these dry runs succeeded.
func (m *LaunchCache) storeDryRun(key string, now time.Time) {
	if m != nil {
		m.dryRuns.Add(key, now)
	}
}

// forgetTemplate removes a template that may no longer exist.
func (m *LaunchCache) forgetTemplate(template string) {
	if m != nil {
		m.templates.Remove(template)
	}
}
