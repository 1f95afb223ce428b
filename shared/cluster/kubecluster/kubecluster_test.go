package kubecluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/kubecluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

var (
	pod     = cluster.Key{Namespace: "default", Name: "p"}
	podName = schema.GroupResource{Resource: "pods"}
)

// serve returns a client of a server with the handler for all requests.
func serve(t *testing.T, handler http.HandlerFunc) *kubecluster.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client, err := kubecluster.New(&rest.Config{Host: server.URL}, "joist-test")
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// respondWith returns a handler that responds with an error in the API server's encoding.
func respondWith(err *apierrors.StatusError) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if details := err.ErrStatus.Details; details != nil && details.RetryAfterSeconds > 0 {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(int(err.ErrStatus.Code))
		status := err.ErrStatus
		status.Kind, status.APIVersion = "Status", "v1"
		_ = json.NewEncoder(w).Encode(status)
	}
}

func plain(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, code) }
}

func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// Each error response, and a missing response, has a fault kind, for reads and for
// writes.
func TestErrors(t *testing.T) {
	forbidden := apierrors.NewForbidden(podName, "p", errors.New(`User "x" cannot get resource "pods" in API group "" in the namespace "default"`))
	budgets := apierrors.NewInternalError(errors.New("this pod has more than one PodDisruptionBudget, which the eviction subresource does not support"))
	tests := []struct {
		name        string
		answer      http.HandlerFunc
		read, write fault.Kind
		hint        string
	}{
		{"missing", respondWith(apierrors.NewNotFound(podName, "p")), fault.Missing, fault.Missing, ""},
		{"conflict", respondWith(apierrors.NewConflict(podName, "p", errors.New("changed"))), fault.Conflict, fault.Conflict, ""},
		{"taken", respondWith(apierrors.NewAlreadyExists(podName, "p")), fault.Conflict, fault.Conflict, ""},
		{"forbidden", respondWith(forbidden), fault.Denied, fault.Denied, `on the resource "pods`},
		{"forbidden by admission", respondWith(apierrors.NewForbidden(podName, "p", errors.New("exceeded quota"))), fault.Denied, fault.Denied, ""},
		{"unauthorized", respondWith(apierrors.NewUnauthorized("who")), fault.Denied, fault.Denied, "credentials"},
		{"too many requests", respondWith(apierrors.NewTooManyRequests("slow down", 5)), fault.Throttled, fault.Throttled, ""},
		{"invalid", respondWith(apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil)), fault.Invalid, fault.Invalid, ""},
		{"bad request", respondWith(apierrors.NewBadRequest("what")), fault.Invalid, fault.Invalid, ""},
		{"two budgets", respondWith(budgets), fault.Invalid, fault.Invalid, "selectors"},
		{"timeout", respondWith(apierrors.NewTimeoutError("late", 0)), fault.Retry, fault.Unknown, ""},
		{"internal error", respondWith(apierrors.NewInternalError(errors.New("etcd"))), fault.Retry, fault.Unknown, ""},
		{"unavailable", respondWith(apierrors.NewServiceUnavailable("later")), fault.Retry, fault.Unknown, ""},
		{"no such path", plain(http.StatusNotFound, "404 page not found"), fault.Retry, fault.Retry, "install"},
		{"bad gateway", plain(http.StatusBadGateway, "bad gateway"), fault.Retry, fault.Unknown, ""},
		{"no response", hangUp, fault.Retry, fault.Unknown, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var calls atomic.Int32
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				test.answer(w, r)
			})
			_, err := client.Get(t.Context(), cluster.Pods, pod)
			check(t, "reading", err, test.read, test.hint)
			err = client.Evict(t.Context(), pod, "")
			check(t, "writing", err, test.write, test.hint)
			if calls := calls.Load(); calls != 2 {
				t.Errorf("two calls sent %d requests", calls)
			}
		})
	}
}

func check(t *testing.T, what string, err error, kind fault.Kind, hint string) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf("%s: error kind %q, want %q: %v", what, fault.KindOf(err), kind, err)
	}
	if got := fault.FindHint(err); !strings.Contains(got, hint) || hint == "" && got != "" {
		t.Errorf("%s: hint %q, want %q", what, got, hint)
	}
}

func TestDeniedHintNamesPermission(t *testing.T) {
	client := serve(t, respondWith(apierrors.NewForbidden(podName, "p", errors.New(`User "x" cannot create resource "pods/eviction"`))))
	err := client.Evict(t.Context(), pod, "")
	if got, want := fault.FindHint(err), `grant the verb "create" on the resource "pods/eviction" of the API group "" to this service account`; got != want {
		t.Errorf("hint = %q, want %q", got, want)
	}
}

func TestUnreachableServer(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	client, err := kubecluster.New(&rest.Config{Host: server.URL}, "joist-test")
	if err != nil {
		t.Fatal(err)
	}
	// A connection that was never established had no effect, so a write can be retried.
	check(t, "writing", client.Evict(t.Context(), pod, ""), fault.Retry, "can be reached")
}

func TestWriteCancelledInFlight(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	})
	err := client.Evict(ctx, pod, "")
	if !fault.Is(err, fault.Unknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled write: error kind %q: %v", fault.KindOf(err), err)
	}
}

// Paths, methods and bodies are the API's.
func TestRequests(t *testing.T) {
	claim := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", ResourceVersion: "5"}}
	fresh := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	tests := []struct {
		name string
		do   func(context.Context, *kubecluster.Client) error
		want string
		body string
	}{
		{"list", func(ctx context.Context, c *kubecluster.Client) error {
			_, err := c.List(ctx, cluster.DisruptionBudgets, "")
			return err
		}, "GET /apis/policy/v1/poddisruptionbudgets", ""},
		{"list of a namespace", func(ctx context.Context, c *kubecluster.Client) error {
			_, err := c.List(ctx, cluster.Pods, "a")
			return err
		}, "GET /api/v1/namespaces/a/pods", ""},
		{"create", func(ctx context.Context, c *kubecluster.Client) error {
			_, err := c.Create(ctx, fresh)
			return err
		}, "POST /apis/karpenter.sh/v1/nodeclaims", `"kind":"NodeClaim"`},
		{"update", func(ctx context.Context, c *kubecluster.Client) error {
			_, err := c.Update(ctx, claim)
			return err
		}, "PUT /apis/karpenter.sh/v1/nodeclaims/c", `"resourceVersion":"5"`},
		{"status", func(ctx context.Context, c *kubecluster.Client) error {
			_, err := c.UpdateStatus(ctx, claim)
			return err
		}, "PUT /apis/karpenter.sh/v1/nodeclaims/c/status", `"resourceVersion":"5"`},
		{"delete", func(ctx context.Context, c *kubecluster.Client) error {
			return c.Delete(ctx, cluster.NodeClaims, cluster.Key{Name: "c"}, "u-1")
		}, "DELETE /apis/karpenter.sh/v1/nodeclaims/c", `"preconditions":{"uid":"u-1"}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got, body string
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				text, _ := io.ReadAll(r.Body)
				got, body = r.Method+" "+r.URL.Path, string(text)
				respondWith(apierrors.NewBadRequest("enough"))(w, r)
			})
			check(t, "the call", test.do(t.Context(), client), fault.Invalid, "")
			if got != test.want || !strings.Contains(body, test.body) {
				t.Errorf("request %s with body %s, want %s with %s", got, body, test.want, test.body)
			}
		})
	}
}

// Requests that the port forbids never reach the server.
func TestInvalidCallsAreNotSent(t *testing.T) {
	client := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("an invalid request was sent: %s %s", r.Method, r.URL)
	})
	check(t, "delete without a name", client.Delete(t.Context(), cluster.Nodes, cluster.Key{}, ""), fault.Invalid, "")
	_, err := client.Get(t.Context(), cluster.Nodes, cluster.Key{})
	check(t, "get without a name", err, fault.Invalid, "")
	_, err = client.Get(t.Context(), cluster.Kind{Kind: "Secret", Resource: "secrets", Version: "v1"}, pod)
	check(t, "get of an unknown kind", err, fault.Bug, "")
	_, err = client.Create(t.Context(), &policyv1.Eviction{})
	check(t, "create of an unknown kind", err, fault.Bug, "")
	unread := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c", UID: "u"}}
	check(t, "delete of an object without UID", client.DeleteAsRead(t.Context(), cluster.ConfigMaps, unread), fault.Invalid, "read the object before you delete it")
}

func TestRepeatedEventsAreDropped(t *testing.T) {
	names := map[string]bool{}
	sent := 0
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		sent++
		text, _ := io.ReadAll(r.Body)
		names[string(text)] = true
		respondWith(apierrors.NewAlreadyExists(schema.GroupResource{Resource: "events"}, "e"))(w, r)
	})
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	say := func(message, key string, at time.Duration) {
		t.Helper()
		event := cluster.Event{
			About: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, Kind: cluster.Nodes,
			Type: "Normal", Reason: "R", Message: message, Key: key, Dedupe: time.Minute, Now: now.Add(at),
		}
		if err := client.Report(t.Context(), event); err != nil {
			t.Fatal(err)
		}
	}
	say("x", "", 0)
	say("x", "", 59*time.Second)
	say("y", "", 59*time.Second)
	say("x", "", 60*time.Second)
	say("z", "k", 60*time.Second)
	say("another text", "k", 119*time.Second)
	say("another text", "k", 120*time.Second)
	if sent != 5 || len(names) != 5 {
		t.Errorf("%d Events were sent, %d of them different, want 5", sent, len(names))
	}
}

// TestConfigNamesTheVersion: the API server gets the user agent in every request.
func TestConfigNamesTheVersion(t *testing.T) {
	const agent = "joist-test/v0.1.0"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.UserAgent() != agent {
			t.Errorf("the user agent is %q, want %q", r.UserAgent(), agent)
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "config")
	text := `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"` + server.URL + `"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := kubecluster.Config(file, agent)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubecluster.New(config, "joist-test")
	if err != nil {
		t.Fatal(err)
	}
	if err := client.DeletePod(t.Context(), pod, "", 1); err == nil {
		t.Error("the server answered")
	}
}

func TestConfigErrorsHaveHints(t *testing.T) {
	_, err := kubecluster.Config(filepath.Join(t.TempDir(), "absent"), "")
	check(t, "reading a missing kubeconfig", err, fault.Denied, "KUBECONFIG")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err = kubecluster.Config("", "")
	check(t, "reading a service account outside of a pod", err, fault.Denied, "KUBECONFIG")
}
