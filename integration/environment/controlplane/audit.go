package controlplane

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// auditPolicy logs every request without bodies. When the server applies the policy, it
// does not know the impersonated user yet.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// A Call is an API request by a user.
type Call struct {
	// User is the impersonated user or, without impersonation, the authenticated one.
	User string
	Verb string
	// Group and Resource identify the resource; Resource includes a subresource, as in
	// pods/eviction. Both are empty for paths that are not resources.
	Group, Resource string
	Namespace, Name string
	// Denied is set if the user had no permission.
	Denied bool
}

// Calls returns the distinct requests so far with their counts. It requires
// Options.Audit.
func (cp *ControlPlane) Calls() (map[Call]int, error) {
	file, err := os.Open(cp.layout.auditLog())
	if err != nil {
		return nil, fmt.Errorf("reading the audit log (does Options say Audit?): %w", err)
	}
	defer file.Close()
	calls := map[Call]int{}
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			// The last line may be incomplete; its request has no response yet.
			return calls, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		call, err := parseCall(line)
		if err != nil {
			return nil, err
		}
		calls[call]++
	}
}

func parseCall(line []byte) (Call, error) {
	type user struct{ Username string }
	var e struct {
		Verb             string
		User             user
		ImpersonatedUser *user
		ObjectRef        struct{ Resource, Subresource, APIGroup, Namespace, Name string }
		Annotations      map[string]string
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return Call{}, fmt.Errorf("reading a line of the audit log: %w", err)
	}
	call := Call{
		User: e.User.Username, Verb: e.Verb, Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource,
		Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
		Denied: e.Annotations["authorization.k8s.io/decision"] == "forbid",
	}
	if e.ImpersonatedUser != nil {
		call.User = e.ImpersonatedUser.Username
	}
	if e.ObjectRef.Subresource != "" {
		call.Resource += "/" + e.ObjectRef.Subresource
	}
	return call, nil
}
