// Package sts is STS's query protocol: who am I, and nothing else.
package sts

import (
	"encoding/xml"
	"net/http"

	"github.com/joist-autoscaler/joist/integration/fakeaws/query"
	"github.com/joist-autoscaler/joist/shared/memcloud"
)

const (
	version   = "2011-06-15"
	namespace = "https://sts.amazonaws.com/doc/2011-06-15/"
)

// Service answers STS's calls.
type Service struct {
	cloud *memcloud.Cloud
}

// New serves the account of the model.
func New(cloud *memcloud.Cloud) *Service { return &Service{cloud: cloud} }

// Match recognizes STS by the version of its API.
func (s *Service) Match(r *http.Request, body []byte) bool { return query.Is(r, body, version) }

type identity struct {
	XMLName xml.Name `xml:"GetCallerIdentityResponse"`
	Space   string   `xml:"xmlns,attr"`
	ARN     string   `xml:"GetCallerIdentityResult>Arn"`
	UserID  string   `xml:"GetCallerIdentityResult>UserId"`
	Account string   `xml:"GetCallerIdentityResult>Account"`
}

// ServeHTTP answers one call. Credentials are not looked at.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	form, err := query.Read(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if form.Get("Action") != "GetCallerIdentity" {
		query.Refuse(w, namespace, http.StatusBadRequest, "InvalidAction", form.Get("Action")+" is not served by this fake")
		return
	}
	account := s.cloud.Account()
	query.Write(w, http.StatusOK, identity{
		Space: namespace, ARN: "arn:aws:sts::" + account + ":assumed-role/joist/joist",
		UserID: "AROAJOIST:joist", Account: account,
	})
}
