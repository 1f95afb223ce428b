// Package account fakes the AWS APIs that joist doctor reads: IAM roles and IAM's policy
// simulator, instance profiles, Lambda functions with their event source mappings, EKS
// access entries and Pod Identity associations. A test writes its tables; calls do not
// change them.
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

// Role is an IAM role.
type Role struct {
	ARN, Trust string
	// Policies are the names of managed policies.
	Policies []string
}

// Function is a Lambda function.
type Function struct {
	// Role is the role's ARN.
	Role           string
	TimeoutSeconds int
	// Mappings are the states of event source mappings by queue ARN.
	Mappings map[string]string
	// Environment has the function's environment variables.
	Environment map[string]string
	// Gone is set if the function was deleted and its mappings remain.
	Gone bool
}

// Service answers calls from its tables.
type Service struct {
	Roles     map[string]Role
	Functions map[string]Function
	// Profiles are the roles of instance profiles, by profile name; "" is a profile
	// without a role.
	Profiles map[string]string
	// ProfilePaths and ProfileTags are the paths and tags of instance profiles; others have the path / and no tags.
	ProfilePaths map[string]string
	ProfileTags  map[string]map[string]string
	// Judge returns the simulator's decision for one action on one resource with the given
	// condition keys: allowed, implicitDeny or explicitDeny.
	Judge func(role, action, resource string, context map[string][]string) string
	// Issuer is the OIDC issuer of every cluster.
	Issuer string
	// Pods are the role ARNs of Pod Identity associations, by namespace/account.
	Pods map[string]string
	// Mode is the authentication mode of every cluster. Entries are the types of access
	// entries by principal.
	Mode    string
	Entries map[string]string
	// Denied are the names of denied operations.
	Denied map[string]bool
}

// Match reports whether the operation is served here; other fakes may serve other
// operations of the same services.
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

// mappings answers ListEventSourceMappings for a queue.
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
