package lifecyclepass

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// specClient is the client of the lifecycle service: production's own on the API server of the specs. Leases and
// ConfigMaps are in memory, Events go to the specs' recorder, and writes of node classes are dropped, because the specs
// set the conditions of their node classes.
type specClient struct {
	cluster.Client
	memory cluster.Client

	mu sync.Mutex
	// written are the objects as last written in this pass; nil for deleted ones.
	written map[written]cluster.Object
	// changed are the kinds of which an object was written since the last refresh.
	changed map[cluster.Kind]bool
	writes  int
	// controller is the one of Karpenter whose pass runs.
	controller string
	// evicted are the pods whose eviction or deletion was requested in this pass.
	evicted map[types.UID]bool
}

// failedAnnotation marks a NodeClaim whose launch or registration took too long, which the launching controller of Karpenter
// deletes.
const failedAnnotation = "joist.sh/failed"

type written struct {
	kind cluster.Kind
	key  cluster.Key
}

func inMemory(kind cluster.Kind) bool { return kind == cluster.Leases || kind == cluster.ConfigMaps }

func kindOf(o cluster.Object) cluster.Kind {
	kind, _ := cluster.KindOf(o)
	return kind
}

func (c *specClient) Get(ctx context.Context, kind cluster.Kind, key cluster.Key) (cluster.Object, error) {
	if inMemory(kind) {
		return c.memory.Get(ctx, kind, key)
	}
	return c.Client.Get(ctx, kind, key)
}

func (c *specClient) Create(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	if inMemory(kindOf(o)) {
		return c.memory.Create(ctx, o)
	}
	return c.record(o, func() (cluster.Object, error) { return c.Client.Create(ctx, o) })
}

func (c *specClient) Update(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	switch {
	case inMemory(kindOf(o)):
		return c.memory.Update(ctx, o)
	case c.isOthers(o), c.controller != Launching && o.GetAnnotations()[failedAnnotation] != "":
		return o, nil
	}
	return c.record(o, func() (cluster.Object, error) { return c.Client.Update(ctx, o) })
}

// isOthers reports whether another controller of Karpenter writes this change, which therefore has to wait for its pass.
func (c *specClient) isOthers(o cluster.Object) bool {
	switch kindOf(o) {
	case cluster.NodeClasses:
		return true
	case cluster.NodePools:
		return false
	case cluster.NodeClaims:
		if c.controller == "node/termination" && o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 {
			return true // Karpenter removes the Node before it finalizes the NodeClaim.
		}
	}
	return strings.HasPrefix(c.controller, "nodepool/") && c.controller != "nodepool/hash" || c.controller == Deprovisioning
}

func (c *specClient) UpdateStatus(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	if c.isOthers(o) {
		return o, nil
	}
	return c.record(o, func() (cluster.Object, error) { return c.Client.UpdateStatus(ctx, o) })
}

func (c *specClient) Delete(ctx context.Context, kind cluster.Kind, key cluster.Key, uid types.UID) error {
	return c.recordDeletion(kind, key, c.Client.Delete(ctx, kind, key, uid))
}

func (c *specClient) DeleteAsRead(ctx context.Context, kind cluster.Kind, o cluster.Object) error {
	return c.recordDeletion(kind, cluster.KeyOf(o), c.Client.DeleteAsRead(ctx, kind, o))
}

func (c *specClient) Evict(ctx context.Context, pod cluster.Key, uid types.UID) error {
	c.recordRemoval(uid)
	return c.recordDeletion(cluster.Pods, pod, c.Client.Evict(ctx, pod, uid))
}

func (c *specClient) DeletePod(ctx context.Context, pod cluster.Key, uid types.UID, graceSeconds int64) error {
	c.recordRemoval(uid)
	return c.recordDeletion(cluster.Pods, pod, c.Client.DeletePod(ctx, pod, uid, graceSeconds))
}

// Report publishes an Event with the specs' recorder.
func (c *specClient) Report(_ context.Context, e cluster.Event) error {
	if current.recorder != nil {
		current.recorder.Publish(events.Event{InvolvedObject: e.About, Type: e.Type, Reason: e.Reason, Message: e.Message, DedupeValues: []string{e.Identity()}, DedupeTimeout: e.Dedupe})
	}
	return nil
}

func (c *specClient) record(o cluster.Object, write func() (cluster.Object, error)) (cluster.Object, error) {
	stored, err := write()
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.written[written{kindOf(o), cluster.KeyOf(o)}] = stored
		c.changed[kindOf(o)] = true
		c.writes++
	}
	return stored, err
}

func (c *specClient) recordDeletion(kind cluster.Kind, key cluster.Key, err error) error {
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.written[written{kind, key}] = nil
		c.changed[kind] = true
		c.writes++
	}
	return err
}

func (c *specClient) recordRemoval(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.evicted[uid] = true
}

// takeChanged returns the kinds that were written since the last call.
func (c *specClient) takeChanged() []cluster.Kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.DeleteFunc(slices.Clone(kinds), func(k cluster.Kind) bool { return !c.changed[k] })
	clear(c.changed)
	return out
}

// takeWrites returns the number of writes since the last call.
func (c *specClient) takeWrites() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.writes
	c.writes = 0
	return n
}

// specKinds are the types of the specs' client for the kinds that lifecycle writes.
var specKinds = map[cluster.Kind]func() client.Object{
	cluster.Pods:       func() client.Object { return &corev1.Pod{} },
	cluster.Nodes:      func() client.Object { return &corev1.Node{} },
	cluster.NodePools:  func() client.Object { return &karpv1.NodePool{} },
	cluster.NodeClaims: func() client.Object { return &karpv1.NodeClaim{} },
}

// awaitSpecCache waits until the cache of the specs' client has the objects written in this pass, as the specs' client
// does for its own writes.
func (c *specClient) awaitSpecCache(ctx context.Context, specs client.Client) error {
	for at := range c.written {
		if specKinds[at.kind] == nil {
			continue
		}
		live, err := c.Client.Get(ctx, at.kind, at.key)
		gone := err != nil
		err = wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, 5*time.Second, true, func(ctx context.Context) (bool, error) {
			cached := specKinds[at.kind]()
			err := specs.Get(ctx, client.ObjectKey{Namespace: at.key.Namespace, Name: at.key.Name}, cached)
			if gone {
				return apierrors.IsNotFound(err), nil
			}
			return err == nil && sameVersion(cached, live), nil
		})
		if err != nil {
			return fmt.Errorf("waiting for %s %s in the cache of the specs: %w", at.kind.Kind, at.key, err)
		}
	}
	clear(c.written)
	return nil
}

func sameVersion(a, b metav1.Object) bool { return a.GetResourceVersion() == b.GetResourceVersion() }
