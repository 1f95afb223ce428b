// Package account is what an account has, told to whoever examines it: roles of IAM,
// Lambda's functions with their event source mappings, and how nodes are let into EKS's
// clusters. It is a table that a test writes, and nothing changes it.
package account

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/url"
	"strings"

	"github.com/joist-autoscaler/joist/integration/fakeaws/query"
)

const (
	iamVersion   = "2010-05-08"
	iamNamespace = "https://iam.amazonaws.com/doc/2010-05-08/"
	functions    = "/2015-03-31/functions/"
	mappings     = "/2015-03-31/event-source-mappings"
	clusters     = "/clusters/"
)

// Role is a role of IAM.
type Role struct {
	ARN, Trust string
	// Policies are the names of managed policies.
	Policies []string
}

// Function is a function of Lambda.
type Function struct {
	TimeoutSeconds int
	// Mappings are the states of event source mappings by the ARNs of their queues.
	Mappings map[string]string
}

// Service answers from its tables.
type Service struct {
	Roles     map[string]Role
	Functions map[string]Function
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
		return err == nil && (action == "GetRole" || action == "ListAttachedRolePolicies")
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
		s.mappings(w, r.URL.Query().Get("FunctionName"))
	default:
		s.cluster(w, r)
	}
}

type role struct {
	Name  string `xml:"RoleName"`
	ARN   string `xml:"Arn"`
	Trust string `xml:"AssumeRolePolicyDocument"`
}

type policy struct {
	Name string `xml:"PolicyName"`
	ARN  string `xml:"PolicyArn"`
}

func (s *Service) iam(w http.ResponseWriter, r *http.Request) {
	form, err := query.Read(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	action, name := form.Get("Action"), form.Get("RoleName")
	found, there := s.Roles[name]
	switch {
	case s.Denied[action]:
		query.Refuse(w, iamNamespace, http.StatusForbidden, "AccessDenied", "not authorized to perform: iam:"+action)
	case !there:
		query.Refuse(w, iamNamespace, http.StatusNotFound, "NoSuchEntity", "The role with name "+name+" cannot be found.")
	case action == "GetRole":
		query.Write(w, http.StatusOK, struct {
			XMLName xml.Name `xml:"GetRoleResponse"`
			Role    role     `xml:"GetRoleResult>Role"`
		}{Role: role{name, found.ARN, url.QueryEscape(found.Trust)}})
	default:
		var list []policy
		for _, p := range found.Policies {
			list = append(list, policy{p, "arn:aws:iam::aws:policy/" + p})
		}
		query.Write(w, http.StatusOK, struct {
			XMLName  xml.Name `xml:"ListAttachedRolePoliciesResponse"`
			Policies []policy `xml:"ListAttachedRolePoliciesResult>AttachedPolicies>member"`
		}{Policies: list})
	}
}

func (s *Service) function(w http.ResponseWriter, name string) {
	f, there := s.Functions[name]
	switch {
	case s.Denied["GetFunctionConfiguration"]:
		refuse(w, http.StatusForbidden, "AccessDeniedException", "not authorized to perform: lambda:GetFunctionConfiguration")
	case !there:
		refuse(w, http.StatusNotFound, "ResourceNotFoundException", "Function not found: "+name)
	default:
		write(w, http.StatusOK, map[string]any{"FunctionName": name, "Timeout": f.TimeoutSeconds})
	}
}

func (s *Service) mappings(w http.ResponseWriter, name string) {
	list := []map[string]string{}
	for arn, state := range s.Functions[name].Mappings {
		list = append(list, map[string]string{"EventSourceArn": arn, "State": state})
	}
	write(w, http.StatusOK, map[string]any{"EventSourceMappings": list})
}

// cluster answers DescribeCluster and DescribeAccessEntry.
func (s *Service) cluster(w http.ResponseWriter, r *http.Request) {
	name, rest, entry := strings.Cut(strings.TrimPrefix(r.URL.Path, clusters), "/access-entries/")
	if !entry {
		write(w, http.StatusOK, map[string]any{"cluster": map[string]any{"name": name, "status": "ACTIVE", "accessConfig": map[string]string{"authenticationMode": s.Mode}}})
		return
	}
	kind, there := s.Entries[rest]
	if !there {
		refuse(w, http.StatusNotFound, "ResourceNotFoundException", "The specified principalArn could not be found.")
		return
	}
	write(w, http.StatusOK, map[string]any{"accessEntry": map[string]string{"clusterName": name, "principalArn": rest, "type": kind}})
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
