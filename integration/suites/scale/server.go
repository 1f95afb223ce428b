package scale

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// Server lists and watches a cluster of a size. It also accepts the status of NodePools and
// NodeClaims, so that a service that writes it finds nothing to write afterwards; it serves no other request.
type Server struct {
	Size Size
	// Restarts and Heartbeats are the numbers of status changes of pods and nodes per
	// second, and Turnover the number of replaced pods per second.
	Restarts, Heartbeats, Turnover int

	words   *words
	kinds   map[string]cluster.Kind
	mu      sync.Mutex
	version int
	// updates are the updated NodePools and NodeClaims, for the watches.
	updates map[cluster.Kind]chan cluster.Object
}

// Start serves until the context ends.
func (s *Server) Start(ctx context.Context) (url string, err error) {
	if s.words, err = newWords(); err != nil {
		return "", err
	}
	s.kinds, s.version, s.updates = map[string]cluster.Kind{}, 1<<24, map[cluster.Kind]chan cluster.Object{
		cluster.NodePools: make(chan cluster.Object, 16), cluster.NodeClaims: make(chan cluster.Object, 1024),
	}
	for _, kind := range cluster.Kinds {
		s.kinds[kind.Resource] = kind
	}
	server := httptest.NewServer(http.HandlerFunc(s.answer))
	context.AfterFunc(ctx, func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL, nil
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPut {
		s.updateStatus(w, r)
		return
	}
	kind, known := s.kinds[path.Base(r.URL.Path)]
	if !known || r.Method != http.MethodGet {
		http.NotFound(w, r)
		return
	}
	if r.URL.Query().Get("watch") != "" {
		s.watch(w, r, kind)
		return
	}
	s.list(w, r, kind)
}

// updateStatus accepts an update of a status, and sends the object to the watch.
func (s *Server) updateStatus(w http.ResponseWriter, r *http.Request) {
	kind := s.kinds[path.Base(path.Dir(path.Dir(r.URL.Path)))]
	if s.updates[kind] == nil {
		http.NotFound(w, r)
		return
	}
	object := kind.New()
	if err := json.NewDecoder(r.Body).Decode(object); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	object.SetResourceVersion(s.next())
	w.Header().Set("Content-Type", s.words.media(kind))
	_ = s.words.encoder(kind).Encode(object, w)
	s.updates[kind] <- object
}

// list responds page by page.
func (s *Server) list(w http.ResponseWriter, r *http.Request, kind cluster.Kind) {
	count, shape := s.Size.Objects(kind)
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	to := count
	if limit, err := strconv.Atoi(r.URL.Query().Get("limit")); err == nil && limit > 0 {
		to = min(to, from+limit)
	}
	var items []runtime.Object
	for i := from; i < to; i++ {
		items = append(items, shape(i))
	}
	list, err := s.words.list(kind, items)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	about, _ := meta.ListAccessor(list)
	about.SetResourceVersion(s.next())
	if to < count {
		about.SetContinue(strconv.Itoa(to))
	}
	w.Header().Set("Content-Type", s.words.media(kind))
	_ = s.words.encoder(kind).Encode(list, w)
}

// watch streams the list if requested, and then the changes.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, kind cluster.Kind) {
	stream := s.words.stream(w, kind)
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		count, shape := s.Size.Objects(kind)
		for i := range count {
			if stream.send("ADDED", shape(i)) != nil {
				return
			}
		}
		mark := kind.New()
		mark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		mark.SetResourceVersion(s.next())
		if stream.send("BOOKMARK", mark) != nil {
			return
		}
	}
	stream.flush()
	s.live(r.Context(), stream, kind)
}

// stride distributes changes over the cluster.
const stride = 7919

// live makes continuous changes: of statuses, and of pods that are replaced.
func (s *Server) live(ctx context.Context, stream *stream, kind cluster.Kind) {
	each := map[cluster.Kind]int{cluster.Pods: s.Restarts + s.Turnover, cluster.Nodes: s.Heartbeats}[kind]
	if each == 0 {
		s.sendUpdates(ctx, stream, kind)
		return
	}
	tick := time.NewTicker(time.Second / time.Duration(each))
	defer tick.Stop()
	count, shape := s.Size.Objects(kind)
	for restarts := int32(1); ; restarts++ {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			object := shape(int(restarts) * stride % count)
			object.SetResourceVersion(s.next())
			switch o := object.(type) {
			case *corev1.Pod:
				o.Status = status(restarts)
				if int(restarts)%each < s.Turnover {
					if stream.send("DELETED", o) != nil {
						return
					}
					o.UID, o.CreationTimestamp = types.UID(s.next()), metav1.NewTime(now)
					if stream.send("ADDED", o) != nil {
						return
					}
					continue
				}
			case *corev1.Node:
				o.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(now)
			}
			if stream.send("MODIFIED", object) != nil {
				return
			}
			stream.flush()
		}
	}
}

// sendUpdates sends the updates of a kind until the context ends.
func (s *Server) sendUpdates(ctx context.Context, stream *stream, kind cluster.Kind) {
	for {
		select {
		case <-ctx.Done():
			return
		case object := <-s.updates[kind]:
			if stream.send("MODIFIED", object) != nil {
				return
			}
			stream.flush()
		}
	}
}

func (s *Server) next() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	return strconv.Itoa(s.version)
}
