// Package account is what an account has, told to whoever examines it: roles of IAM and
// what its simulator says of them, instance profiles, Lambda's functions with their event
// source mappings, how nodes are let into EKS's clusters, and which pods have which roles.
// It is a table that a test writes, and nothing changes it.
package account

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/query"
)

const (
	functions = "/2015-03-31/functions/"
	mappings  = "/2015-03-31/event-source-mappings"
	clusters  = "/clusters/"
)

// Role is a role of IAM.
type Role struct {
	ARN, Trust string
	// Policies are the names of managed policies.
	Policies []string
}

// Function is a function of Lambda.
type Function struct {
	// Role is its ARN.
	Role           string
	TimeoutSeconds int
	// Mappings are the states of event source mappings by the ARNs of their queues.
	Mappings map[string]string
	// Environment is what it is told.
	Environment map[string]string
	// Gone says that it was deleted: its mappings are left.
	Gone bool
}

// Service answers from its tables.
type Service struct {
	Roles     map[string]Role
	Functions map[string]Function
	// Profiles are the roles that instance profiles hold, by the profiles' names; "" is a
	// profile without one.
	Profiles map[string]string
	// Judge says what IAM's simulator says of one action on one resource, with the keys of
	// conditions that it is told: allowed, implicitDeny or explicitDeny.
	Judge func(role, action, resource string, context map[string][]string) string
	// Issuer is every cluster's OIDC issuer.
	Issuer string
	// Pods are the roles' ARNs of Pod Identity associations, by namespace/account.
	Pods map[string]string
	// Mode is the authentication mode of every cluster, and Entries the types of access
	// entries by principals.
	Mode    string
	Entries map[string]string
	// Denied are the names of operations that are refused.
	Denied map[string]bool
}

// Match recognizes the operations that are served here, so that others of the same
// services may be served elsewhere.
func (s *Service) Match(r *http.Request, body []byte) bool {
	if query.Is(r, body, iamVersion) {
		values, err := url.ParseQuery(string(body))
		action := values.Get("Action")
		return err == nil && operations[action] != nil
	}
	signed := r.Header.Get("Authorization")
	return r.Method == http.MethodGet && (strings.Contains(signed, "/lambda/aws4_request") || strings.Contains(signed, "/eks/aws4_request"))
}

// ServeHTTP answers one call.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case r.Method == http.MethodPost:
		s.iam(w, r)
	case strings.HasPrefix(path, functions):
		s.function(w, strings.TrimSuffix(strings.TrimPrefix(path, functions), "/configuration"))
	case strings.TrimSuffix(path, "/") == mappings:
		s.mappings(w, r.URL.Query().Get("EventSourceArn"))
	default:
		s.cluster(w, r)
	}
}

func (s *Service) function(w http.ResponseWriter, name string) {
	f, there := s.Functions[name]
	switch {
	case s.Denied["GetFunctionConfiguration"]:
		refuse(w, http.StatusForbidden, "AccessDeniedException", "not authorized to perform: lambda:GetFunctionConfiguration")
	case !there || f.Gone:
		refuse(w, http.StatusNotFound, "ResourceNotFoundException", "Function not found: "+name)
	default:
		write(w, http.StatusOK, map[string]any{"FunctionName": name, "Timeout": f.TimeoutSeconds, "Role": f.Role, "Environment": map[string]any{"Variables": f.Environment}})
	}
}

// mappings are a queue's, whichever functions they hand its messages to.
func (s *Service) mappings(w http.ResponseWriter, queue string) {
	list := []map[string]string{}
	for name, f := range s.Functions {
		if state, there := f.Mappings[queue]; there {
			list = append(list, map[string]string{"EventSourceArn": queue, "FunctionArn": "arn:aws:lambda:eu-west-1:123456789012:function:" + name, "State": state})
		}
	}
	write(w, http.StatusOK, map[string]any{"EventSourceMappings": list})
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("X-Amzn-Errortype", code)
	write(w, status, map[string]string{"message": message})
}

func write(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}
