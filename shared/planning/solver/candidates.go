package solver

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// Stages of candidates inside a tier of pools, in the order in which they are tried: reserved
// capacity is already paid for, and exotic types are expensive for ordinary pods.
const (
	reservedStage = iota
	plainStage
	exoticStage
	stageCount
)

// candidateBuilder is the state for building the candidates of one pool.
type candidateBuilder struct {
	pool *pool
	tier int
	// reservations maps reservation ids to supply numbers, across all pools.
	reservations map[string]int
	arena        []int64
	offerings    []packing.ZonePrice
}

// allocateCandidates finds the types that each pool allows, and allocates the candidates.
func (w *state) allocateCandidates(stock instancetypes.InstanceTypes) {
	count := 0
	for _, p := range w.pools {
		if p.refusal.Rule == "" {
			p.types = w.findTypeIndex(stock.TypesForPool(p.name, p.class))
			p.allowedTypes = p.types.filterTypes(sortRules(p.requirements))
			count += len(p.allowedTypes) * len(p.variants)
		}
	}
	w.candidates, w.problem.Candidates = make([]candidate, 0, count), make([]packing.CandidateType, 0, count)
}

// addCandidates adds the candidates of the types that the pool allows.
func (w *state) addCandidates(p *pool, tier int, supplies map[string]int) {
	count := len(p.allowedTypes)
	s := &candidateBuilder{
		pool: p, tier: tier, reservations: supplies,
		arena: make([]int64, 0, count*len(w.resources.names)), offerings: make([]packing.ZonePrice, 0, 6*count),
	}
	p.firstCandidate = len(w.candidates)
	for _, i := range p.allowedTypes {
		w.addType(s, i)
	}
	p.endCandidate = len(w.candidates)
}

// addType adds the candidates of one type: one without reservation, and one for each reservation.
func (w *state) addType(s *candidateBuilder, i int) {
	p, t, at := s.pool, &s.pool.types.types[i], len(s.arena)
	s.arena = append(s.arena, p.types.allocatableOf(w.resources, i)...) // Daemons are subtracted for each pool separately.
	plain := packing.CandidateType{Pool: p.index, Stage: s.tier*stageCount + plainStage, Allocatable: s.arena[at:len(s.arena):len(s.arena)]}
	if len(p.object.Spec.Limits) > 0 || p.priced {
		plain.Capacity = p.types.capacityOf(w.resources, i)
	}
	if t.Exotic && !p.requirements.HasMinValues() { // Exotic types count for minValues too.
		plain.Stage = s.tier*stageCount + exoticStage
	}
	plain.MixedStage = s.tier*stageCount + plainStage
	known, from, overlaid := false, len(s.offerings), uint64(0)
	for j := range t.Offerings {
		o := &t.Offerings[j]
		n, ok := w.indexZoneCapacityType(&o.PricedOffering)
		if !ok || !p.allowsOffering(n, o.PricedOffering) {
			continue
		}
		known = known || !o.Unpriced
		switch {
		case o.IsFullReservation():
			p.fullReservations = append(p.fullReservations, fullReservation{t, o})
		case !o.IsBuyable():
		case o.Reservation != "":
			w.addReservedCandidates(s, candidate{pool: p, instanceType: t, typeIndex: i}, o, n, plain)
		default:
			s.offerings = append(s.offerings, packing.ZonePrice{ZoneCapacityType: n, Price: o.PricePerHour})
			if o.PricedByOverlay {
				overlaid |= 1 << n
			}
			plain.Flexible = max(plain.Flexible, wantedTypeCount(o.CapacityType))
		}
	}
	if plain.Prices = s.offerings[from:len(s.offerings):len(s.offerings)]; len(plain.Prices) > 0 {
		w.addPlainCandidates(p, candidate{pool: p, instanceType: t, typeIndex: i, labels: t.Labels, overlaidOfferings: overlaid}, plain)
	} else if known {
		p.unavailableTypes++
	}
}

// wantedTypeCount returns how many types a launch should offer: 15 for spot, whose capacity varies,
// and five otherwise.
func wantedTypeCount(capacityType string) int {
	if capacityType == karpenter.CapacityTypeSpot {
		return 15
	}
	return 5
}

func (w *state) addReservedCandidates(s *candidateBuilder, c candidate, o *instancetypes.InstanceOffering, zoneCapacityType int, plain packing.CandidateType) {
	plain.Flexible = 0
	if s.reservations[o.Reservation] == 0 {
		w.problem.Reservations = append(w.problem.Reservations, o.ReservationCapacity)
		s.reservations[o.Reservation] = len(w.problem.Reservations)
	}
	plain.Stage, plain.Reservation = s.tier*stageCount+reservedStage, s.reservations[o.Reservation]
	plain.MixedStage = plain.Stage
	plain.Prices = []packing.ZonePrice{{ZoneCapacityType: zoneCapacityType, Price: o.PricePerHour}}
	if o.PricedByOverlay {
		c.overlaidOfferings = 1 << zoneCapacityType
	}
	if s.pool.priced {
		plain.Capacity = w.priceLimits.addHighestPrice(plain.Capacity, plain.Prices)
	}
	c.labels, c.reservation = mergeLabels(c.instanceType.Labels, o.Labels), o.Reservation
	w.addVariantCandidates(s.pool, c, plain)
}

func (w *state) addVariantCandidates(p *pool, c candidate, of packing.CandidateType) {
	for v := range p.variants {
		c.variant = v
		w.candidates = append(w.candidates, c)
		if v > 0 || c.reservation != "" {
			of.Allocatable = slices.Clone(of.Allocatable) // Daemons are subtracted from each separately.
		}
		w.problem.Candidates = append(w.problem.Candidates, of)
	}
}
