package kubecluster

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// If the rate limit of evictions and Events is exhausted, only these wait: a node can be
// tainted in the middle of many evictions.
func TestEvictionsDoNotDelayOtherCalls(t *testing.T) {
	var mu sync.Mutex
	served := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		served[r.Method+" "+r.URL.Path]++
		http.Error(w, "no", http.StatusTeapot)
	}))
	t.Cleanup(server.Close)
	client, err := New(&rest.Config{Host: server.URL}, "joist-test")
	if err != nil {
		t.Fatal(err)
	}
	never := flowcontrol.NewFakeNeverRateLimiter()
	client.evictionLimiter, client.eventLimiter = never, never
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
	key := cluster.KeyOf(pod)
	for _, err := range []error{
		client.Evict(t.Context(), key, ""),
		client.Report(t.Context(), cluster.Event{About: pod, Kind: cluster.Pods, Reason: "Evicted", Now: time.Now()}),
		client.DeletePod(t.Context(), key, "", 1),
		client.Delete(t.Context(), cluster.Nodes, cluster.Key{Name: "n"}, ""),
	} {
		if err == nil {
			t.Error("the eviction succeeded without a response")
		}
	}
	mu.Lock()
	defer mu.Unlock()
	want := map[string]int{"DELETE /api/v1/namespaces/default/pods/p": 1, "DELETE /api/v1/nodes/n": 1}
	if !maps.Equal(served, want) {
		t.Errorf("requests at the server: %v, want %v", served, want)
	}
}
