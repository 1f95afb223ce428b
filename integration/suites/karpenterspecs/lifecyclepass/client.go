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
	autoscalingv1beta1 "sigs.k8s.io/karpenter/pkg/apis/autoscaling/v1beta1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpv1alpha1 "sigs.k8s.io/karpenter/pkg/apis/v1alpha1"
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
	// costs are the deletion costs that were written in this pass. probes are pods that exist only in this pass, by their
	// node; with them nothing else is written. classes are all node classes of a ranking.
	costs   []WrittenCost
	probes  map[string]*corev1.Pod
	classes []cluster.Object
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

func (c *specClient) List(ctx context.Context, kind cluster.Kind, of string) ([]cluster.Object, error) {
	if kind == cluster.NodeClasses && c.controller == Ranking {
		return c.classes, nil
	}
	return c.Client.List(ctx, kind, of)
}

func (c *specClient) ListBy(ctx context.Context, kind cluster.Kind, index cluster.Index, value string) ([]cluster.Object, error) {
	if kind == cluster.Pods && c.probes != nil {
		return []cluster.Object{c.probes[value]}, nil
	}
	return c.Client.ListBy(ctx, kind, index, value)
}

// PatchAnnotation writes the deletion cost of a pod, except on a probe, and records it.
func (c *specClient) PatchAnnotation(ctx context.Context, o cluster.Object, key string, value *string) error {
	pod, isPod := o.(*corev1.Pod)
	if !isPod || key != corev1.PodDeletionCost {
		return fmt.Errorf("lifecycle writes annotation %s of %T: record it in PatchAnnotation of specClient", key, o)
	}
	if c.probes == nil {
		if err := c.Client.PatchAnnotation(ctx, o, key, value); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.costs = append(c.costs, WrittenCost{pod, value})
	c.written[written{cluster.Pods, cluster.KeyOf(o)}] = o
	c.changed[cluster.Pods] = true
	c.writes++
	return nil
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
	switch kind := kindOf(o); {
	case kind == cluster.NodeClasses, c.controller == Ranking, c.controller == Buffering && kind != cluster.CapacityBuffers:
		return true
	case c.controller == Tagging:
		return kind != cluster.NodeClaims
	case kind == cluster.NodePools:
		return false
	case kind == cluster.NodeClaims && c.controller == "node/termination" && o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0:
		return true // Karpenter removes the Node before it finalizes the NodeClaim.
	}
	return strings.HasPrefix(c.controller, "nodepool/") && c.controller != "nodepool/hash" || c.controller == Deprovisioning
}

func (c *specClient) UpdateStatus(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	if c.isOthers(o) || c.controller == Tagging {
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
	cluster.CapacityBuffers: func() client.Object { return &autoscalingv1beta1.CapacityBuffer{} },
	cluster.NodeOverlays:    func() client.Object { return &karpv1alpha1.NodeOverlay{} },
	cluster.Pods:            func() client.Object { return &corev1.Pod{} },
	cluster.Nodes:           func() client.Object { return &corev1.Node{} },
	cluster.NodePools:       func() client.Object { return &karpv1.NodePool{} },
	cluster.NodeClaims:      func() client.Object { return &karpv1.NodeClaim{} },
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
