// Package ssm implements SSM's JSON protocol for parameters, on memcloud.
package ssm

import (
	"context"
	"net/http"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/awsjson"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
)

type parameter struct {
	Name, Type, Value string
	Version           int
}

// New returns the API for the model.
func New(model *memcloud.Cloud) *awsjson.API {
	get := func(r *http.Request, in struct{ Name string }) (any, error) {
		value, err := model.Parameter(context.WithoutCancel(r.Context()), in.Name)
		if err != nil {
			return nil, awsjson.Refusal(err)
		}
		return map[string]parameter{"Parameter": {Name: in.Name, Type: "String", Value: value, Version: 1}}, nil
	}
	return &awsjson.API{Target: "AmazonSSM", Version: "1.1", Operations: map[string]awsjson.Operation{"GetParameter": awsjson.Op(get)}}
}
