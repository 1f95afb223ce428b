package planner

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joist-autoscaler/joist/services/watcher"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// families are the AMI families of the EC2NodeClasses that take the place of Karpenter's node class for tests. Each class
// has the name of its operating system.
var families = map[string]string{catalog.Linux: karpenter.AMIFamilyAL2023, catalog.Windows: karpenter.AMIFamilyWindows2022}

// testGroup is the API group of Karpenter's node class for tests.
const testGroup = "karpenter.test.sh"

// classOf returns the node class of a pool.
func (q Question) classOf(pool string) string {
	if q.WindowsPools[pool] {
		return catalog.Windows
	}
	return catalog.Linux
}

// readCluster reads what the watcher watches, with the node class of EC2 in the place of the tests' own.
func readCluster(ctx context.Context, q Question) (cluster.Stores, error) {
	kinds := watcher.WatchedKinds(q.Settings, len(q.DefaultConstraints) > 0)
	feed, nodes := cluster.NewStores(kinds, watcher.Trims(false)), map[string]string{}
	for _, kind := range kinds {
		empty, isRead := emptyLists[kind]
		if !isRead {
			continue
		}
		list := empty.DeepCopyObject().(client.ObjectList)
		if err := q.Client.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing %v: %w", kind, err)
		}
		objects, err := convertObjects(q, list, nodes)
		if err != nil {
			return nil, fmt.Errorf("converting %v: %w", kind, err)
		}
		if kind == cluster.Pods {
			objects = addAskedPods(q, objects)
		}
		feed[kind].Replace(objects)
	}
	feed[cluster.NodeClasses].Replace([]cluster.Object{newNodeClass(q, catalog.Linux), newNodeClass(q, catalog.Windows)})
	feed[cluster.ConfigMaps].Replace(nil)
	return feed, nil
}

// emptyLists are the empty lists of the kinds that are read.
var emptyLists = map[cluster.Kind]client.ObjectList{
	cluster.Pods:                   &corev1.PodList{},
	cluster.Nodes:                  &corev1.NodeList{},
	cluster.Namespaces:             &corev1.NamespaceList{},
	cluster.DaemonSets:             &appsv1.DaemonSetList{},
	cluster.DisruptionBudgets:      &policyv1.PodDisruptionBudgetList{},
	cluster.VolumeClaims:           &corev1.PersistentVolumeClaimList{},
	cluster.Volumes:                &corev1.PersistentVolumeList{},
	cluster.StorageClasses:         &storagev1.StorageClassList{},
	cluster.CSINodes:               &storagev1.CSINodeList{},
	cluster.VolumeAttachments:      &storagev1.VolumeAttachmentList{},
	cluster.NodePools:              &karpv1.NodePoolList{},
	cluster.NodeClaims:             &karpv1.NodeClaimList{},
	cluster.Services:               &corev1.ServiceList{},
	cluster.ReplicationControllers: &corev1.ReplicationControllerList{},
	cluster.StatefulSets:           &appsv1.StatefulSetList{},
	cluster.ReplicaSets:            &appsv1.ReplicaSetList{},
	cluster.DeviceClasses:          &resourcev1.DeviceClassList{},
	cluster.ResourceSlices:         &resourcev1.ResourceSliceList{},
	cluster.ResourceClaims:         &resourcev1.ResourceClaimList{},
}

// convertObjects returns the objects of a list, those of Karpenter as objects of Joist. nodes are the names of the nodes
// by provider ID; the list of nodes, which comes first, fills it.
func convertObjects(q Question, list client.ObjectList, nodes map[string]string) ([]cluster.Object, error) {
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	var out []cluster.Object
	for _, item := range items {
		switch object := item.(type) {
		case *corev1.Node:
			nodes[object.Spec.ProviderID] = object.Name
			out = append(out, object.DeepCopy())
		case *karpv1.NodePool:
			if !slices.Contains(q.NodePools, object.Name) {
				continue
			}
			pool := &karpenter.NodePool{}
			if err := ConvertObject(object, pool); err != nil {
				return nil, err
			}
			if ref := pool.Spec.Template.Spec.NodeClassRef; ref != nil && ref.Group != testGroup {
				out = append(out, pool) // It belongs to another provider.
				continue
			}
			pool.Spec.Template.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: q.classOf(pool.Name)}
			out = append(out, pool)
		case *karpv1.NodeClaim:
			claim := &karpenter.NodeClaim{}
			if err := ConvertObject(object, claim); err != nil {
				return nil, err
			}
			if ref := claim.Spec.NodeClassRef; ref != nil && ref.Group == testGroup {
				claim.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: q.classOf(claim.Labels[karpenter.NodePoolLabelKey])}
			}
			if claim.DeletionTimestamp == nil && isLeaving(q, claim.Name, nodes[claim.Status.ProviderID]) {
				claim.DeletionTimestamp = &metav1.Time{Time: q.Now}
			}
			out = append(out, claim)
		default:
			out = append(out, item.DeepCopyObject().(cluster.Object))
		}
	}
	return out, nil
}

// addAskedPods adds the asked pods that exist only in the question.
func addAskedPods(q Question, pods []cluster.Object) []cluster.Object {
	known := map[string]bool{}
	for _, pod := range pods {
		known[pod.GetNamespace()+"/"+pod.GetName()] = true
	}
	for _, pod := range q.Pods {
		if !known[nameOf(pod)] {
			pods = append(pods, pod.DeepCopy())
		}
	}
	return pods
}

// isLeaving reports whether the removal of a NodeClaim, whose node may have joined, has begun. The nodes whose removal is
// simulated stay.
func isLeaving(q Question, claim, node string) bool {
	return !q.Nodes[claim] && !q.Nodes[node] && !q.removes(node)
}

// ConvertObject converts an object of Karpenter's type to Joist's type of the same kind. The error names the object.
func ConvertObject(from client.Object, into any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return fmt.Errorf("writing %s: %w", from.GetName(), err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("reading %s: %w", from.GetName(), err)
	}
	return nil
}

// newNodeClass returns a ready class with all zones of the instance types.
func newNodeClass(q Question, name string) *karpenter.EC2NodeClass {
	out := &karpenter.EC2NodeClass{Spec: karpenter.EC2NodeClassSpec{AMIFamily: new(families[name])}}
	out.Name, out.UID = name, types.UID(name)
	zones := map[string]string{}
	for _, list := range q.Types {
		for _, t := range list {
			for _, o := range t.Offerings {
				zones[o.Zone()] = ""
			}
		}
	}
	if len(zones) == 0 {
		zones["none"] = "" // A class without subnets is not ready.
	}
	for _, zone := range slices.Sorted(maps.Keys(zones)) {
		out.Status.Subnets = append(out.Status.Subnets, karpenter.Subnet{ID: "subnet-" + zone, Zone: zone})
	}
	out.Status.AMIs = []karpenter.AMI{{ID: "ami-specs"}}
	out.Status.SecurityGroups = []karpenter.SecurityGroup{{ID: "sg-specs"}}
	out.Status.InstanceProfile = "specs"
	out.Status.Conditions = out.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeReady, Status: metav1.ConditionTrue, Reason: "Ready"}, q.Now)
	return out
}
