package sim

import (
	"math/rand/v2"
	"strings"
	"time"
)

// machineClocks draws how far the clock of each actor's machine is ahead of that of Kubernetes and AWS. Clocks of two
// machines differ by at most a minute, which Joist allows for. It has a random source of its own, so that the other draws
// of a seed stay the same.
type machineClocks struct {
	random *rand.Rand
	// center is the middle of the skews, which differ from it by at most 30 s.
	center time.Duration
	agree  bool
	skews  map[string]time.Duration
}

// newMachineClocks draws whether clocks agree, as they do in a quarter of the seeds.
func newMachineClocks(seed int64) *machineClocks {
	random := rand.New(rand.NewPCG(uint64(seed), 0x636c6f636b)) //nolint:gosec // a seeded source: a run must be repeatable
	centers := []time.Duration{0, -30 * time.Second, 30 * time.Second}
	return &machineClocks{random: random, agree: random.IntN(4) == 0, center: centers[random.IntN(3)], skews: map[string]time.Duration{}}
}

// drawSkew draws the skew of an actor that starts, in whole milliseconds. An actor that starts again has the same machine.
func (m *machineClocks) drawSkew(actor string) time.Duration {
	if _, drawn := m.skews[actor]; !drawn && !m.agree {
		m.skews[actor] = m.center + time.Duration(m.random.IntN(60001)-30000)*time.Millisecond
	}
	return m.skews[actor]
}

// readClock returns the time that an actor's clock shows at a time. Without machineClocks they are equal.
func (m *machineClocks) readClock(actor string, at time.Time) time.Time {
	if m == nil {
		return at
	}
	return at.Add(m.skews[actor])
}

// readFastest returns the time that the fastest clock of a service's replicas shows.
func (m *machineClocks) readFastest(service string, at time.Time) time.Time {
	fastest := at
	for _, replica := range []string{"-0", "-1"} {
		if shown := m.readClock(service+replica, at); shown.After(fastest) {
			fastest = shown
		}
	}
	return fastest
}

// countInto counts the actors whose clocks are far from Kubernetes', and the services whose replicas differ.
func (m *machineClocks) countInto(faults map[string]int) {
	if m == nil {
		return
	}
	for actor, skew := range m.skews {
		switch {
		case skew > 15*time.Second:
			faults["clock ahead by more than 15 s"]++
		case skew < -15*time.Second:
			faults["clock behind by more than 15 s"]++
		}
		if other, ok := strings.CutSuffix(actor, "-0"); ok && (skew-m.skews[other+"-1"]).Abs() > 15*time.Second {
			faults["clocks of two replicas differ"]++
		}
	}
}
