package pricing

import (
	"testing"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

func TestParse(t *testing.T) {
	entry := func(terms string) string {
		return `{"product":{"sku":"A","attributes":{"instanceType":"m5.large"}},"terms":{` + terms + `}}`
	}
	rate := func(unit, currency, price string) string {
		return entry(`"OnDemand":{"A.T":{"priceDimensions":{"A.T.R":{"unit":"` + unit + `","pricePerUnit":{"` + currency + `":"` + price + `"}}}}}`)
	}
	for _, test := range []struct {
		name, text, currency string
		want                 float64
	}{
		{"by the hour", rate("Hrs", "USD", "0.0960000000"), "USD", 0.096},
		{"in China", rate("Hrs", "CNY", "0.7500000000"), "CNY", 0.75},
		{"in another currency", rate("Hrs", "CNY", "0.75"), "USD", 0},
		{"upfront fee", rate("Quantity", "USD", "1000"), "USD", 0},
		{"text instead of a price", rate("Hrs", "USD", "free"), "USD", 0},
		{"NaN price", rate("Hrs", "USD", "NaN"), "USD", 0},
		{"infinite price", rate("Hrs", "USD", "Inf"), "USD", 0},
		{"only reserved terms", entry(`"Reserved":{}`), "USD", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := parse(test.text, test.currency)
			if want := (cloud.OnDemandPrice{Type: "m5.large", PerHour: test.want, Currency: test.currency}); err != nil || got != want {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
		})
	}
	if _, err := parse("{", "USD"); err == nil {
		t.Error("a truncated entry was decoded")
	}
}
