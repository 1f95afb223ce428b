package memcloud

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

// Impair makes the status checks of an instance fail since the time.
func (c *Cloud) Impair(id string, since time.Time) {
	c.do(func(time.Time) { c.status(id).Impaired = since })
}

// Recover makes the status checks of an instance pass again.
func (c *Cloud) Recover(id string) { c.Impair(id, time.Time{}) }

// Plan announces maintenance: as a scheduled event of the instance (with
// EC2's event codes), and as an event of AWS Health.
func (c *Cloud) Plan(id, code string, notBefore time.Time) {
	c.do(func(time.Time) {
		s := c.status(id)
		s.Events = append(s.Events, cloud.ScheduledEvent{Code: code, NotBefore: notBefore})
		c.emit(c.scheduledChange(id, code, notBefore), "health", id, code)
	})
}

func (c *Cloud) status(id string) *cloud.Status {
	if c.health[id] == nil {
		c.health[id] = &cloud.Status{InstanceID: id}
	}
	return c.health[id]
}

// InterruptSpot takes a spot instance back: the warning now, the end two
// minutes later. It reports whether there was a spot instance to take.
func (c *Cloud) InterruptSpot(id string) (warned bool) {
	c.do(func(now time.Time) {
		i := c.known(id)
		if i == nil || i.CapacityType != cloud.Spot || !i.warned.IsZero() || i.ends() {
			return
		}
		warned = true
		i.warned = now.Add(SpotNotice)
		c.schedule(i, i.warned, cloud.ShuttingDown)
		c.emit(c.spotWarning(i), "spot", id)
	})
	return warned
}

// Reclaim takes back an instance of a capacity reservation, in the same way.
func (c *Cloud) Reclaim(id string) (warned bool) {
	c.do(func(now time.Time) {
		i := c.known(id)
		if i == nil || i.CapacityType != cloud.Reserved || !i.warned.IsZero() || i.ends() {
			return
		}
		warned = true
		i.warned = now.Add(SpotNotice)
		c.schedule(i, i.warned, cloud.ShuttingDown)
		c.emit(c.reservationWarning(i), "reservation", id)
	})
	return warned
}

// Rebalance recommends to leave a spot instance, and does nothing else.
func (c *Cloud) Rebalance(id string) (told bool) {
	c.do(func(time.Time) {
		i := c.known(id)
		if i == nil || i.CapacityType != cloud.Spot || i.ends() {
			return
		}
		told = true
		c.emit(c.rebalance(i), "rebalance", id)
	})
	return told
}

// ends reports whether the instance is on its way out or gone.
func (i *instance) ends() bool {
	return i.State == cloud.ShuttingDown || i.State == cloud.Terminated
}
