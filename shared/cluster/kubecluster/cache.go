package kubecluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// CacheOptions configure a Cache.
type CacheOptions struct {
	// Kinds are the watched kinds; nil means all.
	Kinds []cluster.Kind
	// Namespaces limits namespaced kinds to one namespace each. A watch of all ConfigMaps
	// would need memory and a wide permission.
	Namespaces map[cluster.Kind]string
	// Trim clears the fields that this process never reads, before objects are stored.
	// Managed fields are always cleared. A trimmed object has no resourceVersion, and a
	// change of cleared fields is not a change.
	Trim cluster.Trims
}

// Cache implements cluster.Feed with one watch for each kind. It restarts broken
// watches.
type Cache struct {
	stores     map[cluster.Kind]reflectorStore
	reflectors []*cache.Reflector
	changed    chan struct{}

	mu       sync.Mutex
	problems map[operation]error
}

// operation is a list or a watch of a kind.
type operation struct {
	kind cluster.Kind
	verb string
}

var _ cluster.Feed = (*Cache)(nil)

// pageSize is the number of objects in one page of a list that the server does not stream.
const pageSize = 500

// NewCache returns a cache, which is empty until Run.
func (c *Client) NewCache(o CacheOptions) (*Cache, error) {
	if o.Kinds == nil {
		o.Kinds = cluster.Kinds
	}
	out := &Cache{
		stores:   map[cluster.Kind]reflectorStore{},
		changed:  make(chan struct{}, 1),
		problems: map[operation]error{},
	}
	for _, kind := range o.Kinds {
		if c.groups[groupVersion(kind)] == nil {
			return nil, fault.F("watching "+kind.Resource, fault.Bug, "the kind is not in cluster.Kinds")
		}
		shelf := reflectorStore{cluster.NewStore(kind, o.Trim[kind]), out.signalChange}
		out.stores[kind] = shelf
		source := out.recordErrors(kind, c.newListWatch(kind, o.Namespaces[kind], shelf))
		reflector := cache.NewReflectorWithOptions(source, kind.New(), shelf, cache.ReflectorOptions{Name: kind.Resource})
		reflector.WatchListPageSize = pageSize
		out.reflectors = append(out.reflectors, reflector)
	}
	return out, nil
}

// newListWatch lists and watches a kind.
func (c *Client) newListWatch(kind cluster.Kind, namespace string, shelf reflectorStore) *cache.ListWatch {
	client := c.groups[groupVersion(kind)]
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := c.scheme.New(groupVersion(kind).WithKind(kind.Kind + "List"))
			if err != nil {
				return nil, err
			}
			if options.ResourceVersion == "0" {
				// The server would ignore the page size and answer in one piece.
				options.ResourceVersion = ""
			}
			err = client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(kind.Resource).
				VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(list)
			if err != nil {
				return nil, err
			}
			// Trim each page before the next one is read, which saves memory.
			return list, meta.EachListItem(list, func(item runtime.Object) error {
				shelf.Trim(item.(cluster.Object))
				return nil
			})
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			return client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(kind.Resource).
				VersionedParams(&options, metav1.ParameterCodec).Watch(ctx)
		},
	}
}

// recordErrors wraps a ListWatch so that the cache keeps its errors.
func (c *Cache) recordErrors(kind cluster.Kind, from *cache.ListWatch) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := from.ListWithContextFunc(ctx, options)
			c.syncUnserved(kind, err)
			return list, c.recordError(ctx, operation{kind, verbList}, err)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := from.WatchFuncWithContext(ctx, options)
			countWatch(kind, err)
			return w, c.recordError(ctx, operation{kind, verbWatch}, err)
		},
	}
}

// isDeviceKind reports whether the kind belongs to Dynamic Resource Allocation, which API servers
// before Kubernetes 1.34 do not serve.
func isDeviceKind(kind cluster.Kind) bool { return kind.Group == cluster.DeviceClasses.Group }

// syncUnserved marks a kind of devices as synced and empty if the API server does not serve it, so
// that everything else goes on. The reflector tries again, and Problem reports it until it succeeds.
func (c *Cache) syncUnserved(kind cluster.Kind, err error) {
	if !isDeviceKind(kind) || !isKindMissing(err) {
		return
	}
	c.stores[kind].Store.Replace(nil)
	c.stores[kind].notify()
}

// recordError keeps an error until the same operation succeeds, and returns it. A watch that starts also ends the error
// of a list: a reflector streams the first list, and lists only if that fails. It ignores errors after the context has
// ended.
func (c *Cache) recordError(ctx context.Context, what operation, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		delete(c.problems, what)
		if what.verb == verbWatch {
			delete(c.problems, operation{what.kind, verbList})
		}
	} else if ctx.Err() == nil {
		c.problems[what] = call{verb: what.verb, kind: what.kind}.classifyError(err)
	}
	return err
}

// Run watches until the context ends, and returns when all watches have ended.
func (c *Cache) Run(ctx context.Context) {
	var group sync.WaitGroup
	for _, reflector := range c.reflectors {
		group.Go(func() { reflector.RunWithContext(ctx) })
	}
	group.Wait()
}

// Changed receives a value after changes. Several changes may give one value.
func (c *Cache) Changed() <-chan struct{} { return c.changed }

func (c *Cache) signalChange() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// Synced implements cluster.Cache.
func (c *Cache) Synced() bool {
	for _, shelf := range c.stores {
		if !shelf.Synced() {
			return false
		}
	}
	return true
}

// Problem returns why the cache is not synced, or which permission or API it lacks to stay so.
func (c *Cache) Problem() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	order := slices.SortedFunc(maps.Keys(c.problems), func(a, b operation) int {
		return slices.Compare([]string{a.kind.Group, a.kind.Resource, a.verb}, []string{b.kind.Group, b.kind.Resource, b.verb})
	})
	var problems []error
	for _, what := range order {
		if err := c.problems[what]; !c.stores[what.kind].Synced() || fault.Is(err, fault.Denied) || isDeviceKind(what.kind) && isKindMissing(err) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// List implements cluster.Cache.
func (c *Cache) List(kind cluster.Kind) []cluster.Object {
	if shelf, ok := c.stores[kind]; ok {
		return shelf.List()
	}
	return nil
}

// ListBy implements cluster.Cache.
func (c *Cache) ListBy(kind cluster.Kind, index cluster.Index, value string) []cluster.Object {
	if shelf, ok := c.stores[kind]; ok {
		return shelf.ListBy(index, value)
	}
	return nil
}

// Get implements cluster.Cache.
func (c *Cache) Get(kind cluster.Kind, key cluster.Key) (cluster.Object, bool) {
	if shelf, ok := c.stores[kind]; ok {
		return shelf.Get(key)
	}
	return nil, false
}

// TakeChanges implements cluster.Feed. A kind that is not watched has no changes.
func (c *Cache) TakeChanges(kind cluster.Kind) cluster.Changed {
	if shelf, ok := c.stores[kind]; ok {
		return shelf.TakeChanges()
	}
	return cluster.Changed{}
}
