// Package pricing implements the AWS Price List's JSON protocol for EC2 products, on
// memcloud.
package pricing

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/awsjson"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/query"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
)

// pageSize is the number of products per page; AWS allows 100.
const pageSize = 100

// New returns the API for the model.
func New(model *memcloud.Cloud) *awsjson.API {
	s := service{model}
	return &awsjson.API{Target: "AWSPriceListService", Version: "1.1", Operations: map[string]awsjson.Operation{
		"GetProducts": awsjson.Op(s.products),
	}}
}

type service struct {
	cloud *memcloud.Cloud
}

type request struct {
	ServiceCode, NextToken string
	MaxResults             int
	Filters                []struct{ Type, Field, Value string }
}

type answer struct {
	FormatVersion string
	PriceList     []string
	NextToken     string `json:",omitempty"`
}

// products returns bare-metal types and other types by separate product families, as AWS
// does.
func (s service) products(r *http.Request, in request) (any, error) {
	metal, err := s.family(in)
	if err != nil {
		return nil, err
	}
	prices, err := s.cloud.OnDemandPrices(r.Context(), s.cloud.Region())
	if err != nil {
		return nil, awsjson.Refusal(err)
	}
	var all []string
	for _, p := range prices {
		if strings.Contains(p.Type, ".metal") == metal {
			all = append(all, entry(p))
		}
	}
	from, _ := strconv.Atoi(in.NextToken)
	to := min(from+min(pageSize, in.MaxResults), len(all))
	out := answer{FormatVersion: "aws_v1", PriceList: all[from:to]}
	if to < len(all) {
		out.NextToken = strconv.Itoa(to)
	}
	return out, nil
}

// family parses the filters; each is required.
func (s service) family(in request) (metal bool, err error) {
	got := map[string]string{}
	for _, f := range in.Filters {
		got[f.Field] = f.Value
	}
	want := map[string]string{
		"regionCode": s.cloud.Region(), "serviceCode": "AmazonEC2", "preInstalledSw": "NA", "operatingSystem": "Linux",
		"capacitystatus": "Used", "marketoption": "OnDemand", "tenancy": "Shared", "productFamily": "Compute Instance",
	}
	if metal = got["tenancy"] == "Dedicated"; metal {
		want["tenancy"], want["productFamily"] = "Dedicated", "Compute Instance (bare metal)"
	}
	for field, value := range want {
		if got[field] != value {
			return false, awsjson.Errorf("InvalidParameterException", "%v: %s is %q", query.ErrUnserved, field, got[field])
		}
	}
	return metal, nil
}

// entry returns one product: an offer with a term, and a term with an hourly price of 0,
// as fees have.
func entry(p cloud.OnDemandPrice) string {
	dimension := func(unit string, price float64) map[string]any {
		return map[string]any{"unit": unit, "pricePerUnit": map[string]string{p.Currency: fmt.Sprintf("%.10f", price)}}
	}
	text, err := json.Marshal(map[string]any{
		"serviceCode": "AmazonEC2",
		"product":     map[string]any{"sku": "SKU", "attributes": map[string]string{"instanceType": p.Type, "operatingSystem": "Linux"}},
		"terms": map[string]any{"OnDemand": map[string]any{"SKU.TERM": map[string]any{
			"priceDimensions": map[string]any{"SKU.TERM.RATE": dimension("Hrs", p.PerHour), "SKU.TERM.FEE": dimension("Quantity", 1000)},
		}}},
	})
	if err != nil {
		panic(err) // unreachable: every field is text
	}
	return string(text)
}
