// Package sts implements STS's query protocol: GetCallerIdentity and AssumeRole. The
// guard in front of it authorizes the calls.
package sts

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/query"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
)

const (
	version   = "2011-06-15"
	namespace = "https://sts.amazonaws.com/doc/2011-06-15/"
)

// Service answers STS's calls.
type Service struct {
	// Assumed is called with each new access key and its role, before the key is returned;
	// it may be nil.
	Assumed func(accessKey, role string)

	cloud *memcloud.Cloud
	keys  atomic.Int64
}

// New returns a service for the model's account.
func New(cloud *memcloud.Cloud) *Service { return &Service{cloud: cloud} }

// Match recognizes STS by its API version.
func (s *Service) Match(r *http.Request, body []byte) bool { return query.Is(r, body, version) }

type identity struct {
	XMLName xml.Name `xml:"GetCallerIdentityResponse"`
	Space   string   `xml:"xmlns,attr"`
	ARN     string   `xml:"GetCallerIdentityResult>Arn"`
	UserID  string   `xml:"GetCallerIdentityResult>UserId"`
	Account string   `xml:"GetCallerIdentityResult>Account"`
}

// ServeHTTP answers one call. It does not check credentials.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	form, err := query.Read(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch form.Get("Action") {
	case "AssumeRole":
		s.assume(w, form)
		return
	case "GetCallerIdentity":
	default:
		query.Refuse(w, namespace, http.StatusBadRequest, "InvalidAction", form.Get("Action")+" is not served by this fake")
		return
	}
	account := s.cloud.Account()
	query.Write(w, http.StatusOK, identity{
		Space: namespace, ARN: "arn:aws:sts::" + account + ":assumed-role/joist/joist",
		UserID: "AROAJOIST:joist", Account: account,
	})
}

type assumed struct {
	XMLName xml.Name  `xml:"AssumeRoleResponse"`
	Space   string    `xml:"xmlns,attr"`
	Key     string    `xml:"AssumeRoleResult>Credentials>AccessKeyId"`
	Secret  string    `xml:"AssumeRoleResult>Credentials>SecretAccessKey"`
	Token   string    `xml:"AssumeRoleResult>Credentials>SessionToken"`
	Expires time.Time `xml:"AssumeRoleResult>Credentials>Expiration"`
	ARN     string    `xml:"AssumeRoleResult>AssumedRoleUser>Arn"`
	ID      string    `xml:"AssumeRoleResult>AssumedRoleUser>AssumedRoleId"`
}

// sessionName matches the names that IAM accepts for a session.
var sessionName = regexp.MustCompile(`^[\w+=,.@-]{2,64}$`)

// assume returns a new key for each session.
func (s *Service) assume(w http.ResponseWriter, form query.Form) {
	role, session := form.Get("RoleArn"), form.Get("RoleSessionName")
	_, name, _ := strings.Cut(role, ":role/")
	if name == "" || !sessionName.MatchString(session) {
		query.Refuse(w, namespace, http.StatusBadRequest, "ValidationError", "invalid role "+role+" or session "+session)
		return
	}
	key := fmt.Sprintf("ASIAFAKE%08d", s.keys.Add(1))
	if s.Assumed != nil {
		s.Assumed(key, role)
	}
	query.Write(w, http.StatusOK, assumed{
		Space: namespace, Key: key, Secret: "secret", Token: "token", Expires: time.Now().UTC().Add(time.Duration(form.Int("DurationSeconds")) * time.Second),
		ARN: "arn:aws:sts::" + s.cloud.Account() + ":assumed-role/" + name + "/" + session, ID: "AROAJOIST:" + session,
	})
}
