// Package sts is STS's query protocol: who am I, and the credentials of a role. Whether
// somebody may have those is the guard's to say, which stands before it.
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
	// Assumed hears of each access key that is handed out, before anybody has it, and of
	// which role; nil hears nothing.
	Assumed func(accessKey, role string)

	cloud *memcloud.Cloud
	keys  atomic.Int64
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

// sessionName is what IAM takes for the name of a session.
var sessionName = regexp.MustCompile(`^[\w+=,.@-]{2,64}$`)

// assume hands out a key of its own for each session.
func (s *Service) assume(w http.ResponseWriter, form query.Form) {
	role, session := form.Get("RoleArn"), form.Get("RoleSessionName")
	_, name, _ := strings.Cut(role, ":role/")
	if name == "" || !sessionName.MatchString(session) {
		query.Refuse(w, namespace, http.StatusBadRequest, "ValidationError", "the role is "+role+" and the session "+session)
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
