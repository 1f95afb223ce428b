// Package events publishes Kubernetes Events: one value for each reason, with its type and its
// minimum interval, and a Publisher for the Events that plans and disruption reports cause. The
// reasons are Karpenter's.
//
// The invariants:
//   - An Event is repeated for the same object only after its interval. A message with other numbers
//     is a repetition unless the reason is Exact.
//   - Only few Events of a plan are published at once, regardless of the number of pods; all of them
//     are published in the end. An Event is a write, and 10,000 of them would delay the nodes that the
//     pods wait for.
package events

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/cluster"
)

// RepeatAfter is the default interval after which an Event may be repeated.
const RepeatAfter = 2 * time.Minute

// maxMessageBytes is the limit of Kubernetes for an Event's message.
const maxMessageBytes = 1024

// truncateMessage cuts a message that is too long, and marks the end with three dots.
func truncateMessage(message string) string {
	const mark = "..."
	if len(message) <= maxMessageBytes {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessageBytes-len(mark)], "") + mark
}

// Types of Events.
const (
	normal  = corev1.EventTypeNormal
	warning = corev1.EventTypeWarning
)

// Reason is one kind of Event.
type Reason struct {
	// Type is "Normal" or "Warning".
	Type, Reason string
	// RepeatAfter is the interval after which it may be repeated; zero is the default.
	RepeatAfter time.Duration
	// Exact means that Events with different messages are not repetitions of each other.
	Exact bool
}

// About returns the Event about an object.
func (r Reason) About(kind cluster.Kind, about cluster.Object, now time.Time, format string, args ...any) effect.Report {
	every, message := r.RepeatAfter, truncateMessage(fmt.Sprintf(format, args...))
	if every == 0 {
		every = RepeatAfter
	}
	key := kind.Kind + "/" + cluster.KeyOf(about).String() + "/" + string(about.GetUID())
	if r.Exact {
		key += "/" + message
	}
	return effect.Report{Event: cluster.Event{
		About: about, Kind: kind, Type: r.Type, Reason: r.Reason, Message: message, Key: key, Dedupe: every, Now: now,
	}}
}
