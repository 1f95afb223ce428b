package memcloud

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Terminate terminates the instances that EC2 knows, and ignores the others.
func (c *Cloud) Terminate(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return c.call(ctx, TerminateInstances, func(now time.Time) error {
		return c.terminate(slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return c.shown(id) == nil }))
	})
}

// TerminateStrictly behaves like EC2: with one unknown id, no instance is terminated.
func (c *Cloud) TerminateStrictly(ctx context.Context, ids []string) error {
	return c.call(ctx, TerminateInstances, func(time.Time) error {
		if err := c.allShown(ids); err != nil {
			return err
		}
		return c.terminate(ids)
	})
}

// Protect enables or disables termination protection of an instance.
func (c *Cloud) Protect(id string, on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.instances[id].protected = on
}

// terminate records only the instances whose state it changed, because it is idempotent. If one is protected, none is
// terminated.
func (c *Cloud) terminate(ids []string) error {
	for _, id := range ids {
		if c.instances[id].protected {
			return refuse(fault.Invalid, "OperationNotPermitted", "The instance '%s' may not be terminated. "+
				"Modify its 'disableApiTermination' instance attribute and try again.", id)
		}
	}
	var ended []string
	for _, id := range ids {
		i := c.instances[id]
		if (step{of: i, to: cloud.ShuttingDown}).stale() {
			continue
		}
		c.enter(i, cloud.ShuttingDown)
		ended = append(ended, id)
	}
	if len(ended) > 0 {
		c.note(TerminateInstances, "", "", ended...)
	}
	return nil
}

// Reboot reboots a running instance. Reboots returns it once.
func (c *Cloud) Reboot(ctx context.Context, id string) error {
	return c.call(ctx, RebootInstances, func(time.Time) error {
		if err := c.allShown([]string{id}); err != nil {
			return err
		}
		if c.instances[id].State != cloud.Running {
			return refuse(fault.Rejected, "IncorrectState", "The instance '%s' is not in a state from which it can be rebooted.", id)
		}
		c.rebooted = append(c.rebooted, id)
		c.note(RebootInstances, "", "", id)
		return nil
	})
}

// Reboots returns the ids of the instances that were rebooted since the last call, in order.
func (c *Cloud) Reboots() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.rebooted
	c.rebooted = nil
	return out
}

// Tag sets tags; with one unknown id, no instance is tagged.
func (c *Cloud) Tag(ctx context.Context, ids []string, tags map[string]string) error {
	if len(ids) == 0 || len(tags) == 0 {
		return nil
	}
	return c.call(ctx, CreateTags, func(now time.Time) error {
		if err := c.allShown(ids); err != nil {
			return err
		}
		for _, id := range ids {
			i := c.instances[id]
			shown := now.Add(c.drawLag("tags", id, c.serial("tags")))
			i.writes = append(i.writes, tagWrite{maps.Clone(tags), shown})
			i.Tags = maps.Clone(i.Tags) // Records share the old map.
			maps.Copy(i.Tags, tags)
		}
		c.note(CreateTags, "", "", ids...)
		return nil
	})
}

// shown returns an instance that calls by id find now, or nil: until Describe shows it, other calls do not know it
// either.
func (c *Cloud) shown(id string) *instance {
	i := c.known(id)
	if i == nil || c.clock.Before(i.visible) {
		return nil
	}
	return i
}

func (c *Cloud) allShown(ids []string) error {
	var missing []string
	for _, id := range ids {
		if c.shown(id) == nil {
			missing = append(missing, id)
		}
	}
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return refuse(fault.Missing, "InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", missing[0])
	}
	return refuse(fault.Missing, "InvalidInstanceID.NotFound", "The instance IDs '%s' do not exist", strings.Join(missing, ", "))
}
