package lifecyclepass

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/joist-autoscaler/joist/integration/suites/karpenterspecs/planner"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Ranking is the controller that ranks nodes and writes pod-deletion-cost.
const Ranking = "pod/deletioncost"

// RankingInput are the NodePools and instance types with which nodes are ranked.
type RankingInput struct {
	NodePools map[string]*karpv1.NodePool
	// Types are the instance types by NodePool and name; nil if no node has a price.
	Types map[string]map[string]*cloudprovider.InstanceType
}

// WrittenCost is a pod whose pod-deletion-cost was written; Value is nil if it was removed.
type WrittenCost struct {
	Pod   *corev1.Pod
	Value *string
}

// WriteDeletionCosts runs a pass of a new service in place of Karpenter's controller, and returns what it wrote.
func WriteDeletionCosts(ctx context.Context, in RankingInput) ([]WrittenCost, error) {
	s, err := rank(ctx, in, false)
	if err != nil {
		return nil, err
	}
	return s.client.costs, nil
}

// RankedNodes are the names of nodes: first the nodes that are being removed, then the nodes with a rank, the lowest first, then the others.
type RankedNodes struct{ Leaving, Ranked, Unranked []string }

// RankNodes ranks the nodes without writing. The value of a node is what would be written on a pod of a ReplicaSet that
// exists on each node only in this pass, because other pods do not have the annotation. Such a pod costs nothing to move.
func RankNodes(ctx context.Context, in RankingInput) (RankedNodes, error) {
	s, err := rank(ctx, in, true)
	if err != nil {
		return RankedNodes{}, err
	}
	ranks := map[string]int{}
	out := RankedNodes{}
	for _, c := range s.client.costs {
		node := c.Pod.Spec.NodeName
		if c.Value == nil {
			out.Unranked = append(out.Unranked, node)
			continue
		}
		if ranks[node], err = strconv.Atoi(*c.Value); err != nil {
			return out, fmt.Errorf("reading the rank of node %s: %w", node, err)
		}
	}
	for _, node := range slices.SortedFunc(maps.Keys(ranks), func(a, b string) int { return cmp.Compare(ranks[a], ranks[b]) }) {
		if ranks[node] == math.MinInt32 {
			out.Leaving = append(out.Leaving, node)
		} else {
			out.Ranked = append(out.Ranked, node)
		}
	}
	return out, nil
}

// rank runs a pass of a new service.
func rank(ctx context.Context, in RankingInput, probes bool) (*system, error) {
	return passAnew(ctx, Ranking, func(s *system) {
		s.ranking = in
		if probes {
			s.client.probes = map[string]*corev1.Pod{}
		}
	})
}

// prepareRanking adds what the service reads to rank nodes: the given NodePools, a node class of the same name for each
// that has instance types, the catalogue, and a pod on each node if only their ranks are asked for.
func (s *system) prepareRanking(ctx context.Context) error {
	s.service.PodDeletionCosts = true
	var pools []cluster.Object
	for name, from := range s.ranking.NodePools {
		pool := &karpenter.NodePool{}
		if err := planner.ConvertObject(from, pool); err != nil {
			return err
		}
		pool.Spec.Template.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: cluster.NodeClasses.Kind, Name: name}
		pools = append(pools, pool)
	}
	s.cache[cluster.NodePools].Replace(nil) // A store keeps an object of the same version.
	s.cache[cluster.NodePools].Replace(pools)
	if s.ranking.Types != nil {
		if err := s.publishCatalogue(ctx); err != nil {
			return err
		}
		s.service.Catalogues = &blob.DocumentCache[catalog.Catalogue]{}
	}
	if s.client.probes != nil {
		for _, node := range cluster.ListCached[*corev1.Node](s.cache, cluster.Nodes) {
			s.client.probes[node.Name] = newProbe(node.Name)
			s.cache[cluster.Pods].Put(s.client.probes[node.Name])
		}
	}
	return nil
}

// publishCatalogue stores the instance types as the latest catalogue.
func (s *system) publishCatalogue(ctx context.Context) error {
	all, zones := map[string]*cloudprovider.InstanceType{}, map[string]bool{}
	for _, types := range s.ranking.Types {
		maps.Copy(all, types)
	}
	out := catalog.Catalogue{Region: "test-region", AsOf: now()}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		one := convertType(all[name])
		for _, o := range one.Offerings {
			zones[o.Zone] = true
		}
		out.Types = append(out.Types, one)
	}
	for pool := range s.ranking.Types {
		class := &karpenter.EC2NodeClass{}
		class.Name, class.Spec.AMIFamily, class.Status.AMIs = pool, new(karpenter.AMIFamilyAL2023), []karpenter.AMI{{ID: "ami-specs"}}
		for _, zone := range slices.Sorted(maps.Keys(zones)) {
			class.Status.Subnets = append(class.Status.Subnets, karpenter.Subnet{ID: "subnet-" + zone, Zone: zone})
		}
		s.client.classes = append(s.client.classes, class)
	}
	ref, err := blob.Put(ctx, s.blobs, now(), catalog.Kind, out)
	if err != nil {
		return err
	}
	return blob.SetLatest(ctx, s.blobs, ref)
}

// newProbe returns a running pod of a ReplicaSet. Its annotation has a value that is never a rank.
func newProbe(node string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name, pod.Spec.NodeName, pod.Status.Phase = metav1.NamespaceSystem, "probe-"+node, node, corev1.PodRunning
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "probe", UID: "probe", Controller: new(true)}}
	pod.Annotations = map[string]string{corev1.PodDeletionCost: "none", karpenter.DisruptionCostAnnotationKey: strconv.Itoa(math.MinInt32)}
	return pod
}
