package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Validate checks the invariants in the package comment and reports each type that violates one.
func (c Catalogue) Validate() error {
	var all []error
	if c.Region == "" {
		all = append(all, errors.New("the catalogue has no region"))
	}
	for i, t := range c.Types {
		if i > 0 && c.Types[i-1].Name >= t.Name {
			all = append(all, fmt.Errorf("type %s is not sorted or duplicate", t.Name))
		}
		if err := t.validate(); err != nil {
			all = append(all, fmt.Errorf("type %s: %w", t.Name, err))
		}
	}
	return errors.Join(append(all, c.validateAccount()...)...)
}

// validateAccount checks the account's data.
func (c Catalogue) validateAccount() []error {
	all := checkOrder("reservation", c.Reservations, func(r ReservationCount) string { return r.ID })
	all = append(all, checkOrder("subnet", c.Subnets, func(n SubnetCount) string { return n.ID })...)
	all = append(all, checkOrder("placement group", c.PlacementGroups, func(g PlacementGroup) string { return g.ID })...)
	for _, r := range c.Reservations {
		if r.Count < 0 {
			all = append(all, fmt.Errorf("reservation %s has %d left", r.ID, r.Count))
		}
	}
	for _, n := range c.Subnets {
		if n.FreeIPs < 0 {
			all = append(all, fmt.Errorf("subnet %s has %d addresses left", n.ID, n.FreeIPs))
		}
	}
	return all
}

// checkOrder requires that ids are not empty, sorted and unique.
func checkOrder[T any](what string, list []T, id func(T) string) []error {
	var all []error
	for i, one := range list {
		if id(one) == "" || i > 0 && id(list[i-1]) >= id(one) {
			all = append(all, fmt.Errorf("%s %q is not sorted, duplicate, or empty", what, id(one)))
		}
	}
	return all
}

func (t InstanceType) validate() error {
	switch {
	case t.Arch != AMD64 && t.Arch != ARM64:
		return fmt.Errorf("architecture %q is neither %s nor %s", t.Arch, AMD64, ARM64)
	case t.VCPU <= 0 || t.MemoryMiB <= 0:
		return fmt.Errorf("%d vCPUs and %d MiB are too small for a node", t.VCPU, t.MemoryMiB)
	case !slices.IsSortedFunc(t.Offerings, compareOfferings):
		return errors.New("its offerings are not sorted")
	}
	for i, o := range t.Offerings {
		if i > 0 && compareOfferings(t.Offerings[i-1], o) == 0 && o.CapacityType != Reserved {
			return fmt.Errorf("duplicate offering %s in %s", o.CapacityType, o.Zone)
		}
		if !(o.PricePerHour >= 0) || math.IsInf(o.PricePerHour, 1) || o.Available && !o.HasPrice() {
			return fmt.Errorf("%s in %s has the price %v", o.CapacityType, o.Zone, o.PricePerHour)
		}
		if o.Zone == "" {
			return errors.New("an offering has no zone")
		}
	}
	return nil
}

// HasPrices reports whether any offering has a price.
func (c Catalogue) HasPrices() bool {
	return slices.ContainsFunc(c.Types, func(t InstanceType) bool { return slices.ContainsFunc(t.Offerings, Offering.HasPrice) })
}

// Find returns the type with that name.
func (c Catalogue) Find(name string) (InstanceType, bool) {
	i, found := slices.BinarySearchFunc(c.Types, name, func(t InstanceType, name string) int {
		return cmp.Compare(t.Name, name)
	})
	if !found {
		return InstanceType{}, false
	}
	return c.Types[i], true
}

// Clone returns a copy whose types and offerings may be changed; slices below them are shared.
func (c Catalogue) Clone() Catalogue {
	c.Types = slices.Clone(c.Types)
	for i := range c.Types {
		c.Types[i].Offerings = slices.Clone(c.Types[i].Offerings)
	}
	return c
}
