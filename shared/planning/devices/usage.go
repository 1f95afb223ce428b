package devices

import "maps"

// budget identifies an amount that several allocations share: a counter of a pool, or a capacity of a
// device.
type budget struct {
	// of is a pool, which has no device name, for a counter, and a device for a capacity.
	of DeviceKey
	// set is the counter set; empty for a capacity.
	set, name string
}

// use is what a site takes if it becomes one instance type.
type use struct {
	devices map[DeviceKey]bool
	amounts map[budget]quantity
}

func newUse() *use { return &use{map[DeviceKey]bool{}, map[budget]quantity{}} }

func (u *use) add(other *use) {
	maps.Copy(u.devices, other.devices)
	for key, amount := range other.amounts {
		sum := u.amounts[key]
		sum.Add(amount)
		u.amounts[key] = sum
	}
}

// usage is what allocations take.
type usage struct {
	// allocated are the published devices that claims of the cluster hold alone, and amounts what they
	// take of budgets.
	allocated map[DeviceKey]bool
	amounts   map[budget]quantity
	// sites are the committed allocations by site and instance type.
	sites map[string]map[string]*use
	// holders are the sites of committed published devices. held is the sum of what the sites take of
	// published budgets, each the maximum over its types.
	holders map[DeviceKey]string
	held    map[budget]quantity
}

func newUsage() *usage {
	return &usage{map[DeviceKey]bool{}, map[budget]quantity{}, map[string]map[string]*use{}, map[DeviceKey]string{}, map[budget]quantity{}}
}

// isTaken reports whether the device is allocated as seen from one type of a site. The node will be of
// one type only, so each of its types may use the same device.
func (u *usage) isTaken(id DeviceKey, site, typeName string) bool {
	if !id.Template {
		holder, held := u.holders[id]
		if u.allocated[id] || held && holder != site {
			return true
		}
	}
	own := u.sites[site][typeName]
	return own != nil && own.devices[id]
}

// usedAmount returns the amount of a budget that is taken, as seen from one type of a site.
func (u *usage) usedAmount(key budget, site, typeName string) quantity {
	if key.of.Template {
		if own := u.sites[site][typeName]; own != nil {
			return own.amounts[key].DeepCopy()
		}
		return quantity{}
	}
	sum := u.amounts[key].DeepCopy()
	sum.Add(u.held[key])
	return sum
}

// commit adds what each type of a site takes.
func (u *usage) commit(site string, byType map[string]*use) {
	u.change(site, func(types map[string]*use) {
		for name, more := range byType {
			if types[name] == nil {
				types[name] = newUse()
			}
			types[name].add(more)
		}
	})
}

// release removes types of a site.
func (u *usage) release(site string, types []string) {
	if u.sites[site] == nil {
		return
	}
	u.change(site, func(of map[string]*use) {
		for _, name := range types {
			delete(of, name)
		}
	})
}

// change changes the types of a site and updates holders and held.
func (u *usage) change(site string, edit func(map[string]*use)) {
	types := u.sites[site]
	if types == nil {
		types = map[string]*use{}
		u.sites[site] = types
	}
	for key, amount := range maximumAmounts(types) {
		sum := u.held[key]
		sum.Sub(amount)
		u.held[key] = sum
	}
	for _, one := range types {
		for id := range one.devices {
			delete(u.holders, id)
		}
	}
	edit(types)
	for key, amount := range maximumAmounts(types) {
		sum := u.held[key]
		sum.Add(amount)
		u.held[key] = sum
	}
	for _, one := range types {
		for id := range one.devices {
			if !id.Template {
				u.holders[id] = site
			}
		}
	}
}

// maximumAmounts returns the maximum of each published budget over the types: which type the node will
// be is not known.
func maximumAmounts(types map[string]*use) map[budget]quantity {
	out := map[budget]quantity{}
	for _, one := range types {
		for key, amount := range one.amounts {
			if most, known := out[key]; !key.of.Template && (!known || amount.Cmp(most) > 0) {
				out[key] = amount.DeepCopy()
			}
		}
	}
	return out
}
