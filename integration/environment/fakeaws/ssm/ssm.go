// Package ssm implements SSM's JSON protocol for parameters, on memcloud.
package ssm

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/query"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
)

const target = "AmazonSSM.GetParameter"

// Service answers SSM's calls from a model.
type Service struct {
	cloud *memcloud.Cloud
}

// New returns a service for the model.
func New(cloud *memcloud.Cloud) *Service { return &Service{cloud: cloud} }

// Match recognizes the operation by its target.
func (s *Service) Match(r *http.Request, _ []byte) bool {
	return r.Header.Get("X-Amz-Target") == target
}

type parameter struct {
	Name, Type, Value string
	Version           int
}

// ServeHTTP answers one call.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct{ Name string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		write(w, http.StatusBadRequest, map[string]string{"__type": "SerializationException", "message": err.Error()})
		return
	}
	value, err := s.cloud.Parameter(context.WithoutCancel(r.Context()), in.Name)
	if err != nil {
		code, message, status := query.Refusal(err)
		write(w, status, map[string]string{"__type": code, "message": message})
		return
	}
	write(w, http.StatusOK, map[string]parameter{"Parameter": {Name: in.Name, Type: "String", Value: value, Version: 1}})
}

func write(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}
