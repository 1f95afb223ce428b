package lifecycle

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/garbagecollection"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// clusterState is the content of the cache, indexed for one reconcile. Indexes that few
// reconciles need are built on first use. All objects belong to the cache and must not be
// changed.
type clusterState struct {
	// isFull reports that all objects are reconciled, not only changed ones.
	isFull bool
	// reconcilesPools reports that NodePools, EC2NodeClasses and drift are reconciled too.
	reconcilesPools bool

	// claims are the NodeClaims that Joist manages, without other providers'.
	claims []*karpenter.NodeClaim
	// nodesByProviderID may contain two nodes of one instance, if it registered again under
	// another name.
	nodesByProviderID map[string][]*corev1.Node
	nodesByName       map[string]*corev1.Node
	// pools are the NodePools that Joist manages, without other providers'.
	pools   map[string]*karpenter.NodePool
	classes map[string]*karpenter.EC2NodeClass
	// present counts the claims of each intent. The cache has all claims of an intent before it has one that is admitted,
	// because they are created before.
	present func() admission.Counts
	// unbound counts the claims of each intent that have no instance.
	unbound func() admission.Counts

	// zoneID returns the ID of a zone by its name; "" if it is unknown.
	zoneID func(zone string) string
	// pods returns the cached pods of a node.
	pods func(node string) []*corev1.Pod
	// livePods reads the pods of a node from the API server.
	livePods func(node string) ([]*corev1.Pod, error)
	// liveNode reads a node, and liveClaim a NodeClaim, from the API server.
	liveNode  func(name string) (*corev1.Node, error)
	liveClaim func(name string) (*karpenter.NodeClaim, error)
	// attachments returns the VolumeAttachments of a node.
	attachments func(node string) []*storagev1.VolumeAttachment
	// budgets returns the PodDisruptionBudgets of a namespace.
	budgets func(namespace string) []*policyv1.PodDisruptionBudget
	// volumeClaim returns a PersistentVolumeClaim, nil if it does not exist.
	volumeClaim func(key cluster.Key) *corev1.PersistentVolumeClaim
}

func (s *Service) readClusterState(ctx context.Context) clusterState {
	w := clusterState{
		claims:            s.listClaims(),
		nodesByProviderID: map[string][]*corev1.Node{}, nodesByName: map[string]*corev1.Node{},
		pools: map[string]*karpenter.NodePool{}, classes: map[string]*karpenter.EC2NodeClass{},
		pods: func(node string) []*corev1.Pod {
			return cluster.CastAll[*corev1.Pod](s.Cache.ListBy(cluster.Pods, cluster.ByNode, node))
		},
		livePods: func(node string) ([]*corev1.Pod, error) {
			pods, err := s.Client.ListBy(ctx, cluster.Pods, cluster.ByNode, node)
			return cluster.CastAll[*corev1.Pod](pods), err
		},
		liveNode: func(name string) (*corev1.Node, error) {
			return cluster.Get[*corev1.Node](ctx, s.Client, cluster.Nodes, cluster.Key{Name: name})
		},
		liveClaim: func(name string) (*karpenter.NodeClaim, error) {
			return cluster.Get[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims, cluster.Key{Name: name})
		},
		attachments: indexBy[*storagev1.VolumeAttachment](s.Cache, cluster.VolumeAttachments, func(a *storagev1.VolumeAttachment) string { return a.Spec.NodeName }),
		budgets:     indexBy[*policyv1.PodDisruptionBudget](s.Cache, cluster.DisruptionBudgets, func(b *policyv1.PodDisruptionBudget) string { return b.Namespace }),
		volumeClaim: func(key cluster.Key) *corev1.PersistentVolumeClaim {
			found, _ := s.Cache.Get(cluster.VolumeClaims, key)
			volumeClaim, _ := found.(*corev1.PersistentVolumeClaim)
			return volumeClaim
		},
	}
	for _, node := range cluster.ListCached[*corev1.Node](s.Cache, cluster.Nodes) {
		w.nodesByName[node.Name] = node
		if id := node.Spec.ProviderID; id != "" {
			w.nodesByProviderID[id] = append(w.nodesByProviderID[id], node)
		}
	}
	for _, pool := range s.listPools() {
		w.pools[pool.Name] = pool
	}
	for _, class := range cluster.ListCached[*karpenter.EC2NodeClass](s.Cache, cluster.NodeClasses) {
		w.classes[class.Name] = class
	}
	w.zoneID = zoneIDLookup(s.Cache)
	w.present = sync.OnceValue(func() admission.Counts { return admission.CountPresent(w.claims) })
	w.unbound = sync.OnceValue(func() admission.Counts { return admission.CountUnbound(w.claims) })
	return w
}

// listPools returns the cached NodePools without those of other providers.
func (s *Service) listPools() []*karpenter.NodePool {
	return onlyManaged(cluster.ListCached[*karpenter.NodePool](s.Cache, cluster.NodePools))
}

// listClaims returns the cached NodeClaims without those of other providers.
func (s *Service) listClaims() []*karpenter.NodeClaim {
	return onlyManaged(cluster.ListCached[*karpenter.NodeClaim](s.Cache, cluster.NodeClaims))
}

// onlyManaged returns the NodePools or NodeClaims without those of other providers.
func onlyManaged[T interface{ IsManaged() bool }](objects []T) []T {
	return slices.DeleteFunc(slices.Clone(objects), func(o T) bool { return !o.IsManaged() })
}

// indexBy returns a lookup of cached objects by a key. It builds the index on first use and omits
// objects with the key "".
func indexBy[T cluster.Object](cache cluster.Cache, kind cluster.Kind, key func(T) string) func(string) []T {
	index := sync.OnceValue(func() map[string][]T {
		out := map[string][]T{}
		for _, object := range cluster.ListCached[T](cache, kind) {
			if k := key(object); k != "" {
				out[k] = append(out[k], object)
			}
		}
		return out
	})
	return func(k string) []T { return index()[k] }
}

// nodesByProvider returns one node for each providerID.
func nodesByProvider(cache cluster.Cache) map[string]*corev1.Node {
	nodes := map[string]*corev1.Node{}
	for _, node := range cluster.ListCached[*corev1.Node](cache, cluster.Nodes) {
		if node.Spec.ProviderID != "" {
			nodes[node.Spec.ProviderID] = node
		}
	}
	return nodes
}

// selectNode returns the claim's node among the nodes with its providerID: the one that registered,
// else the newest, or nil.
func selectNode(c *karpenter.NodeClaim, nodes []*corev1.Node) *corev1.Node {
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

// findClaim returns the claim of that name, or nil.
func (w clusterState) findClaim(name string) *karpenter.NodeClaim {
	if i := slices.IndexFunc(w.claims, func(c *karpenter.NodeClaim) bool { return c.Name == name }); i >= 0 {
		return w.claims[i]
	}
	return nil
}

// findNode returns the claim's node, or nil.
func (w clusterState) findNode(c *karpenter.NodeClaim) *corev1.Node {
	if c.Status.ProviderID == "" {
		return nil
	}
	return selectNode(c, w.nodesByProviderID[c.Status.ProviderID])
}

// claimView collects the input of nodeclaim.Next for one claim.
func (s *Service) claimView(c *karpenter.NodeClaim, held *outbox.Stored, w clusterState) nodeclaim.View {
	v := nodeclaim.View{
		Claim: c, Pool: w.pools[c.Labels[karpenter.NodePoolLabelKey]], Outbox: held, Cluster: s.Cluster.Name,
		Refused: c.Annotations[RefusedAnnotation], Gone: c.Annotations[garbagecollection.GoneAnnotation] != "", Now: s.Now(),
		ZoneShifted: s.isClaimShiftedAway(c, w.zoneID), HasMissingSibling: func() bool { return w.present().Incomplete(c) },
		HasUnboundSibling: func() bool { return w.unbound().Has(c) },
		MayRepeat:         func(kind string) bool { return s.allowAction(kind+"/"+string(c.UID), resendInterval) },
		Retry:             func(kind string) { s.throttle.reset(kind + "/" + string(c.UID)) },
	}
	if v.Node = w.findNode(c); v.Node != nil {
		v.Pods = w.pods(v.Node.Name)
	}
	v.Registration = s.registrationView(v, w)
	if c.DeletionTimestamp != nil || c.IsRebooting() {
		v.Pods = s.podsOfNodes(v.AllNodes(), w)
	}
	v.Termination = s.terminationView(v, w)
	return v
}

// podsOfNodes returns the pods of nodes that are drained, all of a claim's. If the cache no longer has a node, pods of its name
// are left out: they are lost with the node, or another node has the name since the replica was paused.
func (s *Service) podsOfNodes(nodes []*corev1.Node, w clusterState) []*corev1.Pod {
	var out []*corev1.Pod
	for _, node := range nodes {
		pods := w.pods(node.Name)
		if now, known := s.Cache.Get(cluster.Nodes, cluster.KeyOf(node)); known && now.GetUID() == node.UID {
			out = append(out, pods...)
		}
	}
	return out
}

// countMovingPods counts the pods that need another node without this one.
func (w clusterState) countMovingPods(node string) int {
	n := 0
	for _, pod := range w.pods(node) {
		if podspec.Reschedulable(pod) {
			n++
		}
	}
	return n
}

func (w clusterState) findNodes(names []string) []*corev1.Node {
	out := make([]*corev1.Node, len(names))
	for i, name := range names {
		out[i] = w.nodesByName[name]
	}
	return out
}
