package memcloud

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/catalog"
)

// Options is what a Cloud is made of. Only Now is needed.
type Options struct {
	// Now is the clock; it must not run backwards.
	Now func() time.Time
	// Seed decides ids, delays and every other chance.
	Seed int64
	// Region is us-west-2 when empty.
	Region string
	// Account is 123456789012 when empty.
	Account string
	// Catalogue is what is on offer and for how much; Small when it has no types.
	Catalogue catalog.Catalogue
	// Faults is what goes wrong by chance. SetFaults changes it later.
	Faults Faults
	// Boot is the mean time from pending to running: 10 s when zero. Each
	// instance takes between half and one and a half of it.
	Boot time.Duration
	// Shutdown is the time from shutting-down to terminated: 30 s when zero.
	Shutdown time.Duration
	// RateDivisor divides rate and burst of every request bucket; 1 when zero.
	// Negative switches throttling off.
	RateDivisor float64
	// Events gets each raw EventBridge event, as AWS would send it.
	Events func(raw []byte)
}

// Faults is what goes wrong by chance. The zero value is a kind cloud.
type Faults struct {
	// Lag is the longest that a new instance, a new tag, a new template or a
	// state stays invisible to Describe; EC2 shows up to 30 s.
	Lag time.Duration
	// TemplateLag is the longest that CreateFleet does not find a new template.
	TemplateLag time.Duration
	// LostAnswer is the share of writes that take effect and answer nothing.
	LostAnswer float64
	// LostCall is the share of writes that never arrive. The caller cannot tell
	// it from LostAnswer.
	LostCall float64
	// Throttle is the share of calls that are throttled without reason.
	Throttle float64
	// Shortage is the share of overrides for which a fleet finds no capacity. It is
	// drawn for each fleet anew.
	Shortage float64
	// ReuseAddresses gives the lowest free address to each new instance, so
	// that node names come back as soon as they can.
	ReuseAddresses bool
	// QuietEvents is the share of events that EventBridge never sends.
	QuietEvents float64
}

const (
	defaultRegion   = "us-west-2"
	defaultAccount  = "123456789012"
	defaultBoot     = 10 * time.Second
	defaultShutdown = 30 * time.Second
	// SpotNotice is how long after the warning a spot instance is terminated.
	SpotNotice = 2 * time.Minute
	// Remembered is how long a terminated instance is still described.
	Remembered = time.Hour
)

func (o Options) withDefaults() Options {
	if o.Now == nil {
		panic("memcloud: Options.Now is needed")
	}
	if o.Region == "" {
		o.Region = defaultRegion
	}
	if o.Account == "" {
		o.Account = defaultAccount
	}
	if len(o.Catalogue.Types) == 0 {
		o.Catalogue = Small(o.Region)
	}
	if o.Boot == 0 {
		o.Boot = defaultBoot
	}
	if o.Shutdown == 0 {
		o.Shutdown = defaultShutdown
	}
	if o.RateDivisor == 0 {
		o.RateDivisor = 1
	}
	return o
}
