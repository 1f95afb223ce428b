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

// Plan announces maintenance: as a scheduled event of the instance (with EC2's event codes), and as an AWS Health
// event.
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

// InterruptSpot interrupts a spot instance: the warning now, the termination two minutes later. It reports whether
// there was a spot instance to interrupt.
func (c *Cloud) InterruptSpot(id string) (warned bool) {
	return c.interrupt(id, cloud.Spot, "spot", c.spotWarning)
}

// Reclaim interrupts an instance in a capacity reservation in the same way.
func (c *Cloud) Reclaim(id string) (warned bool) {
	return c.interrupt(id, cloud.Reserved, "reservation", c.reservationWarning)
}

// interrupt warns an instance of the capacity type and schedules its termination.
func (c *Cloud) interrupt(id, capacityType, about string, warning func(*instance) raw) (warned bool) {
	c.do(func(now time.Time) {
		i := c.known(id)
		if i == nil || i.CapacityType != capacityType || !i.warned.IsZero() || i.ends() {
			return
		}
		warned = true
		i.warned = now.Add(SpotNotice)
		c.schedule(i, i.warned, cloud.ShuttingDown)
		c.emit(warning(i), about, id)
	})
	return warned
}

// Rebalance sends a rebalance recommendation for a spot instance, without any other effect.
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

// ends reports whether the instance is shutting down or terminated.
func (i *instance) ends() bool {
	return i.State == cloud.ShuttingDown || i.State == cloud.Terminated
}
