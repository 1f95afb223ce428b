package clustertest

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

func (s *suite) lease(name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: s.meta(name), Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("me"), LeaseDurationSeconds: new(int32(15)),
	}}
}

func (s *suite) claim(name string) *karpenter.NodeClaim {
	return &karpenter.NodeClaim{ObjectMeta: s.global(name), Spec: karpenter.NodeClaimSpec{
		Requirements: []karpenter.NodeSelectorRequirementWithMinValues{{
			Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"},
		}},
		NodeClassRef: &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "default"},
	}}
}

// kinds round-trips one object of each kind that is valid with few fields.
func kinds(s *suite) {
	create(s, s.lease("a"))
	if got := get[*coordinationv1.Lease](s, cluster.Leases, s.key("a")); *got.Spec.HolderIdentity != "me" {
		s.Errorf("lease holder = %q", *got.Spec.HolderIdentity)
	}
	node := create(s, &corev1.Node{ObjectMeta: s.global("a"), Spec: corev1.NodeSpec{ProviderID: "aws:///zone/i-1"}})
	if got := get[*corev1.Node](s, cluster.Nodes, cluster.KeyOf(node)); got.Spec.ProviderID != "aws:///zone/i-1" {
		s.Errorf("provider ID of the node = %q", got.Spec.ProviderID)
	}
	class := create(s, &storagev1.StorageClass{ObjectMeta: s.global("a"), Provisioner: "ebs.csi.aws.com"})
	if got := get[*storagev1.StorageClass](s, cluster.StorageClasses, cluster.KeyOf(class)); got.Provisioner != "ebs.csi.aws.com" {
		s.Errorf("provisioner of the storage class = %q", got.Provisioner)
	}
	priority := create(s, &schedulingv1.PriorityClass{ObjectMeta: s.global("a"), Value: 7})
	pod := s.pod("a")
	pod.Spec.PriorityClassName = priority.Name
	create(s, pod)
	if got := get[*corev1.Pod](s, cluster.Pods, s.key("a")); got.Spec.Priority == nil || *got.Spec.Priority != 7 {
		s.Errorf("priority of the pod = %v", got.Spec.Priority)
	}
	system := get[*corev1.Namespace](s, cluster.Namespaces, cluster.Key{Name: metav1.NamespaceSystem})
	if system.UID == "" {
		s.Error("the namespace kube-system has no UID")
	}
}

// claimTemplate returns the template of a NodePool whose NodeClaims are like claim's.
func (s *suite) claimTemplate() karpenter.NodeClaimTemplate {
	like := s.claim("a").Spec
	return karpenter.NodeClaimTemplate{Spec: karpenter.NodeClaimTemplateSpec{Requirements: like.Requirements, NodeClassRef: like.NodeClassRef}}
}

func customKinds(s *suite) {
	claim := create(s, s.claim("a"))
	if got := get[*karpenter.NodeClaim](s, cluster.NodeClaims, cluster.KeyOf(claim)); got.Spec.NodeClassRef.Name != "default" {
		s.Errorf("node class of the claim = %+v", got.Spec.NodeClassRef)
	}
	pool := create(s, &karpenter.NodePool{ObjectMeta: s.global("a"), Spec: karpenter.NodePoolSpec{
		Template: s.claimTemplate(), Limits: karpenter.Limits{corev1.ResourceCPU: resource.MustParse("100")},
	}})
	got := get[*karpenter.NodePool](s, cluster.NodePools, cluster.KeyOf(pool))
	if limit := got.Spec.Limits[corev1.ResourceCPU]; limit.Value() != 100 {
		s.Errorf("limits of the pool = %v", got.Spec.Limits)
	}
	got.Spec.Weight = new(int32(5))
	if stored := update(s, got); stored.Generation != pool.Generation+1 {
		s.Errorf("a spec update changed the generation from %d to %d", pool.Generation, stored.Generation)
	}
	class := create(s, &karpenter.EC2NodeClass{ObjectMeta: s.global("a"), Spec: karpenter.EC2NodeClassSpec{
		AMISelectorTerms:           []karpenter.AMISelectorTerm{{Alias: "al2023@latest"}},
		SubnetSelectorTerms:        []karpenter.SubnetSelectorTerm{{ID: "subnet-1"}},
		SecurityGroupSelectorTerms: []karpenter.SecurityGroupSelectorTerm{{ID: "sg-1"}},
		Role:                       "nodes",
	}})
	if read := get[*karpenter.EC2NodeClass](s, cluster.NodeClasses, cluster.KeyOf(class)); read.Spec.AMISelectorTerms[0].Alias != "al2023@latest" {
		s.Errorf("images of the node class = %+v", read.Spec.AMISelectorTerms)
	}
	listed, err := cluster.List[*karpenter.NodeClaim](s.ctx(), s.Client, cluster.NodeClaims)
	if err != nil || len(listed) == 0 {
		s.Errorf("%d claims listed: %v", len(listed), err)
	}
}

// status checks that the status and the rest are written separately, and that the
// generation counts only changes of the spec.
func status(s *suite) {
	object := s.claim("a")
	object.Status.NodeName = "set on create"
	made := create(s, object)
	if made.Status.NodeName != "" || made.Generation != 1 {
		s.Fatalf("created claim: status %+v, generation %d, want an empty status and generation 1", made.Status, made.Generation)
	}

	change := made.DeepCopy()
	change.Status.NodeName = "n"
	change.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}
	change.Labels = map[string]string{"joist.example/a": "b"}
	told := updateStatus(s, change)
	if told.Status.NodeName != "n" || told.Labels["joist.example/a"] != "" || len(told.Spec.Taints) != 0 || told.Generation != 1 {
		s.Errorf("object after a status update: %+v", told)
	}
	if told.ResourceVersion == made.ResourceVersion {
		s.Error("a status update did not change the version")
	}
	change.Status.NodeName = "lost"
	_, err := s.Client.UpdateStatus(s.ctx(), change)
	s.wantKind(err, "conflict", "status update of an old version")

	told.Status.NodeName = "no"
	told.Annotations = map[string]string{"joist.example/a": "b"}
	noted := update(s, told)
	if noted.Status.NodeName != "n" || noted.Annotations["joist.example/a"] != "b" || noted.Generation != 1 {
		s.Errorf("after an annotation update: status %+v, annotations %v, generation %d", noted.Status, noted.Annotations, noted.Generation)
	}
}
