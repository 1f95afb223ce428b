package kubecluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/kubecluster"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// watched is one watch event of a pod, with its version.
type watched struct {
	version int
	what    watchEvent
}

type watchEvent struct {
	Type   string         `json:"type"`
	Object runtime.Object `json:"object"`
}

// apiServer lists and watches pods like the real one: it has the events since the expired
// version. It can be broken.
type apiServer struct {
	streams bool

	mu      sync.Mutex
	version int
	expired int
	pods    map[string]*corev1.Pod
	log     []watched
	news    chan struct{}
	// broken responds instead if it returns true. cut is closed to end watches, after the
	// event last.
	broken func(w http.ResponseWriter, r *http.Request) bool
	cut    chan struct{}
	last   *watchEvent
	asked  int
	// refused counts the watches that started at an expired version.
	refused int
}

func newAPIServer(streams bool) *apiServer {
	return &apiServer{streams: streams, version: 1, pods: map[string]*corev1.Pod{}, news: make(chan struct{}), cut: make(chan struct{})}
}

// put creates a pod, or changes the pod with that name and UID.
func (s *apiServer) put(name, uid, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what := "ADDED"
	if old := s.pods[name]; old != nil {
		what = "MODIFIED"
		if old.UID != types.UID(uid) {
			s.notifyWatches("DELETED", old.DeepCopy())
			what = "ADDED"
		}
	}
	p := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(uid)}}
	p.Spec.NodeName = node
	s.pods[name] = p
	s.notifyWatches(what, p)
}

func (s *apiServer) drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.pods[name].DeepCopy()
	delete(s.pods, name)
	s.notifyWatches("DELETED", old)
}

func (s *apiServer) notifyWatches(what string, p *corev1.Pod) {
	s.version++
	p.ResourceVersion = strconv.Itoa(s.version)
	s.log = append(s.log, watched{s.version, watchEvent{what, p.DeepCopy()}})
	close(s.news)
	s.news = make(chan struct{})
}

// end ends all watches, after an optional last event, and expires all versions so far.
func (s *apiServer) end(last *watchEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = last
	if last != nil {
		s.refused++
	}
	close(s.cut)
	s.cut = make(chan struct{})
}

func (s *apiServer) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expired, s.log = s.version, nil
}

func (s *apiServer) breaks(how func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = how
}

func (s *apiServer) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked++
	broken := s.broken
	s.mu.Unlock()
	if broken != nil && broken(w, r) {
		return
	}
	switch {
	case r.URL.Query().Get("watch") == "":
		s.list(w, r)
	case r.URL.Query().Get("sendInitialEvents") != "" && !s.streams:
		respondWith(apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil))(w, r)
	default:
		s.watch(w, r)
	}
}

var resourceExpired = apierrors.NewResourceExpired("too old resource version")

func (s *apiServer) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
	list.ResourceVersion = strconv.Itoa(s.version)
	names := slices.Sorted(maps.Keys(s.pods))
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	to := len(names)
	if limit, _ := strconv.Atoi(r.URL.Query().Get("limit")); limit > 0 && from+limit < to {
		to = from + limit
		list.Continue = strconv.Itoa(to)
	}
	for _, name := range names[from:to] {
		list.Items = append(list.Items, *s.pods[name])
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list)
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request) {
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	s.mu.Lock()
	first := r.URL.Query().Get("sendInitialEvents") == "true"
	if !first && from < s.expired {
		s.refused++
		s.mu.Unlock()
		respondWith(resourceExpired)(w, r)
		return
	}
	var events []watchEvent
	if first {
		for _, p := range s.pods {
			events = append(events, watchEvent{"ADDED", p.DeepCopy()})
		}
		mark := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}}
		mark.ResourceVersion, mark.Annotations = strconv.Itoa(s.version), map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		events, from = append(events, watchEvent{"BOOKMARK", mark}), s.version
	}
	cut := s.cut
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json;stream=watch")
	w.WriteHeader(http.StatusOK)
	for {
		s.mu.Lock()
		for _, one := range s.log {
			if one.version > from {
				events, from = append(events, one.what), one.version
			}
		}
		news := s.news
		s.mu.Unlock()
		for _, event := range events {
			_ = json.NewEncoder(w).Encode(event)
		}
		events = nil
		_ = http.NewResponseController(w).Flush()
		select {
		case <-news:
		case <-r.Context().Done():
			return
		case <-cut:
			if s.last != nil {
				_ = json.NewEncoder(w).Encode(s.last)
			}
			return
		}
	}
}

// pipes is an in-memory network, so that tests can use fake time.
type pipes struct {
	open chan net.Conn
	done chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.open:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.done)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.open <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// follower maintains its pods by the cache's changes only.
type follower struct {
	cache *kubecluster.Cache
	pods  map[string]string
}

func (f *follower) look() {
	changed := f.cache.TakeChanges(cluster.Pods)
	keys := changed.Keys
	if changed.All {
		for _, o := range f.cache.List(cluster.Pods) {
			keys = append(keys, cluster.KeyOf(o))
		}
	}
	for _, key := range keys {
		delete(f.pods, key.Name)
		if o, there := f.cache.Get(cluster.Pods, key); there {
			f.pods[key.Name] = string(o.GetUID()) + " on " + o.(*corev1.Pod).Spec.NodeName
		}
	}
}

// After any error response to a watch, and after a minute without responses: no change in
// between is lost, known objects stay until newer ones arrive, and requests are not sent
// in a tight loop.
func TestWatchesRecover(t *testing.T) {
	// One of client-go's error handlers shares a clock between tests.
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
	during := func(broken http.HandlerFunc) func(s *apiServer) {
		return func(s *apiServer) {
			s.breaks(func(w http.ResponseWriter, r *http.Request) bool { broken(w, r); return true })
			s.end(nil)
		}
	}
	busy := respondWith(apierrors.NewTooManyRequests("slow down", 1))
	for _, c := range []struct {
		name   string
		breaks func(s *apiServer)
		// expires is set if the server expires the versions in between.
		expires bool
	}{
		{"410 during a watch", func(s *apiServer) {
			status := resourceExpired.ErrStatus
			status.Kind, status.APIVersion = "Status", "v1"
			s.end(&watchEvent{"ERROR", &status})
		}, true},
		{"410 at the start of a watch", func(s *apiServer) {
			s.breaks(func(w http.ResponseWriter, r *http.Request) bool { s.breaks(nil); busy(w, r); return true })
			s.end(nil)
		}, true},
		{"410 after a minute of 429", during(busy), true},
		{"watch ends", func(s *apiServer) { s.end(nil) }, false},
		{"409", during(respondWith(apierrors.NewConflict(podName, "p", errors.New("changed")))), false},
		{"429 with Retry-After", during(busy), false},
		{"500", during(respondWith(apierrors.NewInternalError(errors.New("etcd")))), false},
		{"a proxy's 502", during(plain(http.StatusBadGateway, "bad gateway")), true},
		{"401 while a token is renewed", during(respondWith(apierrors.NewUnauthorized("who"))), true},
		{"no responses", during(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-time.After(time.Minute):
			}
			panic(http.ErrAbortHandler)
		}), true},
		{"connections break", during(hangUp), true},
	} {
		for _, streams := range []bool{true, false} {
			for _, trimmed := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, lists streamed %t, objects trimmed %t", c.name, streams, trimmed), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						server := newAPIServer(streams)
						comeBack(t, server, trimmed, c.breaks, c.expires)
						if strings.HasPrefix(c.name, "410") && server.refused == 0 {
							t.Error("no watch got a 410 response")
						}
					})
				})
			}
		}
	}
}

func comeBack(t *testing.T, server *apiServer, trimmed bool, breaks func(*apiServer), expires bool) {
	for _, name := range []string{"a", "b", "c"} {
		server.put(name, "1", "")
	}
	cache := watching(t, server, trimmed)
	f := &follower{cache: cache, pods: map[string]string{}}
	until := func(limit time.Duration, want map[string]string) {
		t.Helper()
		for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			f.look()
			if maps.Equal(want, f.pods) {
				return
			}
		}
		t.Errorf("pods in the cache after %s (-want +got):\n%s", limit, cmp.Diff(want, f.pods))
	}
	until(5*time.Second, map[string]string{"a": "1 on ", "b": "1 on ", "c": "1 on "})
	if !cache.Synced() {
		t.Fatal("a complete cache is not synced")
	}

	// client-go restarts a watch that ends within its first second without an event by
	// listing, not by resuming.
	time.Sleep(2 * time.Second)
	breaks(server)
	synctest.Wait()
	asked := server.requests()
	server.put("a", "1", "n")
	server.drop("b")
	server.put("c", "2", "")
	server.put("d", "1", "")
	// Active watches have already received the changes.
	synctest.Wait()
	if expires {
		server.expire()
	}
	for range 60 {
		time.Sleep(time.Second)
		f.look()
		if !cache.Synced() || f.pods["a"] == "" || f.pods["c"] == "" {
			t.Fatalf("during the outage: pods %v, synced %t", f.pods, cache.Synced())
		}
	}
	// An overloaded server must not get many requests.
	if asked = server.requests() - asked; asked > 75 {
		t.Errorf("%d requests in a minute, want at most 75", asked)
	}
	server.breaks(nil)
	until(time.Minute, map[string]string{"a": "1 on n", "c": "2 on ", "d": "1 on "})
	server.put("e", "1", "")
	until(time.Second, map[string]string{"a": "1 on n", "c": "2 on ", "d": "1 on ", "e": "1 on "})
}

// watching runs a cache of pods with the in-memory server. If trimmed is true, the cache
// trims pods as the watcher's does.
func watching(t *testing.T, server *apiServer, trimmed bool) *kubecluster.Cache {
	t.Helper()
	network := &pipes{open: make(chan net.Conn), done: make(chan struct{})}
	served := &http.Server{Handler: server, ReadHeaderTimeout: time.Minute}
	go func() { _ = served.Serve(network) }()
	client, err := kubecluster.New(&rest.Config{Host: "http://cluster", Dial: network.dial}, "joist-test")
	if err != nil {
		t.Fatal(err)
	}
	options := kubecluster.CacheOptions{Kinds: []cluster.Kind{cluster.Pods}}
	if trimmed {
		options.Trim = podspec.Trims()
	}
	cache, err := client.NewCache(options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		cache.Run(ctx)
		close(ended)
	}()
	t.Cleanup(func() {
		stop()
		_ = served.Close()
		<-ended
	})
	return cache
}
