package memcloud

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

// DescribeInstances returns the visible instances, in the order of launch.
func (c *Cloud) DescribeInstances(ctx context.Context, filter cloud.InstanceFilter) ([]cloud.Instance, error) {
	var out []cloud.Instance
	err := c.call(ctx, DescribeInstances, func(now time.Time) error {
		for _, i := range c.candidatesFor(filter) {
			if i.visible.After(now) {
				continue
			}
			if seen := i.seen(now); matches(filter, seen) {
				out = append(out, seen)
			}
		}
		return nil
	})
	return out, err
}

func (c *Cloud) candidatesFor(filter cloud.InstanceFilter) []*instance {
	if len(filter.IDs) == 0 {
		return c.existing
	}
	var out []*instance
	for _, id := range filter.IDs {
		if i := c.known(id); i != nil && !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	return out
}

// seen returns the instance as Describe shows it: possibly with an older state and older tags.
func (i *instance) seen(now time.Time) cloud.Instance {
	out := i.Instance
	out.State = i.history[0].state
	for _, m := range i.history {
		if !m.shown.After(now) {
			out.State = m.state
		}
	}
	out.Tags = maps.Clone(i.born)
	for _, w := range i.writes {
		if !w.shown.After(now) {
			maps.Copy(out.Tags, w.tags)
		}
	}
	if out.State == cloud.Terminated {
		// EC2 clears the addresses of terminated instances.
		out.SubnetID, out.PrivateDNS = "", ""
	}
	return out
}

func matches(filter cloud.InstanceFilter, i cloud.Instance) bool {
	if len(filter.States) > 0 && !slices.Contains(filter.States, i.State) {
		return false
	}
	for key, want := range filter.Tags {
		if value, ok := i.Tags[key]; !ok || want != "" && want != value {
			return false
		}
	}
	return true
}

// DescribeStatus returns the running instances with failing checks or scheduled events.
func (c *Cloud) DescribeStatus(ctx context.Context) ([]cloud.Status, error) {
	var out []cloud.Status
	err := c.call(ctx, DescribeStatus, func(time.Time) error {
		for _, i := range c.existing {
			s := c.health[i.ID]
			if s == nil || i.State != cloud.Running {
				continue
			}
			if isImpaired := !s.Impaired.IsZero() || s.Undated; isImpaired || len(s.Events) > 0 {
				status := *s
				status.Events = slices.Clone(s.Events)
				out = append(out, status)
			}
		}
		return nil
	})
	return out, err
}
