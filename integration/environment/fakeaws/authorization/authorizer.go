package authorization

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/joist-autoscaler/joist/infra/evaluator"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
)

// Place is the partition, account and region of the resources.
type Place struct{ Partition, Account, Region string }

// arn returns a resource's ARN. ARNs of IAM have no region, ARNs of S3 no region and no
// account, and ARNs of images no account.
func (p Place) arn(service, resource string) string {
	region, account := p.Region, p.Account
	switch service {
	case "iam":
		region = ""
	case "s3":
		region, account = "", ""
	}
	if service == "ec2" && strings.HasPrefix(resource, "image/") {
		account = ""
	}
	return "arn:" + strings.Join([]string{p.Partition, service, region, account, resource}, ":")
}

// Role is the caller for an access key, with its policies.
type Role struct {
	// ARN is the role's ARN.
	ARN      string
	Policies []evaluator.Policy
	// Trust are the role's trust policies.
	Trust []evaluator.Policy
	// Context has additional condition keys of every request by the role.
	Context map[string][]string
}

// Authorizer authorizes requests to a fake. Requests with an access key that belongs to no
// role come from the test itself and are allowed.
type Authorizer struct {
	Place Place
	// Cloud returns the tags of resources, and the roles of instance profiles.
	Cloud *memcloud.Cloud
	// Resources are the resource policies of queues and buses, by ARN.
	Resources map[string][]evaluator.Policy
	// Next serves the allowed requests.
	Next http.Handler

	mu        sync.Mutex
	roles     map[string]Role
	assumable map[string]Role
	denied    []string
	used      map[string]map[string]int
}

// AddCaller assigns an access key to a role.
func (g *Authorizer) AddCaller(accessKey string, role Role) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.roles == nil {
		g.roles = map[string]Role{}
	}
	g.roles[accessKey] = role
}

// SetRoles sets the roles that can be assumed. It replaces earlier ones.
func (g *Authorizer) SetRoles(roles map[string]Role) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.assumable = map[string]Role{}
	for _, role := range roles {
		g.assumable[role.ARN] = role
	}
}

// AssumeRole assigns an access key to an assumed role. It drops the condition keys of the
// role's own sessions, such as the function's ARN.
func (g *Authorizer) AssumeRole(accessKey, arn string) {
	g.mu.Lock()
	role := g.assumable[arn]
	g.mu.Unlock()
	g.AddCaller(accessKey, Role{ARN: arn, Policies: role.Policies})
}

// policiesOf returns the policies of a resource.
func (g *Authorizer) policiesOf(resource string) []evaluator.Policy {
	g.mu.Lock()
	defer g.mu.Unlock()
	if role, ok := g.assumable[resource]; ok {
		return role.Trust
	}
	return g.Resources[resource]
}

// Denied returns the distinct denied requests.
func (g *Authorizer) Denied() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.denied)
}

// Used returns how often each role used each action.
func (g *Authorizer) Used() map[string]map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := map[string]map[string]int{}
	for role, actions := range g.used {
		out[role] = maps.Clone(actions)
	}
	return out
}

var credential = regexp.MustCompile(`Credential=([^/]+)/[^/]+/[^/]+/([^/]+)/`)

// ServeHTTP forwards an allowed request, or responds with the API's access error.
func (g *Authorizer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found := credential.FindStringSubmatch(r.Header.Get("Authorization"))
	role, known := Role{}, false
	if found != nil {
		g.mu.Lock()
		role, known = g.roles[found[1]]
		g.mu.Unlock()
	}
	if !known {
		g.Next.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if err := g.authorize(role, found[2], r, body); err != nil {
		g.addDenied(err.Error())
		refuse(w, found[2], err.Error())
		return
	}
	g.Next.ServeHTTP(w, r)
}

// authorize returns nil if every part of the request is allowed.
func (g *Authorizer) authorize(role Role, service string, r *http.Request, body []byte) error {
	parts, err := g.readRequests(service, r, body)
	if err != nil {
		return fmt.Errorf("%s calls %s, which the guard cannot parse: %w", role.ARN, service, err)
	}
	for _, p := range parts {
		p.Principal = evaluator.Principal{Kind: evaluator.Role, Name: role.ARN}
		p.Owner = g.Place.Account
		p.Context = g.context(role.Context, p.Context)
		decision, err := evaluator.Policies{Identity: role.Policies, Resource: g.policiesOf(p.Resource)}.Evaluate(p)
		if err != nil {
			return fmt.Errorf("evaluating %s of %s: %w", p.Action, role.ARN, err)
		}
		if !decision.Allowed {
			return fmt.Errorf("%s is not allowed %s on %s with %v (denied by %q)", role.ARN, p.Action, p.Resource, p.Context, decision.By)
		}
		g.countUse(role.ARN, p.Action)
	}
	return nil
}

// context adds the condition keys that every request has.
func (g *Authorizer) context(lists ...map[string][]string) map[string][]string {
	out := map[string][]string{
		"aws:SecureTransport": {"true"}, "aws:RequestedRegion": {g.Place.Region}, "aws:ResourceAccount": {g.Place.Account},
	}
	for _, own := range lists {
		maps.Copy(out, own)
	}
	return out
}

func (g *Authorizer) addDenied(text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.Contains(g.denied, text) {
		g.denied = append(g.denied, text)
	}
}

func (g *Authorizer) countUse(role, action string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.used == nil {
		g.used = map[string]map[string]int{}
	}
	if g.used[role] == nil {
		g.used[role] = map[string]int{}
	}
	g.used[role][action]++
}

// refuse responds with an error in the service's protocol.
func refuse(w http.ResponseWriter, service, text string) {
	switch service {
	case "ec2":
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>%s</Message></Error></Errors></Response>", escape(text))
	case "s3":
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "<Error><Code>AccessDenied</Code><Message>%s</Message></Error>", escape(text))
	case "iam", "sts":
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>%s</Message></Error></ErrorResponse>", escape(text))
	default:
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.Header().Set("X-Amzn-ErrorType", "AccessDeniedException")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"__type": "AccessDeniedException", "message": text})
	}
}

func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}
