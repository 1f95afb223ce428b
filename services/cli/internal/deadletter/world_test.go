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

func ref(kind, text string) event.Ref {
	return event.Ref{Kind: kind, Digest: event.DigestOf([]byte(text)), Size: 1}
}

// said is a message of a body, said a minute ago by our cluster unless another is named.
func said(t *testing.T, body event.Body, of event.Cluster) queue.Message {
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

// cluster answers as the API server of a cluster whose outbox is in a state.
func cluster(outbox string, intents ...string) kube.Reader {
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

// TestTheFenceDecides: what the receiver would read is read, where the caller may, and
// decides by the receiver's own function.
func TestTheFenceDecides(t *testing.T) {
	batch, plan := ref("batches", "b"), ref("plans", "p")
	made := func(of event.Cluster, edit func(*event.PlanMade)) queue.Message {
		b := event.PlanMade{Outbox: "o-1", Seq: 7, Batch: batch, Plan: plan}
		edit(&b)
		return said(t, b, of)
	}
	as := func(*event.PlanMade) {}
	at := func(state string, seq int) string {
		text, _ := json.Marshal(map[string]any{"seq": seq, "state": state, "batch": batch, "plan": plan.Digest})
		return string(text)
	}
	launch := said(t, event.LaunchRequested{Intent: "i-7", IntentRef: ref("intents", "i"), Claims: 1}, ours)
	for _, test := range []struct {
		name, service string
		message       queue.Message
		read          kube.Reader
		verdict       deadletter.Disposition
		why           string
	}{
		{"a plan that is waited for", "lifecycle", made(ours, as), cluster(at("sent", 7)), deadletter.Handle, "the outbox waits for it"},
		{"a plan that passed already", "lifecycle", made(ours, as), cluster(at("done", 7)), deadletter.Handle, "waits"},
		{"a plan of an older batch", "lifecycle", made(ours, as), cluster(at("sent", 8)), deadletter.Noop, "the outbox is at 8"},
		{"a plan of another body", "lifecycle", made(ours, func(b *event.PlanMade) { b.Batch = ref("batches", "x") }), cluster(at("sent", 7)), deadletter.Noop, "another batch body"},
		{"a plan that another overtook", "lifecycle", made(ours, func(b *event.PlanMade) { b.Plan = ref("plans", "x") }), cluster(at("applying", 7)), deadletter.Noop, "another plan passed first"},
		{"a plan of an outbox that was deleted", "lifecycle", made(ours, func(b *event.PlanMade) { b.Outbox = "o-0" }), cluster(at("sent", 7)), deadletter.Noop, "another outbox"},
		{"no outbox", "lifecycle", made(ours, as), cluster(""), deadletter.Handle, "no longer waits for this plan"},
		{"the context is of another cluster", "lifecycle", made(event.Cluster{Name: "prod", UID: "other"}, as), cluster(at("sent", 8)), deadletter.Handle, "may be of another cluster"},
		{"a letter that tells no cluster's UID", "lifecycle", made(event.Cluster{Name: "prod"}, as), cluster(at("sent", 8)), deadletter.Handle, "may be of another cluster"},
		{"an outbox that was edited", "lifecycle", made(ours, as), cluster("{"), deadletter.Handle, "not checked against Kubernetes"},
		{"denied", "lifecycle", made(ours, as), func(context.Context, string) ([]byte, error) { return nil, errors.New("forbidden") }, deadletter.Handle, "not checked against Kubernetes: forbidden"},
		{"a launch that a claim waits for", "launcher", launch, cluster("", "i-6", "i-7"), deadletter.Handle, ""},
		{"a launch that no claim waits for", "launcher", launch, cluster("", "i-6"), deadletter.Stale, "no NodeClaim has the intent i-7"},
		{"nobody is asked", "launcher", launch, nil, deadletter.Handle, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := deadletter.Reader{Service: test.service, Cluster: event.Cluster{Name: "prod"}}
			if test.read != nil {
				r.World = func() (deadletter.ClusterState, error) {
					return deadletter.ReadClusterState(t.Context(), test.read, "joist")
				}
			}
			if p := r.Read(test.message, now).Predicted; p.Verdict != test.verdict || !strings.Contains(p.Why, test.why) {
				t.Errorf("%s because %q", p.Verdict, p.Why)
			}
		})
	}
}

// TestTheWorldIsAskedOnlyWhereItDecides: most letters have expired, and reading a large
// cluster for them would be for nothing.
func TestTheWorldIsAskedOnlyWhereItDecides(t *testing.T) {
	r := deadletter.Reader{Service: "launcher", Cluster: event.Cluster{Name: "prod"}, World: func() (deadletter.ClusterState, error) {
		t.Error("the cluster was read")
		return deadletter.ClusterState{}, nil
	}}
	r.Read(said(t, event.LaunchRequested{Intent: "i-7", IntentRef: ref("intents", "i"), Claims: 1}, ours), now.Add(time.Hour))
	r.Read(said(t, event.TerminateRequested{InstanceID: "i-0123456789abcdef0", ClaimUID: "u"}, ours), now)
	r.Read(queue.Message{Body: []byte("{")}, now)
}
