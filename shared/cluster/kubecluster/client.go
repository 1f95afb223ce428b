package kubecluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
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

// timeout bounds every call that its caller does not bound more tightly.
const timeout = 30 * time.Second

// Client implements cluster.Client.
type Client struct {
	scheme *runtime.Scheme
	groups map[schema.GroupVersion]rest.Interface
	said   *memory
	// evicting and telling are the rates of what may be late: evictions and Events.
	// There are as many of them as pods, and nothing else waits behind them.
	evicting, telling flowcontrol.RateLimiter
	component         string
}

var _ cluster.Client = (*Client)(nil)

// New makes a client. The component, such as "joist-lifecycle", is who reports
// Kubernetes Events.
func New(config *rest.Config, component string) (*Client, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, fault.E("learning the kinds", fault.Bug, err)
	}
	groups, err := connect(config, scheme)
	if err != nil {
		return nil, err
	}
	return &Client{
		scheme: scheme, groups: groups, said: newMemory(remembered), component: component,
		evicting: flowcontrol.NewTokenBucketRateLimiter(QPS, Burst), telling: flowcontrol.NewTokenBucketRateLimiter(QPS, Burst),
	}, nil
}

// begin starts a request about a kind, bounded in time and never retried: a
// retry of a write may meet what the first try did.
func (c *Client) begin(what call) (*rest.Request, error) {
	client, ok := c.groups[groupVersion(what.kind)]
	if !ok {
		return nil, fault.F(what.String(), fault.Bug, "the kind is not in cluster.Kinds")
	}
	request := client.Verb(what.method()).Resource(what.kind.Resource).
		NamespaceIfScoped(what.key.Namespace, what.kind.Namespaced && what.key.Namespace != "").MaxRetries(0)
	if what.part != "" {
		request = request.SubResource(what.part)
	}
	if what.fields != "" {
		request = request.Param("fieldSelector", what.fields)
	}
	switch {
	case what.part == partEviction:
		request = request.Throttle(c.evicting)
	case what.kind == events:
		request = request.Throttle(c.telling)
	}
	// A new object's name is in its body, not in the path.
	if what.key.Name != "" && (what.verb != verbCreate || what.part != "") {
		request = request.Name(what.key.Name)
	}
	return request, nil
}

// do sends a request and decodes its answer into the object, if there is one.
func (c *Client) do(ctx context.Context, what call, body, into runtime.Object) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	request, err := c.begin(what)
	if err != nil {
		return err
	}
	if body != nil {
		request = request.Body(body)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	result := request.Do(ctx)
	if into == nil {
		return what.judge(result.Error())
	}
	return what.judge(result.Into(into))
}

// Get implements cluster.Client.
func (c *Client) Get(ctx context.Context, kind cluster.Kind, key cluster.Key) (cluster.Object, error) {
	what := call{verb: verbGet, kind: kind, key: key}
	if key.Name == "" {
		return nil, fault.F(what.String(), fault.Invalid, "the object has no name")
	}
	into := kind.New()
	if into == nil {
		return nil, fault.F(what.String(), fault.Bug, "the kind is not in cluster.Kinds")
	}
	if err := c.do(ctx, what, nil, into); err != nil {
		return nil, err
	}
	return into, nil
}

// List implements cluster.Client. The order is by namespace and name.
func (c *Client) List(ctx context.Context, kind cluster.Kind, namespace string) ([]cluster.Object, error) {
	return c.list(ctx, call{verb: verbList, kind: kind, key: cluster.Key{Namespace: namespace}})
}

// ListBy implements cluster.Client. The order is by namespace and name.
func (c *Client) ListBy(ctx context.Context, kind cluster.Kind, index cluster.Index, value string) ([]cluster.Object, error) {
	return c.list(ctx, call{verb: verbList, kind: kind, fields: string(index) + "=" + value})
}

func (c *Client) list(ctx context.Context, what call) ([]cluster.Object, error) {
	kind := what.kind
	list, err := c.scheme.New(groupVersion(kind).WithKind(kind.Kind + "List"))
	if err != nil {
		return nil, fault.E(what.String(), fault.Bug, err)
	}
	if err := c.do(ctx, what, nil, list); err != nil {
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
	return c.write(ctx, verbCreate, "", object)
}

// Update implements cluster.Client.
func (c *Client) Update(ctx context.Context, object cluster.Object) (cluster.Object, error) {
	return c.write(ctx, verbUpdate, "", object)
}

// UpdateStatus implements cluster.Client.
func (c *Client) UpdateStatus(ctx context.Context, object cluster.Object) (cluster.Object, error) {
	return c.write(ctx, verbUpdate, partStatus, object)
}

func (c *Client) write(ctx context.Context, verb, part string, object cluster.Object) (cluster.Object, error) {
	kind, ok := cluster.KindOf(object)
	if !ok {
		return nil, fault.F(verb, fault.Bug, "the type %T is not in cluster.Kinds", object)
	}
	what := call{verb: verb, part: part, kind: kind, key: cluster.KeyOf(object)}
	if err := what.check(object); err != nil {
		return nil, err
	}
	into := kind.New()
	if err := c.do(ctx, what, object, into); err != nil {
		return nil, err
	}
	return into, nil
}

// check refuses what the server would take in a way that the port rules out: a
// name of the server's choice, and a swap without a version.
func (what call) check(object cluster.Object) error {
	switch {
	case object.GetName() == "":
		return fault.F(what.String(), fault.Invalid, "the object has no name")
	case what.kind.Namespaced && object.GetNamespace() == "":
		return fault.F(what.String(), fault.Invalid, "the object has no namespace")
	case what.part == partStatus && !what.kind.Status:
		return fault.F(what.String(), fault.Missing, "the kind has no status subresource")
	case what.verb == verbUpdate && object.GetResourceVersion() == "":
		return fault.F(what.String(), fault.Invalid, "the object has no resourceVersion").
			WithHint("change what was read, not a new object")
	case what.verb == verbCreate && object.GetResourceVersion() != "":
		return fault.F(what.String(), fault.Invalid, "resourceVersion is set on an object to be created")
	}
	return nil
}

// Delete implements cluster.Client.
func (c *Client) Delete(ctx context.Context, kind cluster.Kind, key cluster.Key, uid types.UID) error {
	return c.remove(ctx, call{verb: verbDelete, kind: kind, key: key}, removal(uid, nil))
}

// DeleteAsRead implements cluster.Client.
func (c *Client) DeleteAsRead(ctx context.Context, kind cluster.Kind, object cluster.Object) error {
	what := call{verb: verbDelete, kind: kind, key: cluster.KeyOf(object)}
	uid, version := object.GetUID(), object.GetResourceVersion()
	if uid == "" || version == "" {
		return fault.F(what.String(), fault.Invalid, "the object has no UID or no resourceVersion").
			WithHint("delete what was read, not a new object")
	}
	options := removal(uid, nil)
	options.Preconditions.ResourceVersion = &version
	return c.remove(ctx, what, options)
}

// DeletePod implements cluster.Client.
func (c *Client) DeletePod(ctx context.Context, pod cluster.Key, uid types.UID, graceSeconds int64) error {
	return c.remove(ctx, call{verb: verbDelete, kind: cluster.Pods, key: pod}, removal(uid, &graceSeconds))
}

func (c *Client) remove(ctx context.Context, what call, options *metav1.DeleteOptions) error {
	if what.key.Name == "" {
		// The server would take it for the removal of the whole collection.
		return fault.F(what.String(), fault.Invalid, "the object has no name")
	}
	return c.do(ctx, what, options, nil)
}

func removal(uid types.UID, grace *int64) *metav1.DeleteOptions {
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
	what := call{verb: verbCreate, part: partEviction, kind: cluster.Pods, key: pod}
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: removal(uid, nil),
	}
	return c.do(ctx, what, eviction, nil)
}

// about refers to the object of an event.
func about(event cluster.Event) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: event.Kind.APIVersion(), Kind: event.Kind.Kind,
		Namespace: event.About.GetNamespace(), Name: event.About.GetName(), UID: event.About.GetUID(),
	}
}
