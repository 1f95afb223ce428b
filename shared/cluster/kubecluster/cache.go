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

// CacheOptions shape a Cache.
type CacheOptions struct {
	// Kinds are what is watched; nil is all of them.
	Kinds []cluster.Kind
	// Namespaces narrows namespaced kinds to one namespace each: a watch of all
	// ConfigMaps costs memory and a right that nobody should need.
	Namespaces map[cluster.Kind]string
	// Trim takes off the objects of a kind what this process never reads, before
	// they are kept. Managed fields go in any case. A trimmed object has
	// no resourceVersion, and a change of what was taken off is none.
	Trim cluster.Trims
}

// Cache implements cluster.Feed with one watch for each kind. Watches that
// break are begun anew for as long as it runs.
type Cache struct {
	shelves    map[cluster.Kind]shelf
	reflectors []*cache.Reflector
	changed    chan struct{}

	mu       sync.Mutex
	problems map[asked]error
}

// asked is a list or a watch of one kind.
type asked struct {
	kind cluster.Kind
	verb string
}

var _ cluster.Feed = (*Cache)(nil)

// pageSize bounds one answer to a list where the server does not stream lists.
const pageSize = 500

// NewCache makes a cache, which is empty until Run.
func (c *Client) NewCache(o CacheOptions) (*Cache, error) {
	if o.Kinds == nil {
		o.Kinds = cluster.Kinds
	}
	out := &Cache{
		shelves:  map[cluster.Kind]shelf{},
		changed:  make(chan struct{}, 1),
		problems: map[asked]error{},
	}
	for _, kind := range o.Kinds {
		if c.groups[groupVersion(kind)] == nil {
			return nil, fault.F("watching "+kind.Resource, fault.Bug, "the kind is not in cluster.Kinds")
		}
		shelf := shelf{cluster.NewStore(kind, o.Trim[kind]), out.notify}
		out.shelves[kind] = shelf
		source := out.noting(kind, c.listWatch(kind, o.Namespaces[kind], shelf))
		reflector := cache.NewReflectorWithOptions(source, kind.New(), shelf, cache.ReflectorOptions{Name: kind.Resource})
		reflector.WatchListPageSize = pageSize
		out.reflectors = append(out.reflectors, reflector)
	}
	return out, nil
}

// listWatch lists and watches a kind.
func (c *Client) listWatch(kind cluster.Kind, namespace string, shelf shelf) *cache.ListWatch {
	client := c.groups[groupVersion(kind)]
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := c.scheme.New(groupVersion(kind).WithKind(kind.Kind + "List"))
			if err != nil {
				return nil, err
			}
			if options.ResourceVersion == "0" {
				// A server answers this from memory, and in one piece however large.
				options.ResourceVersion = ""
			}
			err = client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(kind.Resource).
				VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(list)
			if err != nil {
				return nil, err
			}
			// The next page comes when this one is small already.
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

// noting remembers why a kind could not be listed or watched.
func (c *Cache) noting(kind cluster.Kind, from *cache.ListWatch) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := from.ListWithContextFunc(ctx, options)
			return list, c.note(ctx, asked{kind, verbList}, err)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := from.WatchFuncWithContext(ctx, options)
			return w, c.note(ctx, asked{kind, verbWatch}, err)
		},
	}
}

// note remembers an error until the same is answered, unless it is that we stop,
// and returns it.
func (c *Cache) note(ctx context.Context, what asked, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		delete(c.problems, what)
	} else if ctx.Err() == nil {
		c.problems[what] = call{verb: what.verb, kind: what.kind}.judge(err)
	}
	return err
}

// Run feeds the cache until the context ends, and returns when all watches have.
func (c *Cache) Run(ctx context.Context) {
	var group sync.WaitGroup
	for _, reflector := range c.reflectors {
		group.Go(func() { reflector.RunWithContext(ctx) })
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
	for _, shelf := range c.shelves {
		if !shelf.Synced() {
			return false
		}
	}
	return true
}

// Problem says why the cache is not synced, as far as is known, or which right it
// lacks to stay so.
func (c *Cache) Problem() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	order := slices.SortedFunc(maps.Keys(c.problems), func(a, b asked) int {
		return slices.Compare([]string{a.kind.Group, a.kind.Resource, a.verb}, []string{b.kind.Group, b.kind.Resource, b.verb})
	})
	var problems []error
	for _, what := range order {
		if err := c.problems[what]; !c.shelves[what.kind].Synced() || fault.Is(err, fault.Denied) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// List implements cluster.Cache.
func (c *Cache) List(kind cluster.Kind) []cluster.Object {
	if shelf, ok := c.shelves[kind]; ok {
		return shelf.List()
	}
	return nil
}

// ListBy implements cluster.Cache.
func (c *Cache) ListBy(kind cluster.Kind, index cluster.Index, value string) []cluster.Object {
	if shelf, ok := c.shelves[kind]; ok {
		return shelf.ListBy(index, value)
	}
	return nil
}

// Get implements cluster.Cache.
func (c *Cache) Get(kind cluster.Kind, key cluster.Key) (cluster.Object, bool) {
	if shelf, ok := c.shelves[kind]; ok {
		return shelf.Get(key)
	}
	return nil, false
}

// Drain implements cluster.Feed. Of a kind that is not watched nothing changes.
func (c *Cache) Drain(kind cluster.Kind) cluster.Changed {
	if shelf, ok := c.shelves[kind]; ok {
		return shelf.Drain()
	}
	return cluster.Changed{}
}
