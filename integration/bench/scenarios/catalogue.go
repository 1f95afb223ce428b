package scenarios

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// TypesFile is the name of the file of instance types, in the scenarios' folder.
const TypesFile = "catalog.json"

const region = "us-east-1"

// Zones returns the scenarios' zones: the three with the most offerings in the catalogue.
func Zones() []string { return []string{"us-east-1b", "us-east-1d", "us-east-1f"} }

// Types returns the embedded catalogue's types in Zones, for a class with Amazon Linux
// 2023 and default settings.
func Types() ([]Type, error) {
	cat, err := catalog.EmbeddedCatalogue(region)
	if err != nil {
		return nil, fmt.Errorf("reading the instance types for scenarios: %w", err)
	}
	var out []Type
	for _, t := range cat.Types {
		one := newType(t)
		if len(one.Offerings) > 0 {
			out = append(out, one)
		}
	}
	return out, nil
}

func newType(t catalog.InstanceType) Type {
	capacity, overhead, _ := catalog.NodeResources(t, catalog.NodeConfig{AMIFamily: karpenter.AMIFamilyAL2023})
	out := Type{Name: t.Name, Arch: t.Arch, OS: []string{catalog.Linux}, Capacity: capacity, Overhead: overhead}
	out.Labels = catalog.TypeLabels(t)
	// These labels follow from other fields of the document.
	maps.DeleteFunc(out.Labels, func(key, _ string) bool {
		return key == corev1.LabelInstanceTypeStable || key == corev1.LabelArchStable || key == corev1.LabelOSStable
	})
	out.Labels[corev1.LabelTopologyRegion] = region
	for _, o := range t.Offerings {
		if o.HasPrice() && slices.Contains(Zones(), o.Zone) {
			out.Offerings = append(out.Offerings, Offering{o.Zone, o.ZoneID, o.CapacityType, price(t, o), true})
		}
	}
	return out
}

// price returns the catalogue's price, except for spot: the catalogue has only the
// region's average, while a zone is usually some percent more or less expensive, but
// never above on-demand. The difference is derived from the names.
func price(t catalog.InstanceType, o catalog.Offering) float64 {
	if o.CapacityType != catalog.Spot {
		return o.PricePerHour
	}
	const apart, steps, decimals = 0.15, 1001, 1e6
	hash := fnv.New64a()
	hash.Write([]byte(t.Name + "/" + o.Zone))
	factor := 1 - apart + 2*apart*float64(hash.Sum64()%steps)/(steps-1)
	spot := math.Round(o.PricePerHour*factor*decimals) / decimals
	for _, other := range t.Offerings {
		if other.Zone == o.Zone && other.CapacityType == catalog.OnDemand && other.HasPrice() {
			spot = min(spot, other.PricePerHour)
		}
	}
	return spot
}
