package launcher

import (
	"sync"
	"time"

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
	// resultTTL is how long a result is cached: longer than lifecycle repeats a request.
	resultTTL = 10 * time.Minute
)

// LaunchCache saves calls to EC2 and contains the breaker. Each process has one for each cluster.
// Losing it costs calls but never correctness. The methods work on nil.
type LaunchCache struct {
	mu      sync.Mutex
	breaker breaker.Breaker
	// templates has the times at which templates were last ensured, and used the times at which
	// this process last launched with them.
	templates, used map[string]time.Time
	dryRuns         map[string]time.Time
	// inFlight has the intents that a handler of this process is launching, and results the final
	// results of other intents.
	inFlight map[string]bool
	results  map[string]storedResult
}

// storedResult is a final result and the time at which it was stored.
type storedResult struct {
	event.LaunchSettled
	at time.Time
}

// NewLaunchCache returns an empty cache whose breaker has the limits.
func NewLaunchCache(limits Limits) *LaunchCache {
	return &LaunchCache{
		breaker:   breaker.Breaker{Limits: limits},
		templates: map[string]time.Time{}, used: map[string]time.Time{}, dryRuns: map[string]time.Time{},
		inFlight: map[string]bool{}, results: map[string]storedResult{},
	}
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
	if cached, ok := m.results[intent]; ok {
		return &cached.LaunchSettled, func() {}, nil
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
func (m *LaunchCache) storeResult(result event.LaunchSettled, now time.Time) {
	if m == nil || !result.Spent {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for intent, old := range m.results {
		if now.Sub(old.at) > resultTTL {
			delete(m.results, intent)
		}
	}
	m.results[result.Intent] = storedResult{result, now}
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
	return m != nil && m.isRecent(m.templates, template, now, templateTTL)
}

// isTemplateInUse reports whether this process launched with the template within age.
func (m *LaunchCache) isTemplateInUse(template string, now time.Time, age time.Duration) bool {
	return m != nil && m.isRecent(m.used, template, now, age)
}

// hasPassedDryRun reports whether these dry runs succeeded within dryRunTTL.
func (m *LaunchCache) hasPassedDryRun(key string, now time.Time) bool {
	return m != nil && m.isRecent(m.dryRuns, key, now, dryRunTTL)
}

func (m *LaunchCache) isRecent(times map[string]time.Time, key string, now time.Time, age time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := times[key]
	return ok && now.Sub(at) < age
}

// storeTemplate records that the template exists and is about to be used.
func (m *LaunchCache) storeTemplate(template string, now time.Time) {
	if m != nil {
		m.storeTime(template, now, m.templates, m.used)
	}
}

// storeDryRun records that these dry runs succeeded.
func (m *LaunchCache) storeDryRun(key string, now time.Time) {
	if m != nil {
		m.storeTime(key, now, m.dryRuns)
	}
}

func (m *LaunchCache) storeTime(key string, now time.Time, maps ...map[string]time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, times := range maps {
		times[key] = now
		for other, at := range times {
			if now.Sub(at) > TemplateAge {
				delete(times, other)
			}
		}
	}
}

// forgetTemplate removes a template that may no longer exist.
func (m *LaunchCache) forgetTemplate(template string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.templates, template)
}
