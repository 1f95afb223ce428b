package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/catalog"
)

// leftOut has the omitted types by reason, for the progress output.
type leftOut map[string][]string

func (l leftOut) lines() []string {
	var lines []string
	for _, reason := range slices.Sorted(maps.Keys(l)) {
		slices.Sort(l[reason])
		lines = append(lines, fmt.Sprintf("%d, %s: %s", len(l[reason]), reason, strings.Join(l[reason], " ")))
	}
	return lines
}

func mergeHardware(src sources) (catalog.Hardware, leftOut) {
	dropped := leftOut{}
	h := catalog.Hardware{Sources: []catalog.Provenance{
		instancesModule.Provenance, limitsModule.Provenance, karpenterModule.Provenance, driverModule.Provenance, ownFacts,
	}}
	for _, i := range src.instances {
		if reason := unfit(i, src); reason != "" {
			dropped[reason] = append(dropped[reason], i.Name)
			continue
		}
		h.Types = append(h.Types, instanceType(i, src))
	}
	slices.SortFunc(h.Types, func(a, b catalog.InstanceType) int { return cmp.Compare(a.Name, b.Name) })
	return h, dropped
}

// unfit returns why a type cannot be a Kubernetes node, or cannot be described, or "".
// Like upstream it requires hardware virtualization and one of the two architectures.
func unfit(i instance, src sources) string {
	_, limited := src.limits[i.Name]
	_, own := networkByFamily[family(i.Name)]
	switch {
	case architecture(i) == "":
		return "runs neither x86_64 nor arm64"
	case len(i.Virtual) == 1 && i.Virtual[0] == "PV":
		return "paravirtual only"
	case !limited && !own && i.VPC == nil:
		return "its network interfaces are unknown"
	}
	return ""
}

func architecture(i instance) string {
	switch {
	case slices.Contains(i.Arch, "x86_64"):
		return catalog.AMD64
	case slices.Contains(i.Arch, "arm64"):
		return catalog.ARM64
	}
	return ""
}

func instanceType(i instance, src sources) catalog.InstanceType {
	limit, limited := src.limits[i.Name]
	t := catalog.InstanceType{
		Name: i.Name, Arch: architecture(i), OS: []string{catalog.Linux},
		VCPU: i.VCPU, MemoryMiB: cmp.Or(memoryMiB[i.Name], int64(math.Round(i.MemoryGiB*1024))),
		Storage: storage(i), Network: network(i, src), EBSMbps: ebsMbps(i), Volumes: src.volumes[i.Name],
		BareMetal:  limit.BareMetal || strings.Contains(i.Name, ".metal"),
		Hypervisor: limit.Hypervisor, Burstable: burstable.MatchString(i.Name),
		CPUManufacturer: manufacturer(i.Processor), ClockMHz: cmp.Or(clockFact(i.Name), clockMHz(i.Clock)),
		EncryptionInTransit: encryptsInTransit(i.Name),
		SupportedUsage:      usage(i),
	}
	if t.Arch == catalog.AMD64 {
		t.OS = append(t.OS, catalog.Windows)
	}
	if !limited && !t.BareMetal {
		t.Hypervisor = "nitro" // The types that the VPC limits lack are the newest, or made for HPC clusters.
	}
	t.GPUs, t.Accelerators = devices(i)
	return t
}

func family(name string) string {
	family, _, _ := strings.Cut(name, ".")
	return family
}

func storage(i instance) catalog.LocalStorage {
	if own, ok := storageByFamily[family(i.Name)]; ok {
		return own
	}
	s := i.Storage
	if s == nil || s.Devices*s.Size == 0 {
		return catalog.LocalStorage{}
	}
	return catalog.LocalStorage{Disks: s.Devices, TotalGB: s.Devices * s.Size, NVMe: s.NVMe}
}

func ebsMbps(i instance) int64 {
	if slices.Contains(ebsOnRequest, family(i.Name)) {
		return 0
	}
	if own, ok := ebsByFamily[family(i.Name)]; ok {
		return own
	}
	if !i.EBS {
		return 0
	}
	return i.EBSMbps
}

func network(i instance, src sources) catalog.Network {
	n, own := networkByFamily[family(i.Name)]
	limit, limited := src.limits[i.Name]
	switch {
	case own:
	case limited:
		n = catalog.Network{ENIs: limit.DefaultCardENIs, IPv4PerENI: limit.IPv4, Cards: limit.Cards}
		if limit.Trunking {
			n.BranchENIs = limit.Branch
		}
	default:
		n = catalog.Network{ENIs: i.VPC.ENIs, IPv4PerENI: i.VPC.IPs, Cards: 1}
	}
	n.EFAs, n.Mbps = efas(i.Name), int64(src.bandwidth[i.Name])
	return n
}

// burstable are the T families.
var burstable = regexp.MustCompile(`^t\d`)

func manufacturer(processor string) string {
	for _, m := range []struct{ in, name string }{
		{"Graviton", "AWS"}, {"AMD", "AMD"}, {"Apple", "Apple"}, {"Intel", "Intel"},
	} {
		if strings.Contains(processor, m.in) {
			return m.name
		}
	}
	return "Intel" // "Variable": the oldest types, which used several generations of Intel processors.
}

var clockDigits = regexp.MustCompile(`[0-9.]+`)

// clockMHz parses "2.5 GHz" and "Up to 3.7 GHz".
func clockMHz(text string) int64 {
	ghz, _ := strconv.ParseFloat(clockDigits.FindString(text), 64)
	return int64(math.Round(ghz * 1000))
}

// usage returns the capacity types of a type: without a spot price in any region it has
// no spot.
func usage(i instance) []string {
	for _, region := range i.Pricing {
		if region.Linux.Spot > 0 {
			return []string{catalog.OnDemand, catalog.Spot}
		}
	}
	return []string{catalog.OnDemand}
}

func mergeMarket(src sources, hardware catalog.Hardware, region string) (catalog.Market, leftOut) {
	m := catalog.Market{
		Region: region, Partition: "aws",
		// The date of the oldest source of prices: the spot prices of every region come
		// from it.
		AsOf: day(instancesModule.Date),
	}
	m.Zones = zones(src, region)
	known := map[string]bool{}
	for _, t := range hardware.Types {
		known[t.Name] = true
	}
	dropped := leftOut{}
	for _, i := range src.instances {
		if !known[i.Name] {
			continue
		}
		p, reason := pricesOf(i, src, region, m.Zones)
		switch {
		case reason != "":
			dropped[reason] = append(dropped[reason], i.Name)
		case p.Zones != 0:
			m.Prices = append(m.Prices, p)
		}
	}
	slices.SortFunc(m.Prices, func(a, b catalog.Price) int { return cmp.Compare(a.Type, b.Type) })
	return m, dropped
}

// pricesOf returns the prices of a type in a region. The newer on-demand price is used. A
// higher spot price predates a price cut: it is lowered to the on-demand price.
func pricesOf(i instance, src sources, region string, zones []catalog.Zone) (p catalog.Price, reason string) {
	listed := i.Pricing[region].Linux
	p = catalog.Price{
		Type:     i.Name,
		OnDemand: micro(cmp.Or(src.onDemand[region][i.Name], float64(listed.OnDemand))),
		Spot:     micro(float64(listed.Spot)),
	}
	if p.OnDemand > 0 {
		p.Spot = min(p.Spot, p.OnDemand)
	}
	for bit, zone := range zones {
		if slices.Contains(i.Zones[region], zone.ID) {
			p.Zones |= 1 << bit
		}
	}
	switch sold := p.OnDemand+p.Spot > 0; {
	case sold && p.Zones == 0:
		return p, "priced, but no zone is known"
	case !sold && p.Zones != 0:
		return p, "in a zone, but without a price"
	}
	return p, ""
}

// micro rounds to a millionth of a dollar, the precision of the sources.
func micro(dollars float64) float64 { return math.Round(dollars*1e6) / 1e6 }

// day parses a date constant of this package as midnight UTC.
func day(date string) time.Time {
	t, err := time.Parse(time.DateOnly, date)
	if err != nil {
		panic(err) // unreachable: the constants have a test
	}
	return t
}
