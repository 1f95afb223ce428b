package controlplane

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseCall(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		want Call
	}{
		"a subresource, impersonated": {
			`{"verb":"create","user":{"username":"admin"},"impersonatedUser":{"username":"system:serviceaccount:joist:joist-lifecycle"},
			"objectRef":{"resource":"pods","subresource":"eviction","namespace":"default","name":"p","apiVersion":"v1"},"annotations":{"authorization.k8s.io/decision":"allow"}}`,
			Call{User: "system:serviceaccount:joist:joist-lifecycle", Verb: "create", Resource: "pods/eviction", Namespace: "default", Name: "p"},
		},
		"refused": {
			`{"verb":"list","user":{"username":"me"},"objectRef":{"resource":"nodepools","apiGroup":"karpenter.sh"},"annotations":{"authorization.k8s.io/decision":"forbid"}}`,
			Call{User: "me", Verb: "list", Group: "karpenter.sh", Resource: "nodepools", Denied: true},
		},
		"no resource": {`{"verb":"get","user":{"username":"me"},"requestURI":"/readyz"}`, Call{User: "me", Verb: "get"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseCall([]byte(c.line))
			check(t, err)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := parseCall([]byte("{")); err == nil {
		t.Error("half a line was parsed")
	}
}

// Without Audit the API server writes no audit log.
func TestAuditArgs(t *testing.T) {
	l := layout{dir: "/run", audit: true}
	if args := l.apiserverArgs(); !slices.Contains(args, "--audit-log-path=/run/audit.log") || !slices.Contains(args, "--audit-policy-file=/run/audit-policy.yaml") {
		t.Error(args)
	}
	if args := (layout{dir: "/run"}).apiserverArgs(); strings.Contains(strings.Join(args, " "), "audit") {
		t.Error(args)
	}
}
