package memcloud

import (
	"container/heap"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

// step is a scheduled change of state.
type step struct {
	at    time.Time
	order int
	of    *instance
	to    cloud.State
}

// steps is a heap, the earliest first.
type steps []step

func (s steps) Len() int      { return len(s) }
func (s steps) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s steps) Less(i, j int) bool {
	if !s[i].at.Equal(s[j].at) {
		return s[i].at.Before(s[j].at)
	}
	return s[i].order < s[j].order
}

// Push implements heap.Interface.
func (s *steps) Push(x any) { *s = append(*s, x.(step)) }

// Pop implements heap.Interface.
func (s *steps) Pop() any {
	old := *s
	last := old[len(old)-1]
	*s = old[:len(old)-1]
	return last
}

// from lists the states from which a state can be reached; a step from another state is stale and has no effect.
var from = map[cloud.State][]cloud.State{
	cloud.Running:      {cloud.Pending},
	cloud.Stopping:     {cloud.Pending, cloud.Running},
	cloud.Stopped:      {cloud.Stopping},
	cloud.ShuttingDown: {cloud.Pending, cloud.Running, cloud.Stopping, cloud.Stopped},
	cloud.Terminated:   {cloud.ShuttingDown},
}

func (s step) stale() bool {
	return !slices.Contains(from[s.to], s.of.State)
}

func (c *Cloud) schedule(i *instance, at time.Time, to cloud.State) {
	c.serials["step"]++
	heap.Push(&c.steps, step{at, int(c.serials["step"]), i, to})
}

// NextChange returns when the next instance changes its state by itself; zero if none will.
func (c *Cloud) NextChange() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prune()
	if len(c.steps) == 0 {
		return time.Time{}
	}
	return c.steps[0].at
}

func (c *Cloud) prune() {
	for len(c.steps) > 0 && c.steps[0].stale() {
		heap.Pop(&c.steps)
	}
}

// advance applies all changes that are due, each at its own time, and forgets old instances like EC2.
func (c *Cloud) advance(now time.Time) {
	if now.Before(c.clock) {
		now = c.clock
	}
	for c.prune(); len(c.steps) > 0 && !c.steps[0].at.After(now); c.prune() {
		s := heap.Pop(&c.steps).(step)
		c.clock = s.at
		c.enter(s.of, s.to)
	}
	c.clock = now
	c.forget()
}

// enter moves an instance into a state at the current time, with all consequences.
func (c *Cloud) enter(i *instance, to cloud.State) {
	i.State = to
	c.announce(i, to)
	switch to {
	case cloud.Running:
		i.running = c.clock
		c.booted = append(c.booted, Boot{Instance: i.record().Instance, UserData: i.template.UserData, Template: i.template, At: c.clock})
	case cloud.Stopping:
		c.stopPaying(i)
		c.schedule(i, c.clock.Add(c.options.Shutdown), cloud.Stopped)
	case cloud.ShuttingDown:
		c.stopPaying(i)
		c.schedule(i, c.clock.Add(c.options.Shutdown), cloud.Terminated)
	case cloud.Terminated:
		i.gone = c.clock
		c.leaving = append(c.leaving, i)
		c.release(i)
	}
}

// release frees the resources of a terminated instance.
func (c *Cloud) release(i *instance) {
	i.subnet.free(i.address)
	if offer := c.offers[i.offering]; offer.counted {
		offer.free++
	}
	delete(c.health, i.ID)
}

// announce records when Describe begins to show the state, and sends the event. A state is never shown before its
// predecessor.
func (c *Cloud) announce(i *instance, to cloud.State) {
	shown := c.clock.Add(c.drawLag("state", i.ID, string(to)))
	if n := len(i.history); n > 0 && shown.Before(i.history[n-1].shown) {
		shown = i.history[n-1].shown
	}
	i.history = append(i.history, moment{to, shown})
	c.emit(c.stateChange(i, to), "state", i.ID, string(to))
}

// forget removes instances that were terminated an hour ago from the API. Records keeps them.
func (c *Cloud) forget() {
	n := 0
	for n < len(c.leaving) && c.clock.Sub(c.leaving[n].gone) >= Remembered {
		c.leaving[n].forgotten = true
		n++
	}
	if n == 0 {
		return
	}
	c.leaving = c.leaving[n:]
	c.existing = slices.DeleteFunc(c.existing, func(i *instance) bool { return i.forgotten })
}

// known returns an instance that EC2 still returns, or nil.
func (c *Cloud) known(id string) *instance {
	i := c.instances[id]
	if i == nil || i.forgotten {
		return nil
	}
	return i
}

// Boot is an instance that has started, with the data that a kubelet needs.
type Boot struct {
	cloud.Instance
	UserData string
	Template cloud.Template
	At       time.Time
}

// Booted returns the instances that started since the last call, in order, including the instances that have since ended.
func (c *Cloud) Booted() []Boot {
	var out []Boot
	c.do(func(time.Time) {
		out = c.booted
		c.booted = nil
	})
	return out
}

// Fail terminates an instance like a broken host: without a request or a warning. It reports whether there was one to
// terminate.
func (c *Cloud) Fail(id string) bool { return c.move(id, cloud.ShuttingDown) }

// Stop stops an instance, as its owner or AWS may.
func (c *Cloud) Stop(id string) bool { return c.move(id, cloud.Stopping) }

func (c *Cloud) move(id string, to cloud.State) (moved bool) {
	c.do(func(now time.Time) {
		i := c.known(id)
		if i == nil || (step{of: i, to: to}).stale() {
			return
		}
		moved = true
		c.enter(i, to)
	})
	return moved
}
