package pricing

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

// product has the fields of an entry that are used.
type product struct {
	Product struct {
		Attributes struct {
			InstanceType string `json:"instanceType"`
		} `json:"attributes"`
	} `json:"product"`
	Terms struct {
		OnDemand map[string]struct {
			PriceDimensions map[string]struct {
				Unit         string            `json:"unit"`
				PricePerUnit map[string]string `json:"pricePerUnit"`
			} `json:"priceDimensions"`
		} `json:"OnDemand"`
	} `json:"terms"`
}

// parse parses one entry. Without a price per hour the price is 0, which the caller ignores: reservations have such
// entries.
func parse(text, currency string) (cloud.OnDemandPrice, error) {
	var p product
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return cloud.OnDemandPrice{}, fmt.Errorf("decoding a product: %w", err)
	}
	out := cloud.OnDemandPrice{Type: p.Product.Attributes.InstanceType, Currency: currency}
	for _, term := range p.Terms.OnDemand {
		for _, dimension := range term.PriceDimensions {
			perHour, err := strconv.ParseFloat(dimension.PricePerUnit[currency], 64)
			if err == nil && dimension.Unit == "Hrs" && !math.IsInf(perHour, 0) && !math.IsNaN(perHour) {
				out.PerHour = max(out.PerHour, perHour)
			}
		}
	}
	return out, nil
}
