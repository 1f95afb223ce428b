package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/joist-autoscaler/joist/shared/catalog"
)

// zones returns a region's zones by name. The data has only zone ids, and AWS maps names
// to ids differently in each account, so no mapping is right for every account. The
// mapping here is fixed: the n-th zone id has the n-th suffix (apne2-az1 is
// ap-northeast-2a). Tokyo differs, as in accounts that were created after its second zone
// closed for new accounts.
func zones(src sources, region string) []catalog.Zone {
	seen := map[string]bool{}
	for _, i := range src.instances {
		for _, id := range i.Zones[region] {
			seen[id] = true
		}
	}
	var all []catalog.Zone
	for id := range seen {
		if letter := zoneLetter(id); letter != "" {
			all = append(all, catalog.Zone{Name: region + letter, ID: id})
		}
	}
	slices.SortFunc(all, func(a, b catalog.Zone) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// zoneLetter returns "" for local and wavelength zones, whose ids also contain a city
// (use1-bos1-az1).
func zoneLetter(id string) string {
	switch id {
	case "apne1-az4":
		return "a"
	case "apne1-az3":
		return "b"
	case "apne1-az1":
		return "c"
	case "apne1-az2":
		return "d"
	}
	region, digits, found := strings.Cut(id, "-az")
	n, err := strconv.Atoi(digits)
	if !found || strings.Contains(region, "-") || err != nil || n < 1 || n > 26 {
		return ""
	}
	return string(rune('a' + n - 1))
}
