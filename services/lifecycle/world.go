package lifecycle

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/garbagecollection"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// world is the cache, indexed for one look. What only some looks need is indexed
// when it is first asked for. Everything in it belongs to the cache.
type world struct {
	// whole says that everything is looked at, and not only what has changed.
	whole bool

	claims []*karpenter.NodeClaim
	// nodes are by providerID. There may be two of one: a machine that came back
	// under another name.
	nodes   map[string][]*corev1.Node
	named   map[string]*corev1.Node
	pools   map[string]*karpenter.NodePool
	classes map[string]*karpenter.EC2NodeClass

	// zoneID gives the id of the zone of that name; "" when it is not known.
	zoneID func(zone string) string
	// pods gives those that are bound to the node of that name.
	pods func(node string) []*corev1.Pod
	// podsNow gives the same as it is now.
	podsNow func(node string) ([]*corev1.Pod, error)
	// attachments gives the volumes that are attached to the node of that name.
	attachments func(node string) []*storagev1.VolumeAttachment
	// budgets gives the PodDisruptionBudgets of a namespace.
	budgets func(namespace string) []*policyv1.PodDisruptionBudget
	// volumeClaim finds a PersistentVolumeClaim; nil when it is not there.
	volumeClaim func(key cluster.Key) *corev1.PersistentVolumeClaim
}

func (s *Service) look(ctx context.Context) world {
	w := world{
		claims: cluster.Cached[*karpenter.NodeClaim](s.Cache, cluster.NodeClaims),
		nodes:  map[string][]*corev1.Node{}, named: map[string]*corev1.Node{},
		pools: map[string]*karpenter.NodePool{}, classes: map[string]*karpenter.EC2NodeClass{},
		pods: func(node string) []*corev1.Pod {
			return cluster.Cast[*corev1.Pod](s.Cache.ListBy(cluster.Pods, cluster.ByNode, node))
		},
		podsNow: func(node string) ([]*corev1.Pod, error) {
			pods, err := s.Client.ListBy(ctx, cluster.Pods, cluster.ByNode, node)
			return cluster.Cast[*corev1.Pod](pods), err
		},
		attachments: by[*storagev1.VolumeAttachment](s.Cache, cluster.VolumeAttachments, func(a *storagev1.VolumeAttachment) string { return a.Spec.NodeName }),
		budgets:     by[*policyv1.PodDisruptionBudget](s.Cache, cluster.DisruptionBudgets, func(b *policyv1.PodDisruptionBudget) string { return b.Namespace }),
		volumeClaim: func(key cluster.Key) *corev1.PersistentVolumeClaim {
			found, _ := s.Cache.Get(cluster.VolumeClaims, key)
			volumeClaim, _ := found.(*corev1.PersistentVolumeClaim)
			return volumeClaim
		},
	}
	for _, node := range cluster.Cached[*corev1.Node](s.Cache, cluster.Nodes) {
		w.named[node.Name] = node
		if id := node.Spec.ProviderID; id != "" {
			w.nodes[id] = append(w.nodes[id], node)
		}
	}
	for _, pool := range cluster.Cached[*karpenter.NodePool](s.Cache, cluster.NodePools) {
		w.pools[pool.Name] = pool
	}
	for _, class := range cluster.Cached[*karpenter.EC2NodeClass](s.Cache, cluster.NodeClasses) {
		w.classes[class.Name] = class
	}
	w.zoneID = zoneIDs(s.Cache)
	return w
}

// by indexes the objects of a kind, once it is asked. An object with the key ""
// is left out.
func by[T cluster.Object](cache cluster.Cache, kind cluster.Kind, key func(T) string) func(string) []T {
	index := sync.OnceValue(func() map[string][]T {
		out := map[string][]T{}
		for _, object := range cluster.Cached[T](cache, kind) {
			if k := key(object); k != "" {
				out[k] = append(out[k], object)
			}
		}
		return out
	})
	return func(k string) []T { return index()[k] }
}

// nodesByProvider gives one node per providerID.
func nodesByProvider(cache cluster.Cache) map[string]*corev1.Node {
	nodes := map[string]*corev1.Node{}
	for _, node := range cluster.Cached[*corev1.Node](cache, cluster.Nodes) {
		if node.Spec.ProviderID != "" {
			nodes[node.Spec.ProviderID] = node
		}
	}
	return nodes
}

func isReady(node *corev1.Node) bool { return nodeclaim.Ready(node) }

// nodeOf chooses the claim's node among those with its providerID: the one that
// it registered, else the one that came last. It is nil where there is none.
func nodeOf(c *karpenter.NodeClaim, nodes []*corev1.Node) *corev1.Node {
	var last *corev1.Node
	for _, node := range nodes {
		if node.Name == c.Status.NodeName {
			return node
		}
		if last == nil || !node.CreationTimestamp.Before(&last.CreationTimestamp) {
			last = node
		}
	}
	return last
}

// claim finds the claim of that name; nil when there is none.
func (w world) claim(name string) *karpenter.NodeClaim {
	if i := slices.IndexFunc(w.claims, func(c *karpenter.NodeClaim) bool { return c.Name == name }); i >= 0 {
		return w.claims[i]
	}
	return nil
}

// node is the claim's; nil when there is none.
func (w world) node(c *karpenter.NodeClaim) *corev1.Node {
	if c.Status.ProviderID == "" {
		return nil
	}
	return nodeOf(c, w.nodes[c.Status.ProviderID])
}

// view gathers what the decision about one claim may look at.
func (s *Service) view(c *karpenter.NodeClaim, held *outbox.Held, w world) nodeclaim.View {
	v := nodeclaim.View{
		Claim: c, Pool: w.pools[c.Labels[karpenter.NodePoolLabelKey]], Outbox: held, Cluster: s.Cluster.Name,
		Refused: c.Annotations[RefusedAnnotation], Gone: c.Annotations[garbagecollection.GoneAnnotation] != "", Now: s.Now(),
		Away:   s.away(c, w),
		MayAsk: func(kind string) bool { return s.due(kind+"/"+string(c.UID), resend) },
	}
	if v.Node = w.node(c); v.Node != nil {
		v.Pods = w.pods(v.Node.Name)
	}
	v.Joining = s.joining(v, w)
	v.Leaving = s.leaving(v, w)
	return v
}

func (w world) nodesNamed(names []string) []*corev1.Node {
	out := make([]*corev1.Node, len(names))
	for i, name := range names {
		out[i] = w.named[name]
	}
	return out
}
