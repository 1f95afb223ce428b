package guard

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

// Place says where the account's resources are.
type Place struct{ Partition, Account, Region string }

// arn names a resource of the place. IAM's have no region, S3's neither that nor an
// account, and an image is not of the account that launches it.
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

// Role is who calls with an access key, and the policies that it has.
type Role struct {
	// ARN is the role's.
	ARN      string
	Policies []evaluator.Policy
	// Trust says who may take it.
	Trust []evaluator.Policy
	// Context is what AWS knows of every request by the role, beside what follows from it.
	Context map[string][]string
}

// Guard judges the requests to a fake. Callers whose access key is nobody's role's are
// the test itself, and pass.
type Guard struct {
	Place Place
	// Cloud knows what tags things have, and which role an instance profile holds.
	Cloud *memcloud.Cloud
	// Resources are the policies of resources, by ARN: queues' and buses'.
	Resources map[string][]evaluator.Policy
	// Next serves what was allowed.
	Next http.Handler

	mu     sync.Mutex
	roles  map[string]Role
	known  map[string]Role
	denied []string
	used   map[string]map[string]int
}

// Enter makes an access key that role's.
func (g *Guard) Enter(accessKey string, role Role) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.roles == nil {
		g.roles = map[string]Role{}
	}
	g.roles[accessKey] = role
}

// Know says which roles there are, for those who take one. It replaces those that were
// known.
func (g *Guard) Know(roles map[string]Role) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known = map[string]Role{}
	for _, role := range roles {
		g.known[role.ARN] = role
	}
}

// Assume makes an access key that of a role that somebody has taken. What AWS knows of
// those who have it as their own, such as their function, it does not know of him.
func (g *Guard) Assume(accessKey, arn string) {
	g.mu.Lock()
	role := g.known[arn]
	g.mu.Unlock()
	g.Enter(accessKey, Role{ARN: arn, Policies: role.Policies})
}

// of are the policies of what a request is about.
func (g *Guard) of(resource string) []evaluator.Policy {
	g.mu.Lock()
	defer g.mu.Unlock()
	if role, ok := g.known[resource]; ok {
		return role.Trust
	}
	return g.Resources[resource]
}

// Denied lists the requests that were refused, each once.
func (g *Guard) Denied() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.denied)
}

// Used tells how often each role took each action.
func (g *Guard) Used() map[string]map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := map[string]map[string]int{}
	for role, actions := range g.used {
		out[role] = maps.Clone(actions)
	}
	return out
}

var credential = regexp.MustCompile(`Credential=([^/]+)/[^/]+/[^/]+/([^/]+)/`)

// ServeHTTP lets a request pass, or refuses it as the API would.
func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	if err := g.judge(role, found[2], r, body); err != nil {
		g.note(err.Error())
		refuse(w, found[2], err.Error())
		return
	}
	g.Next.ServeHTTP(w, r)
}

// judge is nil where every part of the request is allowed.
func (g *Guard) judge(role Role, service string, r *http.Request, body []byte) error {
	parts, err := g.read(service, r, body)
	if err != nil {
		return fmt.Errorf("%s calls %s, which the guard cannot read: %w", role.ARN, service, err)
	}
	for _, p := range parts {
		p.Principal = evaluator.Principal{Kind: evaluator.Role, Name: role.ARN}
		p.Owner = g.Place.Account
		p.Context = g.context(role.Context, p.Context)
		decision, err := evaluator.Policies{Identity: role.Policies, Resource: g.of(p.Resource)}.Evaluate(p)
		if err != nil {
			return fmt.Errorf("judging %s of %s: %w", p.Action, role.ARN, err)
		}
		if !decision.Allowed {
			return fmt.Errorf("%s is not allowed %s on %s with %v (denied by %q)", role.ARN, p.Action, p.Resource, p.Context, decision.By)
		}
		g.count(role.ARN, p.Action)
	}
	return nil
}

// context adds what AWS knows of every request.
func (g *Guard) context(lists ...map[string][]string) map[string][]string {
	out := map[string][]string{
		"aws:SecureTransport": {"true"}, "aws:RequestedRegion": {g.Place.Region}, "aws:ResourceAccount": {g.Place.Account},
	}
	for _, own := range lists {
		maps.Copy(out, own)
	}
	return out
}

func (g *Guard) note(text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.Contains(g.denied, text) {
		g.denied = append(g.denied, text)
	}
}

func (g *Guard) count(role, action string) {
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

// refuse answers in the protocol of the service.
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
