package launcher

import (
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/services/launcher/internal/breaker"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Limits are what one cluster may ask for; zero values are generous.
type Limits = breaker.Limits

const (
	// templateTTL is how long a launch template that was there is not asked for
	// again. One that goes meanwhile is made anew when EC2 misses it.
	templateTTL = time.Minute
	// dryRunTTL is for how long dry runs that went well are not repeated.
	dryRunTTL = 30 * time.Minute
)

// LaunchCache is what one process remembers of one cluster to spare EC2 calls and to
// stop a flood. Nothing that is right or wrong depends on it.
type LaunchCache struct {
	mu      sync.Mutex
	breaker breaker.Breaker
	// templates is when a template was last seen to be there, and used when this
	// process last launched by it.
	templates, used map[string]time.Time
	dryRuns         map[string]time.Time
	// inFlight are the intents that a handler of this process launches now, and
	// settled how others ended.
	inFlight map[string]bool
	results  map[string]storedResult
}

// storedResult is how an intent ended for good, and when.
type storedResult struct {
	event.LaunchSettled
	at time.Time
}

// resultTTL is how long an outcome is remembered: longer than an intent is
// asked for.
const resultTTL = 10 * time.Minute

// NewLaunchCache is an empty one with limits.
func NewLaunchCache(limits Limits) *LaunchCache {
	return &LaunchCache{
		breaker:   breaker.Breaker{Limits: limits},
		templates: map[string]time.Time{}, used: map[string]time.Time{}, dryRuns: map[string]time.Time{},
		inFlight: map[string]bool{}, results: map[string]storedResult{},
	}
}

// reserveIntent reserves an intent for one handler, so that copies of its request do not
// cost EC2's tokens. It gives the outcome where that is known: under a token that
// is spent EC2 would only repeat it.
func (m *LaunchCache) reserveIntent(intent string) (done *event.LaunchSettled, end func(), err error) {
	if m == nil {
		return nil, func() {}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.results[intent]; ok {
		return &known.LaunchSettled, func() {}, nil
	}
	if m.inFlight[intent] {
		return nil, nil, fault.F("launching intent "+intent, fault.Retry, "a copy of the request is being obeyed")
	}
	m.inFlight[intent] = true
	return nil, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.inFlight, intent)
	}, nil
}

// storeResult remembers an outcome that nothing can change.
func (m *LaunchCache) storeResult(settled event.LaunchSettled, now time.Time) {
	if m == nil || !settled.Spent {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for intent, old := range m.results {
		if now.Sub(old.at) > resultTTL {
			delete(m.results, intent)
		}
	}
	m.results[settled.Intent] = storedResult{settled, now}
}

// allowLaunch asks the breaker. Without a memory only the size of one intent counts.
func (m *LaunchCache) allowLaunch(now time.Time, intent string, count int) error {
	if m == nil {
		return (&breaker.Breaker{}).Allow(now, intent, count)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.breaker.Allow(now, intent, count)
}

// hasTemplate reports whether the template was there a moment ago.
func (m *LaunchCache) hasTemplate(template string, now time.Time) bool {
	return m != nil && m.isRecent(m.templates, template, now, templateTTL)
}

// isTemplateInUse reports whether this process launched by the template not long ago.
func (m *LaunchCache) isTemplateInUse(template string, now time.Time, age time.Duration) bool {
	return m != nil && m.isRecent(m.used, template, now, age)
}

// hasPassedDryRun reports whether dry runs of this have gone well lately.
func (m *LaunchCache) hasPassedDryRun(rehearsal string, now time.Time) bool {
	return m != nil && m.isRecent(m.dryRuns, rehearsal, now, dryRunTTL)
}

func (m *LaunchCache) isRecent(notes map[string]time.Time, name string, now time.Time, age time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := notes[name]
	return ok && now.Sub(at) < age
}

// storeTemplate notes a template that is there and about to be launched by.
func (m *LaunchCache) storeTemplate(template string, now time.Time) {
	if m != nil {
		m.storeTime(template, now, m.templates, m.used)
	}
}

// storeDryRun notes dry runs that went well.
func (m *LaunchCache) storeDryRun(rehearsal string, now time.Time) {
	if m != nil {
		m.storeTime(rehearsal, now, m.dryRuns)
	}
}

func (m *LaunchCache) storeTime(name string, now time.Time, in ...map[string]time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, notes := range in {
		notes[name] = now
		for other, at := range notes {
			if now.Sub(at) > TemplateAge {
				delete(notes, other)
			}
		}
	}
}

// forgetTemplate forgets that a template was there.
func (m *LaunchCache) forgetTemplate(template string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.templates, template)
}
