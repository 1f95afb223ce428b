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
	// templateKnown is how long a launch template that was there is not asked for
	// again. One that goes meanwhile is made anew when EC2 misses it.
	templateKnown = time.Minute
	// validated is for how long dry runs that went well are not repeated.
	validated = 30 * time.Minute
)

// Memory is what one process remembers of one cluster to spare EC2 calls and to
// stop a flood. Nothing that is right or wrong depends on it.
type Memory struct {
	mu      sync.Mutex
	breaker breaker.Breaker
	// templates is when a template was last seen to be there, and used when this
	// process last launched by it.
	templates, used map[string]time.Time
	rehearsed       map[string]time.Time
	// flying are the intents that a handler of this process launches now, and
	// settled how others ended.
	flying  map[string]bool
	settled map[string]outcome
}

// outcome is how an intent ended for good, and when.
type outcome struct {
	event.LaunchSettled
	at time.Time
}

// outcomeKept is how long an outcome is remembered: longer than an intent is
// asked for.
const outcomeKept = 10 * time.Minute

// NewMemory is an empty one with limits.
func NewMemory(limits Limits) *Memory {
	return &Memory{
		breaker:   breaker.Breaker{Limits: limits},
		templates: map[string]time.Time{}, used: map[string]time.Time{}, rehearsed: map[string]time.Time{},
		flying: map[string]bool{}, settled: map[string]outcome{},
	}
}

// begin reserves an intent for one handler, so that copies of its request do not
// cost EC2's tokens. It gives the outcome where that is known: under a token that
// is spent EC2 would only repeat it.
func (m *Memory) begin(intent string) (done *event.LaunchSettled, end func(), err error) {
	if m == nil {
		return nil, func() {}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.settled[intent]; ok {
		return &known.LaunchSettled, func() {}, nil
	}
	if m.flying[intent] {
		return nil, nil, fault.F("launching intent "+intent, fault.Retry, "a copy of the request is being obeyed")
	}
	m.flying[intent] = true
	return nil, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.flying, intent)
	}, nil
}

// ended remembers an outcome that nothing can change.
func (m *Memory) ended(settled event.LaunchSettled, now time.Time) {
	if m == nil || !settled.Spent {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for intent, old := range m.settled {
		if now.Sub(old.at) > outcomeKept {
			delete(m.settled, intent)
		}
	}
	m.settled[settled.Intent] = outcome{settled, now}
}

// allow asks the breaker. Without a memory only the size of one intent counts.
func (m *Memory) allow(now time.Time, intent string, count int) error {
	if m == nil {
		return (&breaker.Breaker{}).Allow(now, intent, count)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.breaker.Allow(now, intent, count)
}

// knows reports whether the template was there a moment ago.
func (m *Memory) knows(template string, now time.Time) bool {
	return m != nil && m.within(m.templates, template, now, templateKnown)
}

// uses reports whether this process launched by the template not long ago.
func (m *Memory) uses(template string, now time.Time, age time.Duration) bool {
	return m != nil && m.within(m.used, template, now, age)
}

// sure reports whether dry runs of this have gone well lately.
func (m *Memory) sure(rehearsal string, now time.Time) bool {
	return m != nil && m.within(m.rehearsed, rehearsal, now, validated)
}

func (m *Memory) within(notes map[string]time.Time, name string, now time.Time, age time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := notes[name]
	return ok && now.Sub(at) < age
}

// saw notes a template that is there and about to be launched by.
func (m *Memory) saw(template string, now time.Time) {
	if m != nil {
		m.note(template, now, m.templates, m.used)
	}
}

// assured notes dry runs that went well.
func (m *Memory) assured(rehearsal string, now time.Time) {
	if m != nil {
		m.note(rehearsal, now, m.rehearsed)
	}
}

func (m *Memory) note(name string, now time.Time, in ...map[string]time.Time) {
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

// miss forgets that a template was there.
func (m *Memory) miss(template string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.templates, template)
}
