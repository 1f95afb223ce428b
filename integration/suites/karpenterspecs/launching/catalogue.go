package launching

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// newCatalogue returns what EC2 offers: the hardware as Joist reads it from EC2, and the offerings of Karpenter's types
// with their prices. Unavailable has the capacity reservations that Karpenter does not use at present.
func (s *FakeLauncher) newCatalogue(ctx context.Context, r ClaimLaunch) (catalog.Catalogue, []planning.Unavailable, error) {
	hardware, err := s.readHardware(ctx)
	if err != nil {
		return catalog.Catalogue{}, nil, err
	}
	out := catalog.Catalogue{Region: Region, Partition: catalog.Partition(Region), AsOf: time.Now(), Cluster: r.Cluster}
	var unavailable []planning.Unavailable
	for _, t := range r.Types {
		i := slices.IndexFunc(hardware, func(h catalog.InstanceType) bool { return h.Name == t.Name })
		if i < 0 {
			continue
		}
		one := hardware[i]
		one.Offerings = convertOfferings(t)
		out.Types = append(out.Types, one)
		for _, o := range t.Offerings {
			if id := o.ReservationID(); id != "" {
				out.Reservations = append(out.Reservations, catalog.ReservationCount{ID: id, Count: int64(o.ReservationCapacity)})
				if !o.Available {
					unavailable = append(unavailable, planning.Unavailable{Reservation: id, Until: time.Now().Add(time.Hour)})
				}
			}
		}
	}
	slices.SortFunc(out.Types, func(a, b catalog.InstanceType) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(out.Reservations, func(a, b catalog.ReservationCount) int { return strings.Compare(a.ID, b.ID) })
	out.Reservations = slices.CompactFunc(out.Reservations, func(a, b catalog.ReservationCount) bool { return a.ID == b.ID })
	return out, unavailable, s.addAccount(ctx, r, &out)
}

// readHardware reads the instance types once in a spec.
func (s *FakeLauncher) readHardware(ctx context.Context) ([]catalog.InstanceType, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hardware != nil {
		return s.hardware, nil
	}
	described, err := s.cloud.InstanceTypes(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the instance types: %w", err)
	}
	for _, d := range described {
		if t, ok := catalog.ConvertType(d); ok {
			s.hardware = append(s.hardware, t)
		}
	}
	return s.hardware, nil
}

// addAccount adds the free addresses of the class's subnets, and the placement groups if the class selects one.
func (s *FakeLauncher) addAccount(ctx context.Context, r ClaimLaunch, out *catalog.Catalogue) error {
	for id, free := range r.FreeAddresses {
		out.Subnets = append(out.Subnets, catalog.SubnetCount{ID: id, FreeIPs: int64(free)})
	}
	slices.SortFunc(out.Subnets, func(a, b catalog.SubnetCount) int { return strings.Compare(a.ID, b.ID) })
	if r.NodeClass.Spec.PlacementGroupSelector == nil {
		return nil
	}
	groups, err := s.cloud.DescribePlacementGroups(ctx)
	if err != nil {
		return fmt.Errorf("reading the placement groups: %w", err)
	}
	for _, g := range groups {
		out.PlacementGroups = append(out.PlacementGroups, catalog.PlacementGroup{ID: g.ID, Name: g.Name, Strategy: g.Strategy, Partitions: int64(g.Partitions)})
	}
	return nil
}

// convertOfferings returns the offerings of a type, one for each zone and capacity type. Reservations are in the status
// of the class.
func convertOfferings(t *cloudprovider.InstanceType) []catalog.Offering {
	var out []catalog.Offering
	for _, o := range t.Offerings {
		if o.CapacityType() == karpenter.CapacityTypeReserved {
			continue
		}
		one := catalog.Offering{Zone: o.Zone(), CapacityType: o.CapacityType(), PricePerHour: o.Price, Available: o.Available}
		if o.Requirements.Has(awsv1.LabelTopologyZoneID) {
			one.ZoneID = o.Requirements.Get(awsv1.LabelTopologyZoneID).Any()
		}
		same := func(a catalog.Offering) bool { return a.Zone == one.Zone && a.CapacityType == one.CapacityType }
		if i := slices.IndexFunc(out, same); i >= 0 { // Karpenter has one for each partition of a placement group.
			out[i].Available = out[i].Available || one.Available
			continue
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b catalog.Offering) int {
		return strings.Compare(a.Zone+a.CapacityType, b.Zone+b.CapacityType)
	})
	return out
}
