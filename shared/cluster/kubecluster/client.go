package kubecluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// timeout limits every call.
const timeout = 30 * time.Second

// Client implements cluster.Client.
type Client struct {
	scheme *runtime.Scheme
	groups map[schema.GroupVersion]rest.Interface
	recent *recentEvents
	// evictionLimiter and eventLimiter limit evictions and Events, of which there may be
	// one for each pod. Other calls do not wait for them.
	evictionLimiter, eventLimiter flowcontrol.RateLimiter
	component                     string
}

var _ cluster.Client = (*Client)(nil)

// New returns a client. component, such as "joist-lifecycle", is the source of its
// Kubernetes Events.
func New(config *rest.Config, component string) (*Client, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, fault.E("building the scheme of Kubernetes kinds", fault.Bug, err)
	}
	groups, err := newRESTClients(config, scheme)
	if err != nil {
		return nil, err
	}
	return &Client{
		scheme: scheme, groups: groups, recent: newRecentEvents(maxRecentEvents), component: component,
		evictionLimiter: flowcontrol.NewTokenBucketRateLimiter(PodQPS, PodBurst), eventLimiter: flowcontrol.NewTokenBucketRateLimiter(PodQPS, PodBurst),
	}, nil
}

// newRequest returns a request for a call. It is never retried, because a retry of a write
// could find the result of the first try.
func (c *Client) newRequest(what call) (*rest.Request, error) {
	client, ok := c.groups[groupVersion(what.kind)]
	if !ok {
		return nil, fault.F(what.String(), fault.Bug, "the kind is not in cluster.Kinds")
	}
	request := client.Verb(what.httpMethod()).Resource(what.kind.Resource).
		NamespaceIfScoped(what.key.Namespace, what.kind.Namespaced && what.key.Namespace != "").MaxRetries(0)
	if what.subresource != "" {
		request = request.SubResource(what.subresource)
	}
	if what.fields != "" {
		request = request.Param("fieldSelector", what.fields)
	}
	switch {
	case what.subresource == evictionSubresource:
		request = request.Throttle(c.evictionLimiter)
	case what.kind == eventKind:
		request = request.Throttle(c.eventLimiter)
	}
	// A new object's name is in its body, not in the path.
	if what.key.Name != "" && (what.verb != verbCreate || what.subresource != "") {
		request = request.Name(what.key.Name)
	}
	return request, nil
}

// sendRequest sends a request and decodes its answer into the object, if there is one. The body is an object, or JSON.
func (c *Client) sendRequest(ctx context.Context, what call, body any, into runtime.Object) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	request, err := c.newRequest(what)
	if err != nil {
		return err
	}
	if body != nil {
		request = request.Body(body)
	}
	if _, isJSON := body.([]byte); isJSON && what.verb == verbPatch {
		request = request.SetHeader("Content-Type", string(types.MergePatchType))
	} else if isJSON {
		request = request.SetHeader("Content-Type", json)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	result := request.Do(ctx)
	if into == nil {
		return what.classifyError(result.Error())
	}
	return what.classifyError(result.Into(into))
}

// Get implements cluster.Client.
func (c *Client) Get(ctx context.Context, kind cluster.Kind, key cluster.Key) (cluster.Object, error) {
	what := call{verb: verbGet, kind: kind, key: key}
	if err := what.requireName(); err != nil {
		return nil, err
	}
	into := kind.New()
	if into == nil {
		return nil, fault.F(what.String(), fault.Bug, "the kind is not in cluster.Kinds")
	}
	if err := c.sendRequest(ctx, what, nil, into); err != nil {
		return nil, err
	}
	return into, nil
}

// List implements cluster.Client. The order is by namespace and name.
func (c *Client) List(ctx context.Context, kind cluster.Kind, namespace string) ([]cluster.Object, error) {
	return c.listObjects(ctx, call{verb: verbList, kind: kind, key: cluster.Key{Namespace: namespace}})
}

// ListBy implements cluster.Client. The order is by namespace and name.
func (c *Client) ListBy(ctx context.Context, kind cluster.Kind, index cluster.Index, value string) ([]cluster.Object, error) {
	return c.listObjects(ctx, call{verb: verbList, kind: kind, fields: string(index) + "=" + value})
}

func (c *Client) listObjects(ctx context.Context, what call) ([]cluster.Object, error) {
	kind := what.kind
	list, err := c.scheme.New(groupVersion(kind).WithKind(kind.Kind + "List"))
	if err != nil {
		return nil, fault.E(what.String(), fault.Bug, err)
	}
	if err := c.sendRequest(ctx, what, nil, list); err != nil {
		return nil, err
	}
	out := make([]cluster.Object, 0, meta.LenList(list))
	err = meta.EachListItem(list, func(item runtime.Object) error {
		out = append(out, item.(cluster.Object))
		return nil
	})
	slices.SortFunc(out, compare)
	return out, err
}

func compare(a, b cluster.Object) int {
	if by := strings.Compare(a.GetNamespace(), b.GetNamespace()); by != 0 {
		return by
	}
	return strings.Compare(a.GetName(), b.GetName())
}

// Create implements cluster.Client.
func (c *Client) Create(ctx context.Context, object cluster.Object) (cluster.Object, error) {
	return c.writeObject(ctx, verbCreate, "", object)
}

// Update implements cluster.Client.
func (c *Client) Update(ctx context.Context, object cluster.Object) (cluster.Object, error) {
	return c.writeObject(ctx, verbUpdate, "", object)
}

// UpdateStatus implements cluster.Client.
func (c *Client) UpdateStatus(ctx context.Context, object cluster.Object) (cluster.Object, error) {
	return c.writeObject(ctx, verbUpdate, statusSubresource, object)
}

func (c *Client) writeObject(ctx context.Context, verb, part string, object cluster.Object) (cluster.Object, error) {
	kind, ok := cluster.KindOf(object)
	if !ok {
		return nil, fault.F(verb, fault.Bug, "the type %T is not in cluster.Kinds", object)
	}
	what := call{verb: verb, subresource: part, kind: kind, key: cluster.KeyOf(object)}
	if err := what.validateWrite(object); err != nil {
		return nil, err
	}
	updates := verb == verbUpdate && part == ""
	into := kind.New()
	var err error
	if updates && isWrittenByUsers(kind) {
		err = c.updateKnownFields(ctx, what, object, into)
	} else {
		err = c.sendRequest(ctx, what, object, into)
	}
	if updates && kind == cluster.NodeClaims && apierrors.IsInvalid(err) {
		// The spec is immutable. A NodeClaim of a newer version may have a field that the update would remove.
		into = kind.New()
		err = c.updateKnownFields(ctx, what, object, into)
	}
	if err != nil {
		return nil, err
	}
	return into, nil
}

// validateWrite refuses requests that the API server accepts and the port does not: an
// object without a name, and an update without a resourceVersion.
func (what call) validateWrite(object cluster.Object) error {
	if err := what.requireName(); err != nil {
		return err
	}
	switch {
	case what.kind.Namespaced && object.GetNamespace() == "":
		return fault.F(what.String(), fault.Invalid, "the object has no namespace")
	case what.subresource == statusSubresource && !what.kind.Status:
		return fault.F(what.String(), fault.Missing, "the kind has no status subresource")
	case what.verb == verbUpdate && object.GetResourceVersion() == "":
		return fault.F(what.String(), fault.Invalid, "the object has no resourceVersion").
			WithHint("read the object and change that copy")
	case what.verb == verbCreate && object.GetResourceVersion() != "":
		return fault.F(what.String(), fault.Invalid, "resourceVersion is set on an object to be created")
	}
	return nil
}

// Delete implements cluster.Client.
func (c *Client) Delete(ctx context.Context, kind cluster.Kind, key cluster.Key, uid types.UID) error {
	return c.deleteObject(ctx, call{verb: verbDelete, kind: kind, key: key}, newDeleteOptions(uid, nil))
}

// DeleteAsRead implements cluster.Client.
func (c *Client) DeleteAsRead(ctx context.Context, kind cluster.Kind, object cluster.Object) error {
	what := call{verb: verbDelete, kind: kind, key: cluster.KeyOf(object)}
	uid, version := object.GetUID(), object.GetResourceVersion()
	if uid == "" || version == "" {
		return fault.F(what.String(), fault.Invalid, "the object has no UID or no resourceVersion").
			WithHint("read the object before you delete it")
	}
	options := newDeleteOptions(uid, nil)
	options.Preconditions.ResourceVersion = &version
	return c.deleteObject(ctx, what, options)
}

// DeletePod implements cluster.Client.
func (c *Client) DeletePod(ctx context.Context, pod cluster.Key, uid types.UID, graceSeconds int64) error {
	return c.deleteObject(ctx, call{verb: verbDelete, kind: cluster.Pods, key: pod}, newDeleteOptions(uid, &graceSeconds))
}

func (c *Client) deleteObject(ctx context.Context, what call, options *metav1.DeleteOptions) error {
	if err := what.requireName(); err != nil {
		return err
	}
	return c.sendRequest(ctx, what, options, nil)
}

func newDeleteOptions(uid types.UID, grace *int64) *metav1.DeleteOptions {
	options := &metav1.DeleteOptions{
		GracePeriodSeconds: grace,
		PropagationPolicy:  new(metav1.DeletePropagationBackground),
	}
	if uid != "" {
		options.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	return options
}

// Evict implements cluster.Client.
func (c *Client) Evict(ctx context.Context, pod cluster.Key, uid types.UID) error {
	what := call{verb: verbCreate, subresource: evictionSubresource, kind: cluster.Pods, key: pod}
	if err := what.requireName(); err != nil {
		return err
	}
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: newDeleteOptions(uid, nil),
	}
	return c.sendRequest(ctx, what, eviction, nil)
}

// referenceTo returns a reference to the event's object.
func referenceTo(event cluster.Event) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: event.Kind.APIVersion(), Kind: event.Kind.Kind,
		Namespace: event.About.GetNamespace(), Name: event.About.GetName(), UID: event.About.GetUID(),
	}
}
