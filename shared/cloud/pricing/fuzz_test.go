package pricing

import (
	"math"
	"strings"
	"testing"
)

// FuzzParse: a product has a finite price that is not negative, or the error quotes it.
func FuzzParse(f *testing.F) {
	f.Add(`{"product":{"attributes":{"instanceType":"m5.large"}},"terms":{"OnDemand":{"a":{"priceDimensions":{"b":{"unit":"Hrs","pricePerUnit":{"USD":"0.096"}}}}}}}`)
	f.Add(`{"terms":{"OnDemand":{"a":{"priceDimensions":{"b":{"unit":"Hrs","pricePerUnit":{"USD":"-1e309"}}}}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		price, err := parse(text, "USD")
		if err != nil {
			if !strings.Contains(err.Error(), "decoding a product") {
				t.Fatal(err)
			}
			return
		}
		if math.IsNaN(price.PerHour) || math.IsInf(price.PerHour, 0) || price.PerHour < 0 || price.Currency != "USD" {
			t.Fatalf("%+v", price)
		}
	})
}
