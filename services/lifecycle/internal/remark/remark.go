// Package remark is what lifecycle tells people through Kubernetes Events (B213):
// one value for each reason, with its type and with how long it is not repeated
// (B214). The reasons themselves are Karpenter's words.
//
// The invariant: an Event is repeated for the same object only after Every, and a
// message that counts is no news, unless the remark is Exact.
package remark

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/cluster"
)

// Every is how long the same is not said again, unless the remark says
// otherwise (B214).
const Every = 2 * time.Minute

// Types of Events.
const (
	normal  = corev1.EventTypeNormal
	warning = corev1.EventTypeWarning
)

// Remark is one kind of Event.
type Remark struct {
	// Type is "Normal" or "Warning".
	Type, Reason string
	// Every is how long it is not repeated; zero is the package's.
	Every time.Duration
	// Exact says that another message is another Event.
	Exact bool
}

// On is the Event about an object. The message is for people.
func (r Remark) On(kind cluster.Kind, about cluster.Object, now time.Time, format string, args ...any) effect.Report {
	every, message := r.Every, fmt.Sprintf(format, args...)
	if every == 0 {
		every = Every
	}
	key := kind.Kind + "/" + cluster.KeyOf(about).String() + "/" + string(about.GetUID())
	if r.Exact {
		key += "/" + message
	}
	return effect.Report{Event: cluster.Event{
		About: about, Kind: kind, Type: r.Type, Reason: r.Reason, Message: message, Key: key, Dedupe: every, Now: now,
	}}
}
