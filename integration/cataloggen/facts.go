package main

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/joist-autoscaler/joist/shared/catalog"
)

// clockByFamily is EC2's sustained clock speed in MHz, where the data has none or another
// one (often the base or the turbo speed). A type's entry overrides its family's.
var clockByFamily = map[string]int64{
	"c5.12xlarge": 3600, "c5.24xlarge": 3600, "c5.metal": 3600, "c5d.12xlarge": 3600, "c5d.24xlarge": 3600, "c5d.metal": 3600,
	"c5n": 3400, "c7g": 2600, "c7gd": 2600, "m7g": 2600, "m7gd": 2600, "r7g": 2600, "r7gd": 2600, "m6g": 2500,
	"f2": 3400, "hpc6a": 3600, "i8g": 2800, "trn2": 3500, "g4ad": 3000, "g5": 3300, "g6": 3400, "g6e": 3400, "gr6": 3400, "i7ie": 3600, "inf1": 2500, "inf2": 3600,
	"m4.16xlarge": 2300, "m7i-flex": 3200, "p5": 3600, "p5e": 3600, "p5en": 2400, "r5n": 3100,
	"m5ad.8xlarge": 2500, "m5ad.16xlarge": 2500, "m5ad": 2200, "r5ad.8xlarge": 2500, "r5ad.16xlarge": 2500, "r5ad": 2200,
	"t2.nano": 2400, "t2.micro": 2500, "t2.small": 2500, "t2": 2300, "t3": 2500, "t3a": 2200,
	"u-6tb1": 2100, "u7i-6tb": 1900, "u7i-8tb": 1900, "u7i-12tb": 1900, "u7in-16tb": 1900, "u7in-24tb": 1900, "u7in-32tb": 1900,
}

// graviton4Families run at 2.8 GHz, except for their two-socket sizes, which run at 2.7.
var graviton4Families = strings.Fields("c8g c8gd m8g m8gd r8g r8gd x8g")

func clockFact(name string) int64 {
	family, size, _ := strings.Cut(name, ".")
	if mhz := cmp.Or(clockByFamily[name], clockByFamily[family]); mhz != 0 {
		return mhz
	}
	if !slices.Contains(graviton4Families, family) {
		return 0
	}
	if strings.HasSuffix(size, "48xlarge") || strings.HasSuffix(size, "48xl") {
		return 2700
	}
	return 2800
}

// memoryMiB is the memory that EC2 reports, where the data has the nominal size.
var memoryMiB = map[string]int64{"r3.large": 15360}

// ebsByFamily is the EBS bandwidth in Mbps, where the data lacks it or is outdated.
var ebsByFamily = map[string]int64{
	"hpc6a": 2085, "hpc6id": 2085, "hpc7a": 2085, "p4de": 19000, "p5e": 80000, "trn2": 80000, "u7i-6tb": 100000, "u7i-8tb": 100000, "u7i-12tb": 100000,
}

// ebsOnRequest are the families whose EBS optimization is optional, and therefore not
// counted.
var ebsOnRequest = strings.Fields("c3 g2 i2 m3 r3")

// storageByFamily are instance stores that the data lacks.
var storageByFamily = map[string]catalog.LocalStorage{
	"p4de":   {Disks: 8, TotalGB: 8000, NVMe: true},
	"p5e":    {Disks: 8, TotalGB: 30400, NVMe: true},
	"hpc6id": {Disks: 4, TotalGB: 15200, NVMe: true},
	"dl1":    {Disks: 4, TotalGB: 4000, NVMe: true},
	"trn2":   {Disks: 4, TotalGB: 7600, NVMe: true},
}

// networkByFamily are the types that the VPC limits lack. All of them run on Nitro.
var networkByFamily = map[string]catalog.Network{
	"hpc6a":  {ENIs: 2, IPv4PerENI: 50, Cards: 1},
	"hpc6id": {ENIs: 1, IPv4PerENI: 50, Cards: 2},
	"hpc7a":  {ENIs: 2, IPv4PerENI: 50, Cards: 2},
	"trn2":   {ENIs: 2, IPv4PerENI: 50, Cards: 16},
}

// generation is the first number in a family's name after its prefix: 7 in c7gn, 1 in
// u-6tb1, 7 in u7i-12tb.
var generation = regexp.MustCompile(`^[a-z]+(?:-\d+tb)?(\d+)`)

// encryptingFamilies encrypt traffic between instances although their generation is
// before 7, from which on all families do.
var encryptingFamilies = strings.Fields(`
	c5a c5ad c5n c6a c6gn c6i c6id c6in d3 d3en dl1 dl2q f2 g4ad g4dn g5 g6 g6e gr6 hpc6a hpc6id i3en i4g i4i im4gn
	inf1 inf2 is4gen m5dn m5n m5zn m6a m6i m6id m6idn m6in p3dn p4d p4de p5 p5e p5en r5dn r5n r6a r6i r6id r6idn r6in
	trn1 trn1n trn2 u-3tb1 u-6tb1 u-9tb1 u-12tb1 u-18tb1 u-24tb1 vt1 x2idn x2iedn x2iezn`)

func encryptsInTransit(name string) bool {
	family, _, _ := strings.Cut(name, ".")
	if slices.Contains(encryptingFamilies, family) {
		return true
	}
	match := generation.FindStringSubmatch(family)
	if match == nil {
		return false
	}
	n, _ := strconv.Atoi(match[1])
	return n >= 7
}

// efaSizes are the sizes of each family with Elastic Fabric Adapters, from EC2's
// documentation.
var efaSizes = map[string]string{
	"c5n": "9xlarge 18xlarge metal", "c6a": "48xlarge metal", "c6gn": "16xlarge", "c6i": "32xlarge metal",
	"c6id": "32xlarge metal", "c6in": "32xlarge metal", "c7a": "48xlarge metal-48xl", "c7g": "16xlarge metal",
	"c7gd": "16xlarge metal", "c7gn": "16xlarge metal", "c7i": "48xlarge metal-48xl",
	"c8g": graviton4, "c8gd": graviton4, "m8g": graviton4, "m8gd": graviton4, "r8g": graviton4, "r8gd": graviton4, "x8g": graviton4,
	"dl1": "24xlarge", "dl2q": "24xlarge", "f2": "48xlarge",
	"g4dn": "8xlarge 12xlarge 16xlarge metal", "g5": largeGPU, "g6": largeGPU, "g6e": largeGPU, "gr6": "8xlarge",
	"hpc6a": "48xlarge", "hpc6id": "32xlarge", "hpc7a": "12xlarge 24xlarge 48xlarge 96xlarge", "hpc7g": "4xlarge 8xlarge 16xlarge",
	"i3en": "12xlarge 24xlarge metal", "i4g": "16xlarge", "i4i": "32xlarge metal", "i7ie": "48xlarge metal-48xl",
	"i8g": "48xlarge metal-48xl", "im4gn": "16xlarge", "inf1": "24xlarge",
	"m5dn": "24xlarge metal", "m5n": "24xlarge metal", "m5zn": "12xlarge metal", "m6a": "48xlarge metal",
	"m6i": "32xlarge metal", "m6id": "32xlarge metal", "m6idn": "32xlarge metal", "m6in": "32xlarge metal",
	"m7a": "48xlarge metal-48xl", "m7g": "16xlarge metal", "m7gd": "16xlarge metal", "m7i": "48xlarge metal-48xl",
	"p3dn": "24xlarge", "p4d": "24xlarge", "p4de": "24xlarge", "p5": "48xlarge", "p5e": "48xlarge", "p5en": "48xlarge",
	"r5dn": "24xlarge metal", "r5n": "24xlarge metal", "r6a": "48xlarge metal", "r6i": "32xlarge metal",
	"r6id": "32xlarge metal", "r6idn": "32xlarge metal", "r6in": "32xlarge metal", "r7a": "48xlarge metal-48xl",
	"r7g": "16xlarge metal", "r7gd": "16xlarge metal", "r7i": "48xlarge metal-48xl", "r7iz": "32xlarge metal-32xl",
	"trn1": "32xlarge", "trn1n": "32xlarge", "trn2": "48xlarge", "vt1": "24xlarge",
	"u7i-6tb": "112xlarge", "u7i-8tb": "112xlarge", "u7i-12tb": "224xlarge",
	"u7in-16tb": "224xlarge", "u7in-24tb": "224xlarge", "u7in-32tb": "224xlarge",
	"x2idn": "32xlarge metal", "x2iedn": "32xlarge metal", "x2iezn": "12xlarge metal",
}

const (
	graviton4 = "24xlarge metal-24xl 48xlarge metal-48xl"
	largeGPU  = "8xlarge 12xlarge 16xlarge 24xlarge 48xlarge"
)

// efaCounts are the types with more than one adapter.
var efaCounts = map[string]int64{
	"c6in.32xlarge": 2, "c6in.metal": 2, "m6in.32xlarge": 2, "m6in.metal": 2, "m6idn.32xlarge": 2, "m6idn.metal": 2,
	"r6in.32xlarge": 2, "r6in.metal": 2, "r6idn.32xlarge": 2, "r6idn.metal": 2,
	"g6e.24xlarge": 2, "g6e.48xlarge": 4, "hpc6id.32xlarge": 2,
	"hpc7a.12xlarge": 2, "hpc7a.24xlarge": 2, "hpc7a.48xlarge": 2, "hpc7a.96xlarge": 2,
	"dl1.24xlarge": 4, "p4d.24xlarge": 4, "p4de.24xlarge": 4, "p5.48xlarge": 32, "p5e.48xlarge": 32, "p5en.48xlarge": 16,
	"trn1.32xlarge": 8, "trn1n.32xlarge": 16, "trn2.48xlarge": 16,
	"u7in-16tb.224xlarge": 2, "u7in-24tb.224xlarge": 2, "u7in-32tb.224xlarge": 2,
}

func efas(name string) int64 {
	family, size, _ := strings.Cut(name, ".")
	if !slices.Contains(strings.Fields(efaSizes[family]), size) {
		return 0
	}
	return max(1, efaCounts[name])
}
