// Package effect is what lifecycle's decisions are made of: writes to
// Kubernetes and messages, as data. Deciding gives a list of effects; Do carries
// them out in order.
//
// The invariant: every effect may be repeated. Writes are compare-and-swaps,
// deletions name a UID, and messages have derived ids.
package effect

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
)

// Effect is one of the kinds below.
type Effect interface{ effect() }

// Update swaps an object at its resourceVersion.
type Update struct{ Object cluster.Object }

// UpdateStatus swaps the status of an object.
type UpdateStatus struct{ Object cluster.Object }

// Delete asks for the removal of exactly this object.
type Delete struct {
	Kind cluster.Kind
	Key  cluster.Key
	UID  types.UID
	// Why is the reason, whose first words metrics know.
	Why string
	// Read is the object as it must be still, where the decision rests on what it says and
	// somebody may take that back; nil asks for nothing more than the UID. A replica that
	// was paused between the decision and the call, and leads no more, is fenced by it.
	Read cluster.Object
}

// Evict asks the Eviction API to remove a pod.
type Evict struct {
	Pod *corev1.Pod
	// By is when the pod must be gone; zero for no time. The sooner, the sooner it
	// is its turn.
	By time.Time
	// Why goes into the Event about it.
	Why string
}

// DeletePod removes a pod past its budget, with a grace period.
type DeletePod struct {
	Pod          *corev1.Pod
	GraceSeconds int64
	// By is when the pod must be gone.
	By time.Time
}

// Send says a message to the launcher. Expires is zero for the type's own life.
type Send struct {
	Body    event.Body
	Expires time.Time
}

// Report records a Kubernetes Event.
type Report struct{ Event cluster.Event }

func (Update) effect()       {}
func (UpdateStatus) effect() {}
func (Delete) effect()       {}
func (Evict) effect()        {}
func (DeletePod) effect()    {}
func (Send) effect()         {}
func (Report) effect()       {}
