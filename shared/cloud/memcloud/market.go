package memcloud

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// Offering is one way to buy a type. As a pattern (in Block) an empty field
// means any.
type Offering struct {
	Type, Zone, CapacityType string
}

func (o Offering) covers(x Offering) bool {
	return (o.Type == "" || o.Type == x.Type) &&
		(o.Zone == "" || o.Zone == x.Zone) &&
		(o.CapacityType == "" || o.CapacityType == x.CapacityType)
}

// offer is what the market knows of an offering.
type offer struct {
	price float64
	// counted offerings have free instances left; others have no end.
	counted bool
	free    int
}

// blockade makes offerings fail with one of EC2's codes for a while.
type blockade struct {
	pattern Offering
	code    string
	until   time.Time
}

func (c *Cloud) stock(catalogue catalog.Catalogue) {
	for _, t := range catalogue.Types {
		c.types[t.Name] = t
		for _, o := range t.Offerings {
			c.offers[Offering{t.Name, o.Zone, o.CapacityType}] =
				&offer{price: o.PricePerHour, counted: !o.Available || o.CapacityType == cloud.Reserved}
		}
	}
}

// SetCapacity leaves n instances of the offering; what runs already is not
// among them, but adds to them when it ends. Negative n means without end.
func (c *Cloud) SetCapacity(offering Offering, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.offers[offering]
	if o == nil {
		o = &offer{}
		c.offers[offering] = o
	}
	o.counted, o.free = n >= 0, max(n, 0)
}

// Capacity tells how many instances the offering has left; -1 is without end,
// and 0 also where it does not exist.
func (c *Cloud) Capacity(offering Offering) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.offers[offering]
	if o == nil {
		return 0
	}
	if !o.counted {
		return -1
	}
	return o.free
}

// Shortage makes EC2 answer InsufficientInstanceCapacity for every offering
// that the pattern covers, until the time.
func (c *Cloud) Shortage(pattern Offering, until time.Time) {
	c.Block(pattern, "InsufficientInstanceCapacity", until)
}

// Block makes EC2 answer the code for every offering that the
// pattern covers, until the time: for example MaxSpotInstanceCountExceeded
// for all of spot.
func (c *Cloud) Block(pattern Offering, code string, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blocked = append(c.blocked, blockade{pattern, code, until})
}

// Unblock ends all that Block and Shortage began.
func (c *Cloud) Unblock() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blocked = nil
}

// SetPrice changes what an offering costs in dollars an hour, for those who
// launch from now on.
func (c *Cloud) SetPrice(offering Offering, dollars float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.offers[offering]; o != nil {
		o.price = dollars
	}
}

// Price is what an offering costs in dollars an hour; false where there is none.
func (c *Cloud) Price(offering Offering) (float64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.offers[offering]
	if o == nil {
		return 0, false
	}
	return o.price, true
}

// blockedBy gives the code that the offering fails with now, or "".
func (c *Cloud) blockedBy(o Offering) string {
	for _, b := range c.blocked {
		if c.clock.Before(b.until) && b.pattern.covers(o) {
			return b.code
		}
	}
	return ""
}

// depth is how much spare capacity spot has there, in [0, 1). It changes every
// six hours, as real pools do and prices hardly.
func (c *Cloud) depth(o Offering) float64 {
	epoch := c.clock.Truncate(6 * time.Hour).UTC().Format(time.RFC3339)
	return c.share("depth", o.Type, o.Zone, o.CapacityType, epoch)
}
