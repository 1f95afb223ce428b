package memcloud

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

// stopPaying adds an ended instance's cost to the total. EC2 charges from running until shutting down, by the second.
func (c *Cloud) stopPaying(i *instance) {
	if !i.ended.IsZero() {
		return
	}
	i.ended = c.clock
	c.spent += i.cost()
}

// cost returns the cost of an ended instance in dollars.
func (i *instance) cost() float64 {
	if i.running.IsZero() {
		return 0
	}
	return i.price * i.ended.Sub(i.running).Hours()
}

// DollarsPerHour returns the price per hour of all pending and running instances.
func (c *Cloud) DollarsPerHour() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var sum float64
	for _, i := range c.existing {
		if i.State == cloud.Pending || i.State == cloud.Running {
			sum += i.price
		}
	}
	return sum
}

// Dollars returns the total cost until now.
func (c *Cloud) Dollars() float64 {
	var sum float64
	c.do(func(now time.Time) {
		sum = c.spent
		for _, i := range c.existing {
			if i.State == cloud.Running {
				sum += i.price * now.Sub(i.running).Hours()
			}
		}
	})
	return sum
}
