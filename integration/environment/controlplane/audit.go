package controlplane

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// auditPolicy has every request written down, without bodies. Who is impersonated is
// not known yet when the server decides whether it writes.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// A Call is what somebody asked of the API server.
type Call struct {
	// User is who asked: who was impersonated, if anybody was.
	User string
	Verb string
	// Group and Resource are of what was asked for; a subresource is part of the
	// latter, as in pods/eviction. Both are empty for paths that are no resources.
	Group, Resource string
	Namespace, Name string
	// Denied says that the user has no right to it.
	Denied bool
}

// Calls are all requests so far, each once. It takes Options.Audit.
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
			// The last line may be half written; its request has no answer yet.
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
