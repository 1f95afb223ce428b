package memcloud

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
)

// covers reports whether the pattern, whose empty fields match any value, matches the offering.
func covers(pattern, o event.Offering) bool {
	return (pattern.InstanceType == "" || pattern.InstanceType == o.InstanceType) &&
		(pattern.Zone == "" || pattern.Zone == o.Zone) &&
		(pattern.CapacityType == "" || pattern.CapacityType == o.CapacityType)
}

// offer is the state of an offering.
type offer struct {
	price float64
	// counted offerings have a limited number of free instances; others are unlimited.
	counted bool
	free    int
}

// blockade makes offerings fail with an EC2 error code for a while.
type blockade struct {
	pattern event.Offering
	code    string
	until   time.Time
}

func (c *Cloud) stock(catalogue catalog.Catalogue) {
	for _, t := range catalogue.Types {
		c.types[t.Name] = t
		for _, o := range t.Offerings {
			c.offers[event.Offering{InstanceType: t.Name, Zone: o.Zone, CapacityType: o.CapacityType}] =
				&offer{price: o.PricePerHour, counted: !o.Available || o.CapacityType == cloud.Reserved}
		}
	}
}

// SetCapacity limits the offering to n more instances; running ones are not included, but increase it when they end.
// Negative n means no limit.
func (c *Cloud) SetCapacity(offering event.Offering, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.offers[offering]
	if o == nil {
		o = &offer{}
		c.offers[offering] = o
	}
	o.counted, o.free = n >= 0, max(n, 0)
}

// Capacity returns how many more instances the offering has; -1 means no limit, and 0 also that it does not exist.
func (c *Cloud) Capacity(offering event.Offering) int {
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

// Shortage makes EC2 return InsufficientInstanceCapacity for every offering that matches the pattern, until the time.
func (c *Cloud) Shortage(pattern event.Offering, until time.Time) {
	c.Block(pattern, "InsufficientInstanceCapacity", until)
}

// Block makes EC2 return the code for every offering that matches the pattern, until the time: for example
// MaxSpotInstanceCountExceeded for all spot offerings.
func (c *Cloud) Block(pattern event.Offering, code string, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blocked = append(c.blocked, blockade{pattern, code, until})
}

// Unblock ends all calls of Block and Shortage.
func (c *Cloud) Unblock() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blocked = nil
}

// SetPrice changes the price of an offering in dollars per hour, for new launches.
func (c *Cloud) SetPrice(offering event.Offering, dollars float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.offers[offering]; o != nil {
		o.price = dollars
	}
}

// Price returns the price of an offering in dollars per hour; false if it does not exist.
func (c *Cloud) Price(offering event.Offering) (float64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.offers[offering]
	if o == nil {
		return 0, false
	}
	return o.price, true
}

// blockedBy returns the error code of a blocked offering, or "".
func (c *Cloud) blockedBy(o event.Offering) string {
	for _, b := range c.blocked {
		if c.clock.Before(b.until) && covers(b.pattern, o) {
			return b.code
		}
	}
	return ""
}

// depth returns the spare capacity of a spot pool, in [0, 1). It changes every six hours, like real pools, whose
// prices hardly change.
func (c *Cloud) depth(o event.Offering) float64 {
	if c.options.EvenSpot {
		return 0.5
	}
	epoch := c.clock.Truncate(6 * time.Hour).UTC().Format(time.RFC3339)
	return c.share("depth", o.InstanceType, o.Zone, o.CapacityType, epoch)
}
