// Package cluster is the port to the Kubernetes API: Client reads and writes the
// API server, and Cache holds what watches delivered.
//
// Package clustertest proves these invariants for every implementation:
//
//   - Update is a compare-and-swap on resourceVersion. It returns fault.Conflict
//     if the object has changed. So does Create if the name is taken.
//   - Update leaves status alone and UpdateStatus leaves the rest alone, for
//     kinds with a status subresource.
//   - Delete gives an object with finalizers a deletion timestamp. The object is
//     removed with its last finalizer.
//   - Each kind has its own watch. A cache may show a Pod that is bound to a Node
//     which the cache does not show yet.
//   - Objects returned by a Cache belong to the cache. Copy them before a change.
package cluster

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Object is a typed Kubernetes object.
type Object interface {
	metav1.Object
	runtime.Object
}

// Key names an object of a kind. Namespace is empty for cluster-scoped kinds.
type Key struct {
	Namespace, Name string
}

// String is "namespace/name", or the name alone.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// KeyOf names the object.
func KeyOf(o metav1.Object) Key { return Key{o.GetNamespace(), o.GetName()} }

// Client reads and writes the API server.
type Client interface {
	// Get reads one object; fault.Missing if it does not exist.
	Get(ctx context.Context, kind Kind, key Key) (Object, error)
	// List reads all objects of a kind; a namespace of "" means all.
	List(ctx context.Context, kind Kind, namespace string) ([]Object, error)
	// ListBy reads the objects of a kind that have the value in an index. The API
	// server finds Pods by their node, and nothing else by a field.
	ListBy(ctx context.Context, kind Kind, index Index, value string) ([]Object, error)
	// Create writes a new object and returns it as stored; fault.Conflict when
	// the name is taken.
	Create(ctx context.Context, object Object) (Object, error)
	// Update swaps the object at its resourceVersion and returns it as stored;
	// fault.Conflict when it has changed, fault.Missing when it is gone.
	Update(ctx context.Context, object Object) (Object, error)
	// UpdateStatus is Update for the status alone.
	UpdateStatus(ctx context.Context, object Object) (Object, error)
	// PatchAnnotation sets one annotation of the object at its resourceVersion, or
	// removes it if value is nil. It leaves everything else alone, and needs the verb patch only.
	// fault.Conflict when it has changed, fault.Missing when it is gone.
	PatchAnnotation(ctx context.Context, object Object, key string, value *string) error
	// Delete asks for removal of the object with that UID (empty: any);
	// fault.Missing when it is gone, fault.Conflict when the UID is another.
	Delete(ctx context.Context, kind Kind, key Key, uid types.UID) error
	// DeleteAsRead deletes the object at its resourceVersion, for decisions that depend
	// on its content. It returns fault.Conflict if the object has changed, and
	// fault.Invalid if the object was not read from the API server.
	DeleteAsRead(ctx context.Context, kind Kind, object Object) error
	// Evict asks the Eviction API to remove the pod with that UID.
	// fault.Throttled when a PodDisruptionBudget forbids it now; fault.Invalid
	// when more than one budget covers the pod; fault.Missing when it is gone.
	Evict(ctx context.Context, pod Key, uid types.UID) error
	// DeletePod deletes a pod with a grace period in seconds, past any budget.
	DeletePod(ctx context.Context, pod Key, uid types.UID, graceSeconds int64) error
	// Report records a Kubernetes Event about an object. An Event may be lost.
	Report(ctx context.Context, event Event) error
}

// Cache holds the objects that watches have delivered so far.
type Cache interface {
	// List gives all objects of a kind, ordered by namespace and name.
	List(kind Kind) []Object
	// ListBy returns the objects of a kind that have the value in one of the kind's
	// Indexes, ordered by namespace and name. Its cost depends on the number of objects
	// returned, not on the number stored.
	ListBy(kind Kind, index Index, value string) []Object
	// Get gives one object, or false.
	Get(kind Kind, key Key) (Object, bool)
	// Synced reports whether the first list of every kind has arrived.
	Synced() bool
}

// Event is a Kubernetes Event to be recorded.
type Event struct {
	// About is the object; only its kind, name, namespace and UID matter.
	About  Object
	Kind   Kind
	Type   string // "Normal" or "Warning"
	Reason string
	// Message is for people.
	Message string
	// Dedupe is how long an equal event is not recorded again.
	Dedupe time.Duration
	// Key makes two events of one reason equal, such as the UID of a pod. Without a
	// key, events are equal if they have the same object and the same text.
	Key string
	Now time.Time
}

// Identity is the same for events that repeat each other. With a Key, a different
// message is a repetition too.
func (e Event) Identity() string {
	if e.Key != "" {
		return e.Reason + "\x00" + e.Key
	}
	return strings.Join([]string{
		e.Kind.APIVersion(), e.Kind.Kind, KeyOf(e.About).String(), string(e.About.GetUID()), e.Type, e.Reason, e.Message,
	}, "\x00")
}

// Get reads one object as its Go type.
func Get[T Object](ctx context.Context, c Client, kind Kind, key Key) (T, error) {
	var none T
	object, err := c.Get(ctx, kind, key)
	if err != nil {
		return none, err
	}
	return object.(T), nil
}

// List reads all objects of a kind as their Go type.
func List[T Object](ctx context.Context, c Client, kind Kind) ([]T, error) {
	objects, err := c.List(ctx, kind, "")
	if err != nil {
		return nil, err
	}
	return CastAll[T](objects), nil
}

// ListCached gives all objects of a kind from the cache as their Go type.
func ListCached[T Object](c Cache, kind Kind) []T { return CastAll[T](c.List(kind)) }

// CastAll turns objects of one kind into their Go type.
func CastAll[T Object](objects []Object) []T {
	out := make([]T, len(objects))
	for i, o := range objects {
		out[i] = o.(T)
	}
	return out
}
