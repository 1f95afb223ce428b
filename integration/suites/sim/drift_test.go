package sim_test

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// strictNodePool returns a NodePool with a requirement for each kind of label and no disruption.
func strictNodePool() *karpenter.NodePool {
	wants := func(key string, operator corev1.NodeSelectorOperator, values ...string) karpenter.NodeSelectorRequirementWithMinValues {
		return karpenter.NodeSelectorRequirementWithMinValues{Key: key, Operator: operator, Values: values}
	}
	pool := &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	pool.Spec.Template.Spec = karpenter.NodeClaimTemplateSpec{
		NodeClassRef: &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "default"},
		Requirements: []karpenter.NodeSelectorRequirementWithMinValues{
			wants(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "amd64", "arm64"),
			wants(corev1.LabelOSStable, corev1.NodeSelectorOpIn, "linux"),
			wants(karpenter.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, "spot", "on-demand"),
			wants(karpenter.LabelInstanceCategory, corev1.NodeSelectorOpIn, "c", "m", "r"),
			wants(karpenter.LabelInstanceGeneration, corev1.NodeSelectorOpGt, "5"),
			wants(karpenter.LabelInstanceCPU, corev1.NodeSelectorOpLt, "9"),
			wants(karpenter.LabelInstanceHypervisor, corev1.NodeSelectorOpIn, "nitro"),
			wants(karpenter.LabelInstanceLocalNVME, corev1.NodeSelectorOpDoesNotExist),
			wants(corev1.LabelTopologyZone, corev1.NodeSelectorOpExists),
			wants(karpenter.LabelTopologyZoneID, corev1.NodeSelectorOpExists),
			wants(corev1.LabelTopologyRegion, corev1.NodeSelectorOpExists),
			wants("team", corev1.NodeSelectorOpIn, "web"),
		},
	}
	pool.Spec.Template.Labels = map[string]string{"team": "web"}
	pool.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "0"}}
	return pool
}

// nodeClassAndDeployment returns a node class, a Deployment of five pods with three CPUs each, and the tags of the
// subnets and security groups.
func nodeClassAndDeployment(w *embedded.EmbeddedCluster) (*karpenter.EC2NodeClass, *appsv1.Deployment, map[string]string) {
	replicas, labels := int32(5), map[string]string{"app": "web"}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	web.Spec.Replicas, web.Spec.Selector, web.Spec.Template.Labels = &replicas, &metav1.LabelSelector{MatchLabels: labels}, labels
	web.Spec.Template.Spec.Containers = []corev1.Container{{Name: "pause", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")},
	}}}
	family, discovery := karpenter.AMIFamilyAL2023, map[string]string{"karpenter.sh/discovery": w.Cluster}
	return &karpenter.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: karpenter.EC2NodeClassSpec{
		AMIFamily: &family, Role: w.AWS.Role, AMISelectorTerms: []karpenter.AMISelectorTerm{{Alias: "al2023@latest"}},
		SubnetSelectorTerms:        []karpenter.SubnetSelectorTerm{{Tags: discovery}},
		SecurityGroupSelectorTerms: []karpenter.SecurityGroupSelectorTerm{{Tags: discovery}},
	}}, web, discovery
}

// A node does not drift while it matches its NodePool and node class. It drifts when one of them, or the
// recommended image, changes.
func TestDriftIsSeenThroughAllServices(t *testing.T) {
	ctx := context.Background()
	w, err := embedded.New(embedded.Options{Seed: 1, Region: "us-west-2", Families: []string{"m6i", "m6g", "c7g", "r6i"}})
	if err != nil {
		t.Fatal(err)
	}
	class, web, discovery := nodeClassAndDeployment(w)
	if err := w.Apply(ctx, class, strictNodePool(), web); err != nil {
		t.Fatal(err)
	}
	pool := func(change func(*karpenter.NodePool)) {
		w.Kube.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) { change(o.(*karpenter.NodePool)) })
	}
	for _, step := range []struct {
		name   string
		change func()
		after  time.Duration
		want   string
	}{
		{"nothing", func() {}, 70 * time.Minute, ""},
		{"a security group is tagged for the cluster", func() { w.Cloud.AddSecurityGroup(cloud.SecurityGroup{Name: "more", Tags: discovery}) }, 3 * time.Minute, "SecurityGroupDrift"},
		{"AWS publishes other images", func() {
			for _, arch := range []string{"x86_64", "arm64"} {
				id := w.Cloud.AddImage(cloud.Image{Name: "newer-" + arch, Arch: map[string]string{"x86_64": "amd64", "arm64": "arm64"}[arch], Owner: "amazon"}).ID
				w.Cloud.SetParameter("/aws/service/eks/optimized-ami/"+w.AWS.Cluster.Version+"/amazon-linux-2023/"+arch+"/standard/recommended/image_id", id)
			}
		}, 3 * time.Minute, "AMIDrift"},
		{"AWS sells other types", func() { w.Catalogue.Types = []catalog.InstanceType{{Name: "m9i.large"}} }, 3 * time.Minute, "InstanceTypeNotFound"},
		{"the pool wants another generation", func() {
			pool(func(p *karpenter.NodePool) { p.Spec.Template.Spec.Requirements[4].Values = []string{"8"} })
		}, time.Minute, "RequirementsDrifted"},
		{"the pool gives its nodes another label", func() {
			pool(func(p *karpenter.NodePool) { p.Spec.Template.Labels["tier"] = "gold" })
		}, time.Minute, "NodePoolDrifted"},
		{"the pool is as it was", func() {
			pool(func(p *karpenter.NodePool) {
				delete(p.Spec.Template.Labels, "tier")
				p.Spec.Template.Spec.Requirements[4].Values = []string{"5"}
			})
		}, time.Minute, "InstanceTypeNotFound"},
	} {
		step.change()
		if _, err := w.Run(ctx, step.after, func() bool { return false }); err != nil {
			t.Fatal(err)
		}
		claims, err := cluster.List[*karpenter.NodeClaim](ctx, w.Kube, cluster.NodeClaims)
		if err != nil || len(claims) == 0 {
			t.Fatalf("%s: %d claims, %v", step.name, len(claims), err)
		}
		for _, c := range claims {
			drifted, _ := c.Status.Conditions.Get(karpenter.ConditionTypeDrifted)
			if !c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) || drifted.Reason != step.want {
				t.Errorf("%s: claim %s of a %s: %q, want %q; conditions %+v", step.name, c.Name, c.Labels[corev1.LabelInstanceTypeStable], drifted.Reason, step.want, c.Status.Conditions)
			}
		}
	}
}
