package kubecluster_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// storedPool is a NodePool with fields of a newer CRD: in the spec, in a list, and in the template.
const storedPool = `{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"default","resourceVersion":"7","labels":{"team":"web"}},
	"spec":{"weight":5,"newField":{"a":1},"disruption":{"budgets":[{"nodes":"10%","newLimit":3}],"newPolicy":"x","consolidateAfter":"30s"},
	"template":{"spec":{"newLimit":0,"requirements":[{"key":"team","operator":"Exists","newRank":2}]}}}}`

// An update of a NodePool keeps the fields that its Go type does not have, except in a list that it changes.
func TestUpdateKeepsUnknownFields(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*karpenter.NodePool)
		want   func(string) string
	}{
		"an annotation": {
			func(p *karpenter.NodePool) { p.Annotations = map[string]string{"a": "b"} },
			func(s string) string { return strings.Replace(s, `"labels"`, `"annotations":{"a":"b"},"labels"`, 1) },
		},
		"a removed field": {
			func(p *karpenter.NodePool) { p.Spec.Weight = nil },
			func(s string) string { return strings.Replace(s, `"weight":5,`, "", 1) },
		},
		"a changed list": {
			func(p *karpenter.NodePool) { p.Spec.Disruption.Budgets[0].Nodes = "20%" },
			func(s string) string { return strings.Replace(s, `"nodes":"10%","newLimit":3`, `"nodes":"20%"`, 1) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			var put map[string]any
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				text := []byte(storedPool)
				if r.Method == http.MethodPut {
					text, _ = io.ReadAll(r.Body)
					if err := json.Unmarshal(text, &put); err != nil || r.Header.Get("Content-Type") != "application/json" {
						t.Errorf("the body is %s %s: %v", r.Header.Get("Content-Type"), text, err)
					}
				}
				_, _ = w.Write(text)
			})
			pool, err := cluster.Get[*karpenter.NodePool](t.Context(), client, cluster.NodePools, cluster.Key{Name: "default"})
			if err != nil {
				t.Fatal(err)
			}
			c.change(pool)
			if _, err := client.Update(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
			var want map[string]any
			if err := json.Unmarshal([]byte(c.want(storedPool)), &want); err != nil {
				t.Fatal(err)
			}
			delete(put, "status") // The server ignores it.
			if diff := cmp.Diff(want, put); diff != "" {
				t.Errorf("the update is (-want +got):\n%s", diff)
			}
		})
	}
}

// An update of an older version of an object is sent as it is, and the server refuses it.
func TestUpdateOfOlderVersionConflicts(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, storedPool)
			return
		}
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), `"resourceVersion":"6"`) || strings.Contains(string(body), "newField") {
			t.Errorf("the update is %s", body)
		}
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`)
	})
	pool := &karpenter.NodePool{}
	pool.Name, pool.ResourceVersion = "default", "6"
	if _, err := client.Update(t.Context(), pool); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
}

// An update of a NodePool reads it first. An error of that request is classified like any other.
func TestUpdateClassifiesErrorOfRead(t *testing.T) {
	for reason, c := range map[metav1.StatusReason]struct {
		code int
		want fault.Kind
	}{
		metav1.StatusReasonNotFound:        {http.StatusNotFound, fault.Missing},
		metav1.StatusReasonForbidden:       {http.StatusForbidden, fault.Denied},
		metav1.StatusReasonTooManyRequests: {http.StatusTooManyRequests, fault.Throttled},
	} {
		t.Run(string(reason), func(t *testing.T) {
			client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.code)
				_ = json.NewEncoder(w).Encode(metav1.Status{
					TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
					Message: "sent by the server", Reason: reason, Code: int32(c.code),
				})
			})
			pool := &karpenter.NodePool{}
			pool.Name, pool.ResourceVersion = "default", "6"
			_, err := client.Update(t.Context(), pool)
			if !fault.Is(err, c.want) || !strings.Contains(err.Error(), "sent by the server") || strings.Contains(fault.FindHint(err), "CustomResourceDefinition") {
				t.Errorf("got %v with hint %q, want %v", err, fault.FindHint(err), c.want)
			}
		})
	}
}

// An update of a NodeClaim whose immutable spec has a field of a newer version is refused, and sent again with the field.
func TestUpdateOfNewerNodeClaim(t *testing.T) {
	const stored = `{"apiVersion":"karpenter.sh/v1","kind":"NodeClaim","metadata":{"name":"a","resourceVersion":"7","finalizers":["karpenter.sh/termination"]},"spec":{"newField":1,"requirements":[],"nodeClassRef":{"group":"g","kind":"k","name":"n"}}}`
	puts := 0
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		text := []byte(stored)
		if r.Method == http.MethodPut {
			puts++
			text, _ = io.ReadAll(r.Body)
			if !strings.Contains(string(text), `"newField":1`) {
				w.WriteHeader(http.StatusUnprocessableEntity)
				text = []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","message":"spec is immutable","code":422}`)
			}
		}
		_, _ = w.Write(text)
	})
	claim, err := cluster.Get[*karpenter.NodeClaim](t.Context(), client, cluster.NodeClaims, cluster.Key{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	claim.Finalizers = nil
	written, err := client.Update(t.Context(), claim)
	if err != nil || puts != 2 || len(written.GetFinalizers()) > 0 {
		t.Errorf("after %d updates: %v, %v", puts, written, err)
	}
}
