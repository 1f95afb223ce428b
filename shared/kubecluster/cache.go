package kubecluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// CacheOptions shape a Cache.
type CacheOptions struct {
	// Kinds are what is watched; nil is all of them.
	Kinds []cluster.Kind
	// Namespaces narrows namespaced kinds to one namespace each: a watch of all
	// ConfigMaps costs memory and a right that nobody should need.
	Namespaces map[cluster.Kind]string
}

// Cache implements cluster.Cache with one watch for each kind. Watches that
// break are begun anew for as long as it runs.
type Cache struct {
	informers map[cluster.Kind]cache.SharedIndexInformer
	changed   chan struct{}

	mu       sync.Mutex
	problems map[cluster.Kind]error
}

var _ cluster.Cache = (*Cache)(nil)

// NewCache makes a cache, which is empty until Run.
func (c *Client) NewCache(o CacheOptions) (*Cache, error) {
	if o.Kinds == nil {
		o.Kinds = cluster.Kinds
	}
	out := &Cache{
		informers: map[cluster.Kind]cache.SharedIndexInformer{},
		changed:   make(chan struct{}, 1),
		problems:  map[cluster.Kind]error{},
	}
	for _, kind := range o.Kinds {
		informer := cache.NewSharedIndexInformer(c.listWatch(kind, o.Namespaces[kind]), kind.New(), 0, indexers(kind))
		if err := out.add(kind, informer); err != nil {
			return nil, fault.E("watching "+kind.Resource, fault.Bug, err)
		}
	}
	return out, nil
}

// listWatch lists and watches a kind.
func (c *Client) listWatch(kind cluster.Kind, namespace string) *cache.ListWatch {
	client := c.groups[groupVersion(kind)]
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := c.scheme.New(groupVersion(kind).WithKind(kind.Kind + "List"))
			if err != nil {
				return nil, err
			}
			err = client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(kind.Resource).
				VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(list)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			return client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(kind.Resource).
				VersionedParams(&options, metav1.ParameterCodec).Watch(ctx)
		},
	}
}

func (c *Cache) add(kind cluster.Kind, informer cache.SharedIndexInformer) error {
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { c.notify() },
		UpdateFunc: func(any, any) { c.notify() },
		DeleteFunc: func(any) { c.notify() },
	}
	_, err := informer.AddEventHandler(handler)
	c.informers[kind] = informer
	return errors.Join(err, informer.SetTransform(lighten), informer.SetWatchErrorHandlerWithContext(
		func(ctx context.Context, r *cache.Reflector, err error) {
			c.note(kind, err)
			cache.DefaultWatchErrorHandler(ctx, r, err)
		}))
}

// lighten drops what is large and what nobody reads.
func lighten(o any) (any, error) {
	if object, ok := o.(metav1.Object); ok {
		object.SetManagedFields(nil)
	}
	return o, nil
}

// Run feeds the cache until the context ends, and returns when all watches have.
func (c *Cache) Run(ctx context.Context) {
	var group sync.WaitGroup
	for _, informer := range c.informers {
		group.Go(func() { informer.RunWithContext(ctx) })
		group.Go(func() {
			// A kind without objects changes nothing when it is synced, but
			// Synced does.
			if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
				c.notify()
			}
		})
	}
	group.Wait()
}

// Changed says that something changed since it was last received from. Many
// changes are one.
func (c *Cache) Changed() <-chan struct{} { return c.changed }

func (c *Cache) notify() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// Synced implements cluster.Cache.
func (c *Cache) Synced() bool {
	for _, informer := range c.informers {
		if !informer.HasSynced() {
			return false
		}
	}
	return true
}

// Problem says why the cache is not synced, as far as is known.
func (c *Cache) Problem() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	kinds := slices.SortedFunc(maps.Keys(c.problems), func(a, b cluster.Kind) int {
		return slices.Compare([]string{a.Group, a.Resource}, []string{b.Group, b.Resource})
	})
	var problems []error
	for _, kind := range kinds {
		if !c.informers[kind].HasSynced() {
			problems = append(problems, c.problems[kind])
		}
	}
	return errors.Join(problems...)
}

func (c *Cache) note(kind cluster.Kind, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problems[kind] = call{verb: verbWatch, kind: kind}.judge(err)
}

// List implements cluster.Cache.
func (c *Cache) List(kind cluster.Kind) []cluster.Object {
	informer, ok := c.informers[kind]
	if !ok {
		return nil
	}
	return ordered(informer.GetStore().List())
}

// ListBy implements cluster.Cache.
func (c *Cache) ListBy(kind cluster.Kind, index cluster.Index, value string) []cluster.Object {
	informer, ok := c.informers[kind]
	if !ok {
		return nil
	}
	// It fails for an index that is not kept alone.
	stored, _ := informer.GetIndexer().ByIndex(string(index), value)
	return ordered(stored)
}

func ordered(stored []any) []cluster.Object {
	out := make([]cluster.Object, len(stored))
	for i, o := range stored {
		out[i] = o.(cluster.Object)
	}
	slices.SortFunc(out, compare)
	return out
}

// indexers are the indexes of a kind as an informer keeps them.
func indexers(kind cluster.Kind) cache.Indexers {
	out := cache.Indexers{}
	for _, index := range cluster.Indexes(kind) {
		out[string(index)] = func(o any) ([]string, error) { return []string{index.Value(o.(cluster.Object))}, nil }
	}
	return out
}

// Get implements cluster.Cache.
func (c *Cache) Get(kind cluster.Kind, key cluster.Key) (cluster.Object, bool) {
	informer, ok := c.informers[kind]
	if !ok {
		return nil, false
	}
	found, ok, err := informer.GetStore().GetByKey(key.String())
	if err != nil || !ok {
		return nil, false
	}
	return found.(cluster.Object), true
}
