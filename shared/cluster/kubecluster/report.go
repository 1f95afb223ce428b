package kubecluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// eventKind is the kind of Kubernetes Events. It is not in cluster.Kinds because Joist
// never reads Events.
var eventKind = cluster.Kind{Version: "v1", Kind: "Event", Resource: "events", Namespaced: true}

// Report implements cluster.Client. It drops an event that this process reported less than
// its Dedupe ago.
func (c *Client) Report(ctx context.Context, event cluster.Event) error {
	if event.About == nil {
		return fault.F("reporting "+event.Reason, fault.Bug, "the event has no object")
	}
	id := eventID(event)
	if !c.recent.allowEvent(id, event.Now, event.Dedupe) {
		return nil
	}
	object := c.newEvent(event, id)
	what := call{verb: verbCreate, kind: eventKind, key: cluster.KeyOf(object)}
	err := c.sendRequest(ctx, what, object, nil)
	if fault.Is(err, fault.Conflict) {
		// The same Event exists from before a restart.
		return nil
	}
	return err
}

// eventID is a short hash of the event's identity.
func eventID(event cluster.Event) string {
	sum := sha256.Sum256([]byte(event.Identity()))
	return hex.EncodeToString(sum[:8])
}

func (c *Client) newEvent(event cluster.Event, id string) *corev1.Event {
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
		InvolvedObject: referenceTo(event),
		Type:           event.Type, Reason: event.Reason, Message: event.Message,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Source:              corev1.EventSource{Component: c.component},
		ReportingController: c.component,
	}
}

// maxRecentEvents is how many events are kept for deduplication, enough for 10,000 pending
// pods. Beyond it the oldest is dropped and may be reported again.
const maxRecentEvents = 32 << 10

// recentEvents keeps the events that may not be repeated yet, up to a limit.
type recentEvents struct {
	mu sync.Mutex
	// until maps an event's id to the time from which it may be reported again, in the order of the reports.
	until *simplelru.LRU[string, time.Time]
}

func newRecentEvents(limit int) *recentEvents {
	until, err := simplelru.NewLRU[string, time.Time](limit, nil)
	if err != nil {
		panic(err) // The limit is not positive.
	}
	return &recentEvents{until: until}
}

// allowEvent reports whether an event is not a repetition, and records it. It drops the oldest events that may be
// repeated.
func (m *recentEvents) allowEvent(id string, now time.Time, dedupe time.Duration) bool {
	if dedupe <= 0 {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if until, ok := m.until.Peek(id); ok && now.Before(until) {
		return false
	}
	for _, until, ok := m.until.GetOldest(); ok && !now.Before(until); _, until, ok = m.until.GetOldest() {
		m.until.RemoveOldest()
	}
	m.until.Add(id, now.Add(dedupe))
	return true
}
