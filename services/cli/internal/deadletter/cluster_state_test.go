package deadletter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/deadletter"
	"github.com/joist-autoscaler/joist/services/cli/internal/kube"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

func newRef(kind, text string) event.Ref {
	return event.Ref{Kind: kind, Digest: event.DigestOf([]byte(text)), Size: 1}
}

// newMessage returns a message with a body, sent a minute ago by a cluster.
func newMessage(t *testing.T, body event.Body, of event.Cluster) queue.Message {
	t.Helper()
	spec, err := body.EventType().Spec()
	if err != nil {
		t.Fatal(err)
	}
	e, err := event.Maker{Service: spec.Producers[0], Cluster: of}.New(now.Add(-time.Minute), body, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return queue.Message{ID: "m-1", Body: text, Sent: now}
}

// newClusterReader simulates the API server of a cluster with an outbox and NodeClaims.
func newClusterReader(outbox string, intents ...string) kube.Reader {
	var claims []string
	for _, intent := range intents {
		claims = append(claims, fmt.Sprintf(`{"metadata":{"name":"c","annotations":{"joist.sh/intent":%q}}}`, intent))
	}
	text, _ := json.Marshal(outbox)
	paths := map[string]string{
		"/api/v1/namespaces/kube-system":                   `{"metadata":{"uid":"uid"}}`,
		"/api/v1/namespaces/joist/configmaps/joist-outbox": `{"metadata":{"uid":"o-1"},"data":{"outbox.json":` + string(text) + `}}`,
		"/apis/karpenter.sh/v1/nodeclaims":                 `{"items":[` + strings.Join(claims, ",") + `]}`,
	}
	if outbox == "" {
		delete(paths, "/api/v1/namespaces/joist/configmaps/joist-outbox")
	}
	return func(_ context.Context, path string) ([]byte, error) {
		if text, ok := paths[path]; ok {
			return []byte(text), nil
		}
		return nil, fault.F("reading "+path, fault.Missing, "not found")
	}
}

// TestReadUsesClusterState: a prediction uses the state of the cluster that the caller may
// read.
func TestReadUsesClusterState(t *testing.T) {
	batch, plan := newRef("batches", "b"), newRef("plans", "p")
	made := func(of event.Cluster, edit func(*event.PlanMade)) queue.Message {
		b := event.PlanMade{Outbox: "o-1", Seq: 7, Batch: batch, Plan: plan}
		edit(&b)
		return newMessage(t, b, of)
	}
	as := func(*event.PlanMade) {}
	at := func(state string, seq int) string {
		text, _ := json.Marshal(map[string]any{"seq": seq, "state": state, "batch": batch, "plan": plan.Digest})
		return string(text)
	}
	launch := newMessage(t, event.LaunchRequested{Intent: "i-7", IntentRef: newRef("intents", "i"), Claims: 1}, ownCluster)
	for _, test := range []struct {
		name, service string
		message       queue.Message
		read          kube.Reader
		disposition   deadletter.Disposition
		why           string
	}{
		{"the outbox waits for the plan", "lifecycle", made(ownCluster, as), newClusterReader(at("sent", 7)), deadletter.Handle, "the outbox waits for it"},
		{"an executed plan", "lifecycle", made(ownCluster, as), newClusterReader(at("done", 7)), deadletter.Handle, "waits"},
		{"a plan of an older batch", "lifecycle", made(ownCluster, as), newClusterReader(at("sent", 8)), deadletter.Noop, "the outbox is at batch 8"},
		{"a plan of another body", "lifecycle", made(ownCluster, func(b *event.PlanMade) { b.Batch = newRef("batches", "x") }), newClusterReader(at("sent", 7)), deadletter.Noop, "another batch body"},
		{"another plan of the same batch was executed", "lifecycle", made(ownCluster, func(b *event.PlanMade) { b.Plan = newRef("plans", "x") }), newClusterReader(at("applying", 7)), deadletter.Noop, "another plan was admitted first"},
		{"a plan of a deleted outbox", "lifecycle", made(ownCluster, func(b *event.PlanMade) { b.Outbox = "o-0" }), newClusterReader(at("sent", 7)), deadletter.Noop, "another outbox"},
		{"no outbox", "lifecycle", made(ownCluster, as), newClusterReader(""), deadletter.Handle, "no longer waits for this plan"},
		{"the context is of another cluster", "lifecycle", made(event.Cluster{Name: "prod", UID: "other"}, as), newClusterReader(at("sent", 8)), deadletter.Handle, "may be of another cluster"},
		{"a message without a cluster UID", "lifecycle", made(event.Cluster{Name: "prod"}, as), newClusterReader(at("sent", 8)), deadletter.Handle, "may be of another cluster"},
		{"an invalid outbox", "lifecycle", made(ownCluster, as), newClusterReader("{"), deadletter.Handle, "not checked against Kubernetes"},
		{"denied", "lifecycle", made(ownCluster, as), func(context.Context, string) ([]byte, error) { return nil, errors.New("forbidden") }, deadletter.Handle, "not checked against Kubernetes: forbidden"},
		{"a NodeClaim waits for the launch", "launcher", launch, newClusterReader("", "i-6", "i-7"), deadletter.Handle, ""},
		{"no NodeClaim waits for the launch", "launcher", launch, newClusterReader("", "i-6"), deadletter.Stale, "no NodeClaim has the intent i-7"},
		{"without Kubernetes", "launcher", launch, nil, deadletter.Handle, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := deadletter.Reader{Service: test.service, Cluster: event.Cluster{Name: "prod"}}
			if test.read != nil {
				r.ReadCluster = func() (deadletter.ClusterState, error) {
					return deadletter.ReadClusterState(t.Context(), test.read, "joist")
				}
			}
			if p := r.Read(test.message, now).Predicted; p.Disposition != test.disposition || !strings.Contains(p.Reason, test.why) {
				t.Errorf("disposition %s (%q)", p.Disposition, p.Reason)
			}
		})
	}
}

// TestClusterIsReadOnlyWhenNeeded: most messages have expired, and their predictions do not
// depend on the cluster.
func TestClusterIsReadOnlyWhenNeeded(t *testing.T) {
	r := deadletter.Reader{Service: "launcher", Cluster: event.Cluster{Name: "prod"}, ReadCluster: func() (deadletter.ClusterState, error) {
		t.Error("the cluster was read")
		return deadletter.ClusterState{}, nil
	}}
	r.Read(newMessage(t, event.LaunchRequested{Intent: "i-7", IntentRef: newRef("intents", "i"), Claims: 1}, ownCluster), now.Add(time.Hour))
	r.Read(newMessage(t, event.TerminateRequested{InstanceID: "i-0123456789abcdef0", ClaimUID: "u"}, ownCluster), now)
	r.Read(queue.Message{Body: []byte("{")}, now)
}
