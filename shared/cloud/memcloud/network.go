package memcloud

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

// subnet is 10.<ordinal>.0.0/16, of which size addresses may be leased.
type subnet struct {
	cloud.Subnet
	ordinal int
	size    int
	taken   map[int]bool
	cursor  int
}

// firstAddress is the first address that AWS does not reserve.
const firstAddress = 4

// AddSubnet adds a subnet with FreeIPs addresses. An empty ID is generated.
func (c *Cloud) AddSubnet(s cloud.Subnet) cloud.Subnet {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.ID == "" {
		s.ID = c.identify("subnet")
	}
	s.Tags = maps.Clone(s.Tags)
	c.subnets[s.ID] = &subnet{
		Subnet: s, ordinal: len(c.subnets), size: min(s.FreeIPs, 1<<16-8), taken: map[int]bool{},
	}
	return s
}

// SetFreeIPs makes n addresses free, as if other users of the subnet changed.
func (c *Cloud) SetFreeIPs(id string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.subnets[id]; s != nil {
		s.size = min(len(s.taken)+n, 1<<16-8)
	}
}

func (s *subnet) full() bool { return len(s.taken) >= s.size }

// lease takes the next free address, or the lowest. The search covers more addresses than can be leased, so it ends.
func (s *subnet) lease(lowest bool) int {
	const span = 1<<16 - 8
	start := s.cursor
	if lowest {
		start = 0
	}
	for n := range span {
		at := (start+n)%span + firstAddress
		if !s.taken[at] {
			s.taken[at] = true
			s.cursor = at - firstAddress + 1
			return at
		}
	}
	panic("memcloud: no free address in the subnet")
}

func (s *subnet) free(address int) { delete(s.taken, address) }

// DescribeSubnets returns the subnets that match any selector, by id.
func (c *Cloud) DescribeSubnets(ctx context.Context, selectors []cloud.Selector) ([]cloud.Subnet, error) {
	var out []cloud.Subnet
	err := c.call(ctx, DescribeSubnets, func(time.Time) error {
		for _, id := range slices.Sorted(maps.Keys(c.subnets)) {
			s := c.subnets[id]
			if c.finds(selectors, thing{id: id, name: s.Tags["Name"], tags: s.Tags}) {
				shown := s.Subnet
				shown.FreeIPs = max(0, s.size-len(s.taken))
				shown.Tags = maps.Clone(s.Tags)
				out = append(out, shown)
			}
		}
		return nil
	})
	return out, err
}

// AddSecurityGroup adds a security group. An empty ID is generated.
func (c *Cloud) AddSecurityGroup(g cloud.SecurityGroup) cloud.SecurityGroup {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.ID == "" {
		g.ID = c.identify("sg")
	}
	g.Tags = maps.Clone(g.Tags)
	c.groups = append(c.groups, g)
	return g
}

// DescribeSecurityGroups returns the groups that match any selector, in the order in which they were added.
func (c *Cloud) DescribeSecurityGroups(ctx context.Context, selectors []cloud.Selector) ([]cloud.SecurityGroup, error) {
	var out []cloud.SecurityGroup
	err := c.call(ctx, DescribeSecurityGroups, func(time.Time) error {
		for _, g := range c.groups {
			if c.finds(selectors, thing{id: g.ID, name: g.Name, tags: g.Tags}) {
				g.Tags = maps.Clone(g.Tags)
				out = append(out, g)
			}
		}
		return nil
	})
	return out, err
}
