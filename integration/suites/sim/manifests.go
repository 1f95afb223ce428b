package sim

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// newNodeClass selects the AWS resources of the model.
func newNodeClass(w *embedded.EmbeddedCluster) *karpenter.EC2NodeClass {
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

// instanceFamilies are the families of the simulated region: those of the NodePool, and others.
var instanceFamilies = []string{"t4g", "m6g", "c6g", "m6i", "g5"}

// newNodePool returns a NodePool of small arm64 types, spot and on-demand, with limits.
func newNodePool(name string, cpu, nodes int64) *karpenter.NodePool {
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

// newDeployment returns a Deployment with 0 replicas whose pods request this many millicores.
func newDeployment(name string, milli int64) *appsv1.Deployment {
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

// replicaCounts are the replicas of each Deployment.
type replicaCounts map[string]int32

func (s replicaCounts) sum() int {
	n := 0
	for _, replicas := range s {
		n += int(replicas)
	}
	return n
}

// zeroCounts returns the same Deployments with 0 replicas.
func (s replicaCounts) zeroCounts() replicaCounts {
	out := replicaCounts{}
	for name := range s {
		out[name] = 0
	}
	return out
}

// protectedDeployment adds the annotation karpenter.sh/do-not-disrupt with "true" or a duration after start.
func protectedDeployment(d *appsv1.Deployment, annotation string) *appsv1.Deployment {
	d.Spec.Template.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": annotation}
	return d
}

// podDisruptionBudget covers a Deployment with minAvailable or maxUnavailable.
func podDisruptionBudget(name string, atLeast, atMost *intstr.IntOrString) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	b.Spec = policyv1.PodDisruptionBudgetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}, MinAvailable: atLeast, MaxUnavailable: atMost,
	}
	return b
}

type statefulSet = appsv1.StatefulSet

// statefulSetName is the name of the StatefulSet. Its pod needs one instance size, so that it rarely fits on an
// existing node.
const statefulSetName = "db"

func newStatefulSet(d *appsv1.Deployment) *statefulSet {
	set := &statefulSet{ObjectMeta: d.ObjectMeta}
	set.Spec.Selector, set.Spec.Template = d.Spec.Selector, d.Spec.Template
	set.Spec.Template.Spec.NodeSelector = map[string]string{"karpenter.k8s.aws/instance-size": "large"}
	set.Spec.Replicas = new(int32)
	return set
}

// scaleStatefulSet sets the StatefulSet's replicas, if it exists.
func scaleStatefulSet(w *embedded.EmbeddedCluster, replicas int32) {
	w.Kube.ChangeObject(cluster.StatefulSets, cluster.Key{Namespace: "default", Name: statefulSetName}, func(o cluster.Object) { o.(*statefulSet).Spec.Replicas = &replicas })
}

// scaleDeployment sets a Deployment's replicas.
func scaleDeployment(w *embedded.EmbeddedCluster, name string, replicas int32) error {
	key := cluster.Key{Namespace: "default", Name: name}
	if !w.Kube.ChangeObject(cluster.Deployments, key, func(o cluster.Object) { o.(*appsv1.Deployment).Spec.Replicas = &replicas }) {
		return fmt.Errorf("scaling %s: there is no such Deployment", name)
	}
	return nil
}
