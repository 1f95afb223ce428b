package solver

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// Kinds of columns inside of a tier of pools, in the order of trying: reserved
// capacity is paid for already, and exotic types are dear for what
// ordinary pods use of them.
const (
	reservedKind = iota
	plainKind
	exoticKind
	kinds
)

// shelves are what the columns of one pool are made with.
type shelves struct {
	pool *pool
	tier int
	// supplies number the reservations, of all pools together.
	supplies map[string]int
	arena    []int64
	offers   []packing.Offer
}

// reserve finds the types that suit each pool, and makes room for all their columns.
func (w *world) reserve(stock instancetypes.InstanceTypes) {
	count := 0
	for _, p := range w.pools {
		if p.refusal.Rule == "" {
			p.types = w.index(stock.TypesForPool(p.name, p.class))
			p.allowed = p.types.allowed(rulesOf(p.base))
			count += len(p.allowed) * len(p.variants)
		}
	}
	w.columns, w.problem.Columns = make([]column, 0, count), make([]packing.Column, 0, count)
}

// addColumns lists the instance types that suit the pool.
func (w *world) addColumns(p *pool, tier int, supplies map[string]int) {
	count := len(p.allowed)
	s := &shelves{
		pool: p, tier: tier, supplies: supplies,
		arena: make([]int64, 0, count*len(w.axis.names)), offers: make([]packing.Offer, 0, 6*count),
	}
	p.from = len(w.columns)
	for _, i := range p.allowed {
		w.addType(s, i)
	}
	p.to = len(w.columns)
}

// addType adds the columns of one type: an ordinary one, and one for each
// reservation.
func (w *world) addType(s *shelves, i int) {
	p, t, at := s.pool, &s.pool.types.types[i], len(s.arena)
	s.arena = append(s.arena, p.types.roomOf(w.axis, i)...) // Daemons are taken off each pool's on its own.
	plain := packing.Column{Pool: p.index, Stage: s.tier*kinds + plainKind, Room: s.arena[at:len(s.arena):len(s.arena)]}
	if len(p.object.Spec.Limits) > 0 || p.priced {
		plain.Capacity = p.types.capacityOf(w.axis, i)
	}
	if t.Exotic && !p.base.HasMinValues() { // Variety counts exotic types as well.
		plain.Stage = s.tier*kinds + exoticKind
	}
	plain.Mixed = s.tier*kinds + plainKind
	known, from, overlaid := false, len(s.offers), uint64(0)
	for j := range t.Offerings {
		o := &t.Offerings[j]
		n, ok := w.plane(&o.PricedOffering)
		if !ok || !p.buys(n, o.PricedOffering) {
			continue
		}
		known = known || !o.Unpriced
		switch {
		case !o.IsBuyable():
		case o.Reservation != "":
			w.addReserved(s, column{pool: p, typ: t, at: i}, o, n, plain)
		default:
			s.offers = append(s.offers, packing.Offer{Plane: n, Price: o.PricePerHour})
			if o.PricedByOverlay {
				overlaid |= 1 << n
			}
			plain.Flexible = max(plain.Flexible, flexibility(o.CapacityType))
		}
	}
	if plain.Offers = s.offers[from:len(s.offers):len(s.offers)]; len(plain.Offers) > 0 {
		w.addPlain(p, column{pool: p, typ: t, at: i, labels: t.Labels, overlaid: overlaid}, plain)
	} else if known {
		p.soldOut++
	}
}

// flexibility is how many types a launch should have to choose from: 15 where spot
// capacity comes and goes, and five elsewhere.
func flexibility(capacityType string) int {
	if capacityType == karpenter.CapacityTypeSpot {
		return 15
	}
	return 5
}

func (w *world) addReserved(s *shelves, c column, o *instancetypes.TypeOffering, plane int, plain packing.Column) {
	if o.ReservationCapacity <= 0 {
		return
	}
	plain.Flexible = 0
	if s.supplies[o.Reservation] == 0 {
		w.problem.Supplies = append(w.problem.Supplies, o.ReservationCapacity)
		s.supplies[o.Reservation] = len(w.problem.Supplies)
	}
	plain.Stage, plain.Supply = s.tier*kinds+reservedKind, s.supplies[o.Reservation]
	plain.Mixed = plain.Stage
	plain.Offers = []packing.Offer{{Plane: plane, Price: o.PricePerHour}}
	if o.PricedByOverlay {
		c.overlaid = 1 << plane
	}
	if s.pool.priced {
		plain.Capacity = w.money.priced(plain.Capacity, plain.Offers)
	}
	c.labels, c.reservation = merged(c.typ.Labels, o.Labels), o.Reservation
	w.addVariants(s.pool, c, plain)
}

func (w *world) addVariants(p *pool, c column, of packing.Column) {
	for v := range p.variants {
		c.variant = v
		w.columns = append(w.columns, c)
		if v > 0 || c.reservation != "" {
			of.Room = slices.Clone(of.Room) // Daemons are taken off each on its own.
		}
		w.problem.Columns = append(w.problem.Columns, of)
	}
}
