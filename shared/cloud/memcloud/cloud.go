package memcloud

import (
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
)

// Cloud is one account in one region. It is safe for concurrent use.
type Cloud struct {
	mu      sync.Mutex
	options Options
	faults  Faults
	clock   time.Time

	offers  map[event.Offering]*offer
	types   map[string]catalog.InstanceType
	blocked []blockade

	// all are all instances ever, existing the instances that EC2 still returns, and leaving the terminated ones among them,
	// in the order of termination.
	all, existing, leaving []*instance
	instances              map[string]*instance
	steps                  steps

	templates map[string]*template
	tokens    map[string]answer
	subnets   map[string]*subnet
	groups    []cloud.SecurityGroup
	reserved  []*reservation
	placement []cloud.PlacementGroup
	images    []cloud.Image
	params    map[string]string
	clusters  map[string]cloud.ClusterInfo
	profiles  map[string]*cloud.Profile
	roles     map[string]bool
	health    map[string]*cloud.Status

	buckets map[bucketName]*bucket
	counts  map[Action]*Count
	scripts map[Action][]script
	denied  map[Action]bool
	serials map[string]uint64
	// injected counts the random faults by kind.
	injected map[string]int

	effects []Effect
	booted  []Boot
	// rebooted are the instances of accepted reboots.
	rebooted []string
	outbox   [][]byte
	spent    float64

	// shifts and down are the zonal shifts and the zones that accept no launches.
	shifts []cloud.ZonalShift
	down   map[string]bool
}

// Cloud implements the interfaces of shared/cloud.
var (
	_ cloud.Launcher = (*Cloud)(nil)
	_ cloud.Network  = (*Cloud)(nil)
	_ cloud.Images   = (*Cloud)(nil)
	_ cloud.Clusters = (*Cloud)(nil)
	_ cloud.Profiles = (*Cloud)(nil)
	_ cloud.Statuses = (*Cloud)(nil)

	_ cloud.DryRunner = (*Cloud)(nil)
)

// New returns an account that contains only the catalogue's offerings; see Furnish for a network, images and a
// cluster.
func New(options Options) *Cloud {
	o := options.withDefaults()
	c := &Cloud{
		options: o, faults: o.Faults, clock: o.Now(),
		offers: map[event.Offering]*offer{}, types: map[string]catalog.InstanceType{},
		instances: map[string]*instance{}, templates: map[string]*template{},
		tokens: map[string]answer{}, subnets: map[string]*subnet{},
		params: map[string]string{}, clusters: map[string]cloud.ClusterInfo{},
		profiles: map[string]*cloud.Profile{}, roles: map[string]bool{},
		health: map[string]*cloud.Status{}, counts: map[Action]*Count{},
		scripts: map[Action][]script{}, denied: map[Action]bool{}, serials: map[string]uint64{},
		injected: map[string]int{},
	}
	c.buckets = newBuckets(o.RateDivisor, c.clock)
	c.stock(o.Catalogue)
	return c
}

// Region returns the account's region.
func (c *Cloud) Region() string { return c.options.Region }

// Account returns the account's number.
func (c *Cloud) Account() string { return c.options.Account }

// SetFaults replaces the random faults from now on.
func (c *Cloud) SetFaults(faults Faults) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = faults
}

// Advance applies all changes that are due, and sends their events.
func (c *Cloud) Advance() { c.do(func(time.Time) {}) }

// do runs f at the current time, with the lock, and then sends the events.
func (c *Cloud) do(f func(now time.Time)) {
	c.mu.Lock()
	c.advance(c.options.Now())
	f(c.clock)
	c.flush()
}

// flush releases the lock and then calls the hook, because a hook may call the model.
func (c *Cloud) flush() {
	events := c.outbox
	c.outbox = nil
	hook := c.options.Events
	c.mu.Unlock()
	if hook == nil {
		return
	}
	for _, raw := range events {
		hook(raw)
	}
}
