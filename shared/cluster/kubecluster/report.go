package kubecluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// events is no kind of the port: they are written and never read.
var events = cluster.Kind{Version: "v1", Kind: "Event", Resource: "events", Namespaced: true}

// Report implements cluster.Client. An event equal to one that was said less
// than its Dedupe ago, by this process, is not said.
func (c *Client) Report(ctx context.Context, event cluster.Event) error {
	if event.About == nil {
		return fault.F("reporting "+event.Reason, fault.Bug, "the event is about nothing")
	}
	id := identify(event)
	if !c.said.admit(id, event.Now, event.Dedupe) {
		return nil
	}
	object := c.compose(event, id)
	what := call{verb: verbCreate, kind: events, key: cluster.KeyOf(object)}
	err := c.do(ctx, what, object, nil)
	if fault.Is(err, fault.Conflict) {
		// Said before a restart, at the same moment.
		return nil
	}
	return err
}

// identify names what the event says in few characters.
func identify(event cluster.Event) string {
	sum := sha256.Sum256([]byte(event.Identity()))
	return hex.EncodeToString(sum[:8])
}

func (c *Client) compose(event cluster.Event, id string) *corev1.Event {
	namespace := event.About.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	// Names of objects have at most 253 characters, and the suffix takes 34.
	name := event.About.GetName()
	name = strings.TrimRight(name[:min(len(name), 200)], ".-")
	now := metav1.NewTime(event.Now)
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      name + "." + id + "." + strconv.FormatInt(event.Now.UnixNano(), 16),
		},
		InvolvedObject: about(event),
		Type:           event.Type, Reason: event.Reason, Message: event.Message,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Source:              corev1.EventSource{Component: c.component},
		ReportingController: c.component,
	}
}

// remembered is how many events are remembered at once: those of 10,000 pods
// that wait, with room to spare. Beyond it, what was said longest ago is
// forgotten, and may be said again.
const remembered = 32 << 10

// memory remembers what was said, up to a limit.
type memory struct {
	mu    sync.Mutex
	until *lru.Cache
}

func newMemory(limit int) *memory { return &memory{until: lru.New(limit)} }

// admit reports whether an event may be said now, and remembers that it was.
func (m *memory) admit(id string, now time.Time, dedupe time.Duration) bool {
	if dedupe <= 0 {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if until, ok := m.until.Get(id); ok && now.Before(until.(time.Time)) {
		return false
	}
	m.until.Add(id, now.Add(dedupe))
	return true
}
