// Package effect represents the decisions of lifecycle as data: writes to Kubernetes and messages.
// Decisions return lists of effects; an Executor executes them in order.
//
// The invariant: every effect may be repeated. Writes are compare-and-swaps, deletions name a UID,
// and messages have derived IDs.
package effect

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
)

// Effect is one of the types below.
type Effect interface{ effect() }

// Update writes an object at its resourceVersion.
type Update struct{ Object cluster.Object }

// UpdateStatus writes the status of an object at its resourceVersion.
type UpdateStatus struct{ Object cluster.Object }

// Delete deletes exactly this object.
type Delete struct {
	Kind cluster.Kind
	Key  cluster.Key
	UID  types.UID
	// Why is the reason. Metrics classify it by its first words.
	Why string
	// Read is the expected state of the object, if the decision depends on content that another
	// writer may change; nil requires only the UID. It stops a replica that was paused between
	// decision and call and no longer leads.
	Read cluster.Object
}

// Evict evicts a pod through the Eviction API.
type Evict struct {
	Pod *corev1.Pod
	// By is when the pod must be removed; zero for no deadline. Earlier deadlines are executed
	// first.
	By time.Time
	// Why is part of the Event, and the metric's reason.
	Why string
}

// DeletePod deletes a pod regardless of its budget, with a grace period.
type DeletePod struct {
	Pod          *corev1.Pod
	GraceSeconds int64
	// Node is the node from which the pod is removed; nil for any. The pod is not deleted if another node has the name by
	// now: pods refer to nodes by name, and the caches of pods and nodes are not equally old.
	Node *corev1.Node
	// By is when the pod must be removed.
	By time.Time
	// Why is the metric's reason.
	Why string
}

// Send sends a message to the launcher. After By it is not sent, because its replica was paused since the
// decision; a zero By is no limit.
type Send struct {
	Body event.Body
	By   time.Time
}

// Report publishes a Kubernetes Event.
type Report struct{ Event cluster.Event }

func (Update) effect()       {}
func (UpdateStatus) effect() {}
func (Delete) effect()       {}
func (Evict) effect()        {}
func (DeletePod) effect()    {}
func (Send) effect()         {}
func (Report) effect()       {}
