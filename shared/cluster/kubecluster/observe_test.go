package kubecluster

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// measured collects what an Observer receives.
type measured struct {
	mu                              sync.Mutex
	requests, durations, waits, all []string
}

func (m *measured) add(to *[]string, values ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*to = append(*to, strings.Join(values, " "))
}

func (m *measured) CountRequest(code, method string) { m.add(&m.requests, method, code) }
func (m *measured) RecordDuration(verb, group, version, resource, subresource string, _ time.Duration) {
	m.add(&m.durations, verb, group+"/"+version, resource, subresource)
}
func (m *measured) RecordLimiterWait(method, host string, _ time.Duration) {
	m.add(&m.waits, method, host)
}
func (m *measured) CountWatch(resource, result string) { m.add(&m.all, resource, result) }

// The observer gets each call by Kubernetes' verb and resource, without the names of objects.
func TestObserveCalls(t *testing.T) {
	var m measured
	ObserveCalls(&m)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(r.URL.Path, "absent") {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(`{}`))
	}))
	defer server.Close()
	client, err := New(&rest.Config{Host: server.URL}, "joist-test")
	if err != nil {
		t.Fatal(err)
	}
	ctx, pod := t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "shop", ResourceVersion: "1"}}
	_, _ = client.Get(ctx, cluster.NodePools, cluster.Key{Name: "absent"})
	_, _ = client.List(ctx, cluster.Pods, "")
	_, _ = client.List(ctx, cluster.ConfigMaps, "joist")
	_, _ = client.UpdateStatus(ctx, pod)
	_ = client.Evict(ctx, cluster.KeyOf(pod), "")
	_ = client.Delete(ctx, cluster.NodeClaims, cluster.Key{Name: "default-1"}, "")
	host := strings.TrimPrefix(server.URL, "http://")
	for _, c := range []struct {
		what      string
		got, want []string
	}{
		{"requests", m.requests, []string{"GET 404", "GET 200", "GET 200", "PUT 200", "POST 200", "DELETE 200"}},
		{"durations", m.durations, []string{
			"GET karpenter.sh/v1 nodepools ", "LIST /v1 pods ", "LIST /v1 configmaps ", "UPDATE /v1 pods status", "CREATE /v1 pods eviction", "DELETE karpenter.sh/v1 nodeclaims ",
		}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s: %s", c.what, diff)
		}
	}
	if !slices.Contains(m.waits, "POST "+host) {
		t.Errorf("waits in the rate limiter: %q", m.waits)
	}

	cache, err := client.NewCache(CacheOptions{Kinds: []cluster.Kind{cluster.NodePools}})
	if err != nil {
		t.Fatal(err)
	}
	source := cache.recordErrors(cluster.NodePools, client.newListWatch(cluster.NodePools, "", cache.stores[cluster.NodePools]))
	if w, err := source.WatchFuncWithContext(ctx, metav1.ListOptions{}); err != nil {
		t.Error(err)
	} else {
		w.Stop()
	}
	server.Close()
	if _, err := source.WatchFuncWithContext(context.Background(), metav1.ListOptions{}); err == nil {
		t.Error("a watch without a server started")
	}
	if diff := cmp.Diff([]string{"nodepools ok", "nodepools retry"}, m.all); diff != "" {
		t.Error(diff)
	}
}

func TestParseResource(t *testing.T) {
	for path, want := range map[string]resourcePath{
		"/api/v1/namespaces":                                         {"", "v1", "namespaces", "", false},
		"/api/v1/namespaces/{name}":                                  {"", "v1", "namespaces", "", true},
		"/api/v1/namespaces/{namespace}/pods/{name}/eviction":        {"", "v1", "pods", "eviction", true},
		"/apis/karpenter.sh/v1/nodeclaims/{name}/status":             {"karpenter.sh", "v1", "nodeclaims", "status", true},
		"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases": {"coordination.k8s.io", "v1", "leases", "", false},
		"/version": {}, "/api/v1": {}, "": {},
	} {
		if got, ok := parseResource(path); got != want && (ok || want != resourcePath{}) || ok != (want != resourcePath{}) {
			t.Errorf("%s: %+v, %t", path, got, ok)
		}
	}
}
