package memcloud

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/catalog"
)

// Options configure a Cloud. Only Now is required.
type Options struct {
	// Now is the clock; it must not go backwards.
	Now func() time.Time
	// Seed determines ids, delays and all other random values.
	Seed int64
	// Region is us-west-2 if empty.
	Region string
	// Account is 123456789012 if empty.
	Account string
	// Catalogue has the offerings and prices; Small if it has no types.
	Catalogue catalog.Catalogue
	// Faults are the random faults. SetFaults changes them later.
	Faults Faults
	// Boot is the mean time from pending to running: 10 s if zero. Each instance takes between half and one and a
	// half of it, except those of Faults.SlowBoot.
	Boot time.Duration
	// Shutdown is the time from shutting-down to terminated: 30 s if zero.
	Shutdown time.Duration
	// EvenSpot gives all spot pools the same spare capacity, so that price-capacity-optimized chooses the lowest price.
	EvenSpot bool
	// RateDivisor divides rate and burst of every request bucket; 1 if zero. Negative disables throttling.
	RateDivisor float64
	// Events receives each raw EventBridge event, as AWS would send it.
	Events func(raw []byte)
}

// Faults are random faults. The zero value has none.
type Faults struct {
	// Lag is the longest time that a new instance, tag, template or state stays invisible to Describe.
	Lag time.Duration
	// LongLag is the fraction of them that stay invisible for up to MaxLag.
	LongLag float64
	// SlowBoot is the fraction of instances that need up to four minutes more from pending to running.
	SlowBoot float64
	// TemplateLag is the longest time that CreateFleet does not find a new template.
	TemplateLag time.Duration
	// LostAnswer is the fraction of writes that take effect and lose their response.
	LostAnswer float64
	// LostCall is the fraction of writes that never arrive. The caller cannot distinguish it from LostAnswer.
	LostCall float64
	// Throttle is the fraction of calls that are throttled below the rate limit.
	Throttle float64
	// Shortage is the fraction of overrides for which a fleet finds no capacity. It is drawn separately for each
	// fleet.
	Shortage float64
	// ReuseAddresses gives the lowest free address to each new instance, so that node names repeat as soon as
	// possible.
	ReuseAddresses bool
	// QuietEvents is the fraction of events that EventBridge never sends.
	QuietEvents float64
}

const (
	defaultRegion   = "us-west-2"
	defaultAccount  = "123456789012"
	defaultBoot     = 10 * time.Second
	defaultShutdown = 30 * time.Second
	maxSlowBoot     = 4 * time.Minute
	// MaxLag is the longest time that EC2 needs to show a change. AWS documents no distribution, and recommends to
	// repeat a Describe with waits of up to five minutes
	// (https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html).
	MaxLag = 5 * time.Minute
	// SpotNotice is how long after the warning a spot instance is terminated.
	SpotNotice = 2 * time.Minute
	// Remembered is how long Describe returns a terminated instance.
	Remembered = time.Hour
)

func (o Options) withDefaults() Options {
	if o.Now == nil {
		panic("memcloud: Options.Now is required")
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
