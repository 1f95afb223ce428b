package sim

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// nodeClass selects what the model furnishes for the cluster.
func nodeClass(w *embedded.World) *karpenter.EC2NodeClass {
	discovery := map[string]string{"karpenter.sh/discovery": w.Cluster}
	family := karpenter.AMIFamilyAL2023
	return &karpenter.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec: karpenter.EC2NodeClassSpec{
			AMIFamily: &family, Role: w.AWS.Role,
			AMISelectorTerms:           []karpenter.AMISelectorTerm{{Alias: "al2023@latest"}},
			SubnetSelectorTerms:        []karpenter.SubnetSelectorTerm{{Tags: discovery}},
			SecurityGroupSelectorTerms: []karpenter.SecurityGroupSelectorTerm{{Tags: discovery}},
		},
	}
}

// families is what the market of a simulated region has: what the pool takes,
// and some that it does not.
var families = []string{"t4g", "m6g", "c6g", "m6i", "g5"}

// nodePool is a pool of small arm64 types, spot first, with limits.
func nodePool(name string, cpu, nodes int64) *karpenter.NodePool {
	in := func(key string, values ...string) karpenter.NodeSelectorRequirementWithMinValues {
		return karpenter.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	return &karpenter.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: karpenter.NodePoolSpec{
			Template: karpenter.NodeClaimTemplate{Spec: karpenter.NodeClaimTemplateSpec{
				NodeClassRef: &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "default"},
				ExpireAfter:  karpenter.DurationOf(720 * time.Hour),
				Requirements: []karpenter.NodeSelectorRequirementWithMinValues{
					in("karpenter.k8s.aws/instance-family", "t4g", "m6g", "c6g"),
					in("karpenter.k8s.aws/instance-size", "medium", "large", "xlarge"),
					in("karpenter.sh/capacity-type", "spot", "on-demand"),
					in("kubernetes.io/arch", "arm64"),
				},
				TerminationGracePeriod: &metav1.Duration{Duration: 10 * time.Minute},
			}},
			Disruption: karpenter.Disruption{
				ConsolidationPolicy: karpenter.ConsolidationPolicyWhenEmptyOrUnderutilized,
				ConsolidateAfter:    karpenter.DurationOf(30 * time.Second),
				Budgets:             []karpenter.Budget{{Nodes: "100%"}},
			},
			Limits: karpenter.Limits{
				corev1.ResourceCPU:      *resource.NewQuantity(cpu, resource.DecimalSI),
				karpenter.ResourceNodes: *resource.NewQuantity(nodes, resource.DecimalSI),
			},
		},
	}
}

// deployment is of no pods yet, which will ask for so many millicores each.
func deployment(name string, milli int64) *appsv1.Deployment {
	replicas := int32(0)
	labels := map[string]string{"app": name}
	grace := int64(5)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: &grace,
					Containers: []corev1.Container{{
						Name: "pause", Image: "public.ecr.aws/eks-distro/kubernetes/pause:3.7",
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
							corev1.ResourceCPU: *resource.NewMilliQuantity(milli, resource.DecimalSI),
						}},
					}},
				},
			},
		},
	}
}

// scale sets a Deployment's replicas as a person would.
func scale(w *embedded.World, name string, replicas int32) error {
	key := cluster.Key{Namespace: "default", Name: name}
	if !w.Kube.Change(cluster.Deployments, key, func(o cluster.Object) { o.(*appsv1.Deployment).Spec.Replicas = &replicas }) {
		return fmt.Errorf("scaling %s: there is no such Deployment", name)
	}
	return nil
}
