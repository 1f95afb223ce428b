package main

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/joist-autoscaler/joist/shared/catalog"
)

// readApart reads the prices of regions outside AWS's largest partition. Their zones are
// unknown, so they have no market; but GovCloud has no price list API, so these are the
// only available prices.
func readApart(dir string) (map[string]map[string]float64, error) {
	out := map[string]map[string]float64{}
	for file, partition := range map[string]string{"zz_generated.pricing_aws_us_gov.go": "USGov", "zz_generated.pricing_aws_cn.go": "CN"} {
		prices, err := readPrices(filepath.Join(dir, file), partition)
		if err != nil {
			return nil, err
		}
		maps.Copy(out, prices)
	}
	return out, nil
}

// priceLists returns the prices of those regions, by region and by type.
func priceLists(src sources) []catalog.PriceList {
	var out []catalog.PriceList
	for _, region := range slices.Sorted(maps.Keys(src.apart)) {
		list := catalog.PriceList{Region: region, AsOf: day(karpenterModule.Date)}
		if catalog.Partition(region) == "aws-cn" {
			list.Currency = "CNY"
		}
		for _, name := range slices.Sorted(maps.Keys(src.apart[region])) {
			if price := micro(src.apart[region][name]); price > 0 {
				list.Prices = append(list.Prices, catalog.Price{Type: name, OnDemand: price})
			}
		}
		out = append(out, list)
	}
	return out
}
