// Package live reads a running cluster once, with the permissions of the caller and without any
// write: the objects that the watcher watches, and the settings of Joist or Karpenter.
//
// A kind that the caller may not read is reported with the consequence for the result, and the
// others are still read. NodePools, nodes and pods are required.
package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/watcher"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// PageReader reads a cluster.
type PageReader interface {
	// ListPages reads the objects of a kind, of a namespace and with labels; "" means all. seen is
	// called with each page and the number of objects so far. The error is fault.Missing if the
	// cluster does not serve the kind, and fault.Denied if the caller may not list it.
	ListPages(ctx context.Context, kind cluster.Kind, namespace, labels string, seen func(page []cluster.Object, total int)) ([]cluster.Object, error)
	// Get reads one object; fault.Missing if it does not exist.
	Get(ctx context.Context, kind cluster.Kind, key cluster.Key) (cluster.Object, error)
}

// RunningCluster is a cluster that can be read.
type RunningCluster struct {
	PageReader
	// Name is the cluster's name in the kubeconfig, and Region the region in its address or its ARN;
	// both may be empty.
	Name, Region string
}

// ReadOptions configure Read.
type ReadOptions struct {
	// Namespace is the namespace of Joist or Karpenter; "" searches all namespaces.
	Namespace string
	// Timeout limits the whole reading.
	Timeout time.Duration
	// Progress is called with a short text whenever a page was read.
	Progress func(text string)
}

// ClusterContent is the content of a running cluster.
type ClusterContent struct {
	// Feed has the objects. It can be collected once.
	Feed       cluster.Stores
	Controller Controller
	// UID is the UID of the namespace kube-system; "" if it could not be read.
	UID         string
	Unavailable []planning.Unavailable
	// Unread are the kinds that could not be read.
	Unread []Unread
	// Assumptions are texts about values that the services would know.
	Assumptions []string
}

// parallel is how many kinds are read at once.
const parallel = 4

// Read reads the cluster.
func Read(ctx context.Context, from RunningCluster, o ReadOptions) (ClusterContent, error) {
	r := reader{from: from, options: o, counts: map[cluster.Kind]int{}}
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	out, err := r.read(limited)
	if err != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		return out, fault.F("reading the cluster", fault.Retry, "not finished after %s, with %s read", o.Timeout, r.describeCounts()).
			WithHint("--timeout with a longer time, or check with kubectl get nodes that the API server answers")
	}
	return out, err
}

// reader is the state of Read.
type reader struct {
	from    RunningCluster
	options ReadOptions

	mu     sync.Mutex
	counts map[cluster.Kind]int
}

func (r *reader) read(ctx context.Context) (ClusterContent, error) {
	controller, assumptions, unread, err := r.findController(ctx)
	if err != nil {
		return ClusterContent{}, err
	}
	out := ClusterContent{Controller: controller, Assumptions: assumptions, Unread: unread}
	kinds := watcher.WatchedKinds(controller.Settings.Scheduling, len(controller.Settings.DefaultConstraints) > 0)
	kinds = slices.DeleteFunc(kinds, func(kind cluster.Kind) bool { return kind == cluster.ConfigMaps })
	out.Feed = cluster.NewStores(kinds, watcher.Trims(controller.Settings.PodDeletionCostManagement))
	problems, err := r.readKinds(ctx, out.Feed, kinds)
	if err != nil {
		return out, err
	}
	for i, kind := range kinds {
		if problems[i] != nil {
			out.Unread = append(out.Unread, newUnread(kind, problems[i]))
		}
	}
	if system, ok := out.Feed.Get(cluster.Namespaces, cluster.Key{Name: "kube-system"}); ok {
		out.UID = string(system.GetUID())
	}
	return out, r.readUnavailable(ctx, &out)
}

// readKinds reads the kinds into their stores. problems has for each kind why it could not be read.
func (r *reader) readKinds(ctx context.Context, into cluster.Stores, kinds []cluster.Kind) (problems []error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	problems, failures := make([]error, len(kinds)), make([]error, len(kinds))
	var group sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for i, kind := range kinds {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			err := r.readKind(ctx, into[kind], kind)
			switch {
			case err == nil:
			case isUnreadable(err):
				problems[i] = err
			default:
				failures[i] = err
				cancel() // The others would fail in the same way.
			}
		})
	}
	group.Wait()
	if err := firstFailure(failures); err != nil {
		return nil, err
	}
	return problems, requireKinds(kinds, problems)
}

// firstFailure returns the error that ended the reading: one that is not the cancellation of the
// other reads.
func firstFailure(failures []error) error {
	var cancelled error
	for _, err := range failures {
		switch {
		case err == nil:
		case errors.Is(err, context.Canceled):
			cancelled = cmp.Or(cancelled, err)
		default:
			return describeFailure(err)
		}
	}
	return cancelled
}

// readKind reads one kind, and trims each page before the next one is read.
func (r *reader) readKind(ctx context.Context, into *cluster.Store, kind cluster.Kind) error {
	objects, err := r.from.ListPages(ctx, kind, "", "", func(page []cluster.Object, total int) {
		for _, object := range page {
			into.Trim(object)
		}
		r.count(kind, total)
	})
	if err != nil {
		return err
	}
	into.Replace(objects)
	return nil
}

// count records how many objects of a kind were read.
func (r *reader) count(kind cluster.Kind, total int) {
	r.mu.Lock()
	r.counts[kind] = total
	r.mu.Unlock()
	r.options.Progress("reading the cluster: " + r.describeCounts())
}

// describeCounts returns the numbers of nodes, pods and all other objects.
func (r *reader) describeCounts() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	others := 0
	for kind, n := range r.counts {
		if kind != cluster.Nodes && kind != cluster.Pods {
			others += n
		}
	}
	return fmt.Sprintf("%d nodes, %d pods and %d other objects", r.counts[cluster.Nodes], r.counts[cluster.Pods], others)
}

// readUnavailable reads the offerings that EC2 refused recently, which only Joist stores.
func (r *reader) readUnavailable(ctx context.Context, out *ClusterContent) error {
	if out.Controller.Name != Joist {
		out.Assumptions = append(out.Assumptions, "no offering is unavailable: only Joist stores which ones EC2 refused recently")
		return nil
	}
	key := cluster.Key{Namespace: out.Controller.Namespace, Name: planning.UnavailableConfigMapName}
	object, err := r.from.Get(ctx, cluster.ConfigMaps, key)
	switch {
	case fault.Is(err, fault.Missing):
		return nil
	case fault.Is(err, fault.Denied):
		out.Unread = append(out.Unread, Unread{
			Resource: "configmaps/" + key.Name, Reason: oneLine(err), Consequence: "no offering is taken as unavailable",
			Check: fmt.Sprintf("kubectl auth can-i get configmaps/%s -n %s", key.Name, key.Namespace),
		})
		return nil
	case err != nil:
		return err
	}
	list, _ := object.(*corev1.ConfigMap)
	out.Unavailable = planning.ReadUnavailable(list)
	return nil
}

// Identify returns the cluster's name and UID as in the services' documents. Without a setting of
// Joist or Karpenter the name is that of the kubeconfig.
func (s ClusterContent) Identify(from RunningCluster) event.Cluster {
	return event.Cluster{Name: cmp.Or(s.Controller.Settings.Cluster.Name, from.Name, "cluster"), UID: s.UID}
}

// oneLine returns an error's text in one line.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
