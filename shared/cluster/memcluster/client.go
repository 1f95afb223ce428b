package memcluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Client is the client of one actor. It implements cluster.Client.
type Client struct {
	server *Server
	actor  string
	exempt bool // no fault strikes it
}

var _ cluster.Client = (*Client)(nil)

// call is one request, for faults and errors.
type call struct {
	verb Verb
	kind cluster.Kind
	key  cluster.Key
}

func (c call) String() string {
	if c.key == (cluster.Key{}) {
		return fmt.Sprintf("%s %s", c.verb, c.kind.Resource)
	}
	return fmt.Sprintf("%s %s %s", c.verb, c.kind.Kind, c.key)
}

// newError returns an error of this call.
func (c call) newError(kind fault.Kind, format string, args ...any) *fault.Error {
	return fault.F(c.String(), kind, format, args...)
}

// runCall runs a request under the server's lock, with the fault that matches it, if any.
func runCall[T any](ctx context.Context, c *Client, what call, run func(*Server) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	if what.key.Name == "" && what.verb != VerbList && what.verb != VerbCreate {
		return none, what.newError(fault.Invalid, "the object has no name")
	}
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.objects[what.kind]; !ok {
		return none, what.newError(fault.Bug, "the kind is not in cluster.Kinds")
	}
	s.calls[fmt.Sprintf("%s %s %s", c.actor, what.verb, what.kind.Kind)]++
	struck := s.pickFault(c, what)
	if struck != nil && !struck.Done {
		return none, struck.newError(what)
	}
	s.acting = caller{c.actor, what.verb}
	out, err := run(s)
	s.acting = caller{}
	if struck != nil {
		// The request took effect, and its answer is lost.
		return none, struck.newError(what)
	}
	return out, err
}

// Get implements cluster.Client.
func (c *Client) Get(ctx context.Context, kind cluster.Kind, key cluster.Key) (cluster.Object, error) {
	what := call{VerbGet, kind, key}
	return runCall(ctx, c, what, func(s *Server) (cluster.Object, error) {
		s.updateBudgets()
		object, ok := s.objects[kind][key]
		if !ok {
			return nil, what.newError(fault.Missing, "the object does not exist")
		}
		return copyObject(object), nil
	})
}

// List implements cluster.Client. The order is by namespace and name.
func (c *Client) List(ctx context.Context, kind cluster.Kind, namespace string) ([]cluster.Object, error) {
	return c.listObjects(ctx, kind, namespace, func(cluster.Object) bool { return true })
}

// ListBy implements cluster.Client.
func (c *Client) ListBy(ctx context.Context, kind cluster.Kind, index cluster.Index, value string) ([]cluster.Object, error) {
	if kind != cluster.Pods || index != cluster.ByNode {
		return nil, fault.F("listing "+kind.Kind, fault.Invalid, "the API server has no index of the field %s", index)
	}
	return c.listObjects(ctx, kind, "", func(o cluster.Object) bool { return index.Value(o) == value })
}

func (c *Client) listObjects(ctx context.Context, kind cluster.Kind, namespace string, wanted func(cluster.Object) bool) ([]cluster.Object, error) {
	what := call{VerbList, kind, cluster.Key{Namespace: namespace}}
	return runCall(ctx, c, what, func(s *Server) ([]cluster.Object, error) {
		s.updateBudgets()
		out := []cluster.Object{}
		for _, key := range s.sortKeysOf(kind) {
			if object := s.objects[kind][key]; (namespace == "" || namespace == key.Namespace) && wanted(object) {
				out = append(out, copyObject(object))
			}
		}
		return out, nil
	})
}

// Create implements cluster.Client.
func (c *Client) Create(ctx context.Context, object cluster.Object) (cluster.Object, error) {
	return c.writeObject(ctx, VerbCreate, object, (*Server).createObject)
}

// Update implements cluster.Client.
func (c *Client) Update(ctx context.Context, object cluster.Object) (cluster.Object, error) {
	return c.writeObject(ctx, VerbUpdate, object, (*Server).updateObject)
}

// UpdateStatus implements cluster.Client.
func (c *Client) UpdateStatus(ctx context.Context, object cluster.Object) (cluster.Object, error) {
	return c.writeObject(ctx, VerbUpdateStatus, object, (*Server).updateStatus)
}

// writeFunc writes an object for one verb. The function owns the object.
type writeFunc func(s *Server, what call, object cluster.Object) (cluster.Object, error)

func (c *Client) writeObject(ctx context.Context, verb Verb, object cluster.Object, run writeFunc) (cluster.Object, error) {
	kind, ok := cluster.KindOf(object)
	if !ok {
		return nil, fault.F(string(verb), fault.Bug, "the type %T is not in cluster.Kinds", object)
	}
	what := call{verb, kind, cluster.KeyOf(object)}
	return runCall(ctx, c, what, func(s *Server) (cluster.Object, error) {
		stored, err := run(s, what, copyObject(object))
		if err != nil {
			return nil, err
		}
		return copyObject(stored), nil
	})
}

// PatchAnnotation implements cluster.Client.
func (c *Client) PatchAnnotation(ctx context.Context, object cluster.Object, key string, value *string) error {
	kind, ok := cluster.KindOf(object)
	what := call{VerbPatch, kind, cluster.KeyOf(object)}
	if !ok {
		return what.newError(fault.Bug, "the type %T is not in cluster.Kinds", object)
	}
	_, err := runCall(ctx, c, what, func(s *Server) (noResult, error) { return noResult{}, s.patchAnnotation(what, object, key, value) })
	return err
}

// Delete implements cluster.Client. A pod gets its own grace period.
func (c *Client) Delete(ctx context.Context, kind cluster.Kind, key cluster.Key, uid types.UID) error {
	what := call{VerbDelete, kind, key}
	_, err := runCall(ctx, c, what, func(s *Server) (noResult, error) { return noResult{}, s.deleteObject(what, uid, nil) })
	return err
}

// DeleteAsRead implements cluster.Client.
func (c *Client) DeleteAsRead(ctx context.Context, kind cluster.Kind, object cluster.Object) error {
	what := call{VerbDelete, kind, cluster.KeyOf(object)}
	if object.GetUID() == "" || object.GetResourceVersion() == "" {
		return what.newError(fault.Invalid, "the object has no UID or no resourceVersion").WithHint("read the object before you delete it")
	}
	_, err := runCall(ctx, c, what, func(s *Server) (noResult, error) {
		if now, err := s.findObject(what, object.GetUID()); err == nil && now.GetResourceVersion() != object.GetResourceVersion() {
			return noResult{}, fault.F(what.String(), fault.Conflict, "the object has changed")
		}
		return noResult{}, s.deleteObject(what, object.GetUID(), nil)
	})
	return err
}

// DeletePod implements cluster.Client.
func (c *Client) DeletePod(ctx context.Context, pod cluster.Key, uid types.UID, graceSeconds int64) error {
	what := call{VerbDeletePod, cluster.Pods, pod}
	_, err := runCall(ctx, c, what, func(s *Server) (noResult, error) { return noResult{}, s.deleteObject(what, uid, &graceSeconds) })
	return err
}

// Evict implements cluster.Client.
func (c *Client) Evict(ctx context.Context, pod cluster.Key, uid types.UID) error {
	what := call{VerbEvict, cluster.Pods, pod}
	_, err := runCall(ctx, c, what, func(s *Server) (noResult, error) { return noResult{}, s.evictPod(what, uid) })
	return err
}

// Bind assigns a pod to a node, as the scheduler does through the binding subresource. It
// is not a method of cluster.Client.
func (c *Client) Bind(ctx context.Context, pod cluster.Key, uid types.UID, node string) error {
	what := call{VerbBind, cluster.Pods, pod}
	_, err := runCall(ctx, c, what, func(s *Server) (noResult, error) { return noResult{}, s.bindPod(what, uid, node) })
	return err
}

// noResult is the result of a call without one.
type noResult struct{}

// copyObject returns a deep copy.
func copyObject(o cluster.Object) cluster.Object { return o.DeepCopyObject().(cluster.Object) }
