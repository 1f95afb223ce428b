package documents

import (
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// terraformSteps are those of a tutorial about Karpenter 1.x.
var terraformSteps = []step{
	{tools, "install Helm", nil},
	{nodeRole, "the role KarpenterNodeRole in Terraform", (*reader).checkNodeRole},
	{servicesIAM, "the role of the controller in Terraform, with its policy", nil},
	{spotRole, "the service-linked role of EC2 Spot in Terraform", nil},
	{queues, "the queue SpotInterruptionQueue in Terraform", (*reader).checkQueue},
	{subnetTags, "tags on the subnets and the security group of the cluster", (*reader).checkTags},
	{nodeRole, "kubectl edit configmap aws-auth", nil},
	{values, "values.yaml", func(r *reader) {
		r.copyFile(converting+"testdata/helm-values.yaml", "printed.yaml")
		r.convertValues("-f printed.yaml --expand", "interruptionQueue: Karpenter-"+testbed.ClusterName+"-SpotInterruptionQueue")
	}},
	{helmInstall, "helm upgrade --install in kube-system", func(r *reader) { r.install("kube-system") }},
	{seePods, "the pod of the controller", (*reader).waitForDeployments},
	{variables, "${EKS_CLUSTER_NAME} and ${KARPENTER_NODE_ROLE}", func(r *reader) {
		r.copyFile(manifests+"seed-001-01.yaml", "nodeclass.yaml")
		r.runChanges("joist lint -f nodeclass.yaml", "the placeholder ${EKS_CLUSTER_NAME} is not filled in", "the placeholder ${KARPENTER_NODE_ROLE} is not filled in")
	}},
	{nodeClass, "the EC2NodeClass", func(r *reader) { r.applyReady("nodeclass.yaml", "ec2nodeclass/default") }},
	{nodePool, "the NodePool, with limit in place of limits", func(r *reader) {
		r.copyFile(manifests+"seed-001-02.yaml", "nodepool.yaml")
		r.runFails("kubectl apply -f nodepool.yaml", `unknown field "spec.limit"`)
		r.runChanges("joist lint -f nodepool.yaml", "nodepool.yaml:47:3: converted: spec.limit: the field is limits")
		r.applyReady("nodepool.yaml", "nodepool/default")
		r.runShows("kubectl get nodepool default -o jsonpath='{.spec.limits}'", `"cpu":20`, `"memory":"80Gi"`)
	}},
	{scaleUp, "pods without free capacity get a node", (*reader).inflateQuickstart},
	{readNodes, "the labels karpenter.k8s.aws/ of the new node", func(r *reader) {
		r.checkGraviton()
		r.runShows("kubectl get nodes -l karpenter.k8s.aws/instance-family=t4g -L karpenter.k8s.aws/instance-cpu", "ip-10-")
		for _, c := range r.Claims() {
			if c.Spec.ExpireAfter.Duration == nil || *c.Spec.ExpireAfter.Duration != 720*time.Hour || c.Spec.TerminationGracePeriod == nil || c.Spec.TerminationGracePeriod.Duration != 10*time.Minute {
				r.Errorf("NodeClaim %s has expireAfter %v and terminationGracePeriod %v", c.Name, c.Spec.ExpireAfter, c.Spec.TerminationGracePeriod)
			}
		}
	}},
	{deleteNode, "a node is deleted", func(r *reader) {
		node, pods := r.firstNode(), len(r.Pods("inflate"))
		r.run("kubectl delete node " + node.Name + " --timeout=60s")
		r.WaitUntil(time.Minute, "the instance to be terminated, and its NodeClaim removed", func() bool {
			record, _ := r.Cloud.Record(testbed.InstanceID(node.Spec.ProviderID))
			return !record.Gone.IsZero() && len(r.Claims()) == len(r.RunningInstances())
		})
		r.WaitForPods("inflate", pods)
		r.RequireNoOrphans()
	}},
	{removal, "kubectl delete nodepool, which waits for an approval that Karpenter does not need", func(r *reader) {
		r.run("kubectl delete nodepool default --wait=false")
		r.run("kubectl wait --for=condition=DeletionApproved=false nodepool/default" + readyTimeout)
		r.runShows("kubectl get events --all-namespaces --field-selector reason=DeletionAwaitsApproval", "Annotate it with joist.sh/approve=delete")
		r.requireSymptom("DeletionAwaitsApproval")
	}},
	{removal, "everything is removed", (*reader).removeAll},
}

// flatSteps are the same tutorial, whose manifests have lost their indentation. What it does in AWS is the same.
var flatSteps = []step{
	{tools, "install Helm", nil},
	{servicesIAM, "both roles and their policies in Terraform", nil},
	{queues, "the queue SpotInterruptionQueue in Terraform", (*reader).checkQueue},
	{subnetTags, "tags on the subnets and the security group of the cluster", (*reader).checkTags},
	{values, "values.yaml", func(r *reader) {
		r.copyFile(converting+"convert/testdata/values-flat.yaml", "printed.yaml")
		r.convertValues("-f printed.yaml --expand", "values: [\"default_node_group\"]")
	}},
	{helmInstall, "helm upgrade --install in kube-system", func(r *reader) { r.install("kube-system") }},
	{seePods, "the pod of the controller", (*reader).waitForDeployments},
	{nodeClass, "the EC2NodeClass", func(r *reader) {
		r.copyFile(manifests+"seed-000-01.yaml", "nodeclass.yaml")
		r.applyReady("nodeclass.yaml", "ec2nodeclass/default")
	}},
	{nodePool, "the NodePool", func(r *reader) {
		r.copyFile(manifests+"seed-000-02.yaml", "nodepool.yaml")
		r.applyReady("nodepool.yaml", "nodepool/default")
		// The same object as with the indentation.
		r.copyFile(manifests+"seed-001-02.yaml", "indented.yaml")
		r.run("joist convert -f indented.yaml --expand | kubectl diff -f -")
	}},
	{scaleUp, "pods without free capacity get a node", (*reader).inflateQuickstart},
	{readNodes, "the labels karpenter.k8s.aws/ of the new node", (*reader).checkGraviton},
	{removal, "everything is removed", (*reader).removeAll},
}

// checkNodeRole checks that the stack has created the role, which EC2NodeClasses name.
func (r *reader) checkNodeRole() {
	if want := "KarpenterNodeRole-" + testbed.ClusterName; r.AWS.Role != want {
		r.Errorf("the stack's role of the nodes is %s, want %s", r.AWS.Role, want)
	}
}

// checkQueue checks that the stack has a queue for interruptions, to which AWS's events go.
func (r *reader) checkQueue() {
	if _, ok := r.Broker.FindQueue(testbed.ClusterName); !ok {
		r.Errorf("the stack has the queues %v", r.Broker.Queues())
	}
}

func (r *reader) checkTags() {
	for _, subnet := range r.AWS.Subnets {
		if subnet.Tags["karpenter.sh/discovery"] != testbed.ClusterName {
			r.Errorf("subnet %s has the tags %v", subnet.ID, subnet.Tags)
		}
	}
	if r.AWS.SecurityGroup.Tags["karpenter.sh/discovery"] != testbed.ClusterName {
		r.Errorf("the security group has the tags %v", r.AWS.SecurityGroup.Tags)
	}
}

// convertValues writes values.yaml for Joist's chart, and checks a line of it.
func (r *reader) convertValues(arguments, line string) {
	r.Helper()
	r.runChanges("joist lint "+arguments, "settings.region: missing: Joist's chart requires it")
	r.runChanges("joist convert " + arguments + " > values.yaml")
	r.runShows("cat values.yaml", line)
}

// applyReady converts a file, creates its objects, and waits until one of them is ready.
func (r *reader) applyReady(file, object string) {
	r.Helper()
	r.run("joist convert -f " + file + " --expand | kubectl apply -f -")
	r.run("kubectl wait --for=condition=Ready " + object + readyTimeout)
}

// inflateQuickstart creates five pods of one CPU each, for which the node group has too little capacity.
func (r *reader) inflateQuickstart() {
	r.copyFile(testbed.Root+"/deploy/quickstart/inflate.yaml", "inflate.yaml")
	r.run("kubectl apply -f inflate.yaml")
	r.WaitForPods("inflate", 5)
	r.RequireNoOrphans()
}

// checkGraviton checks the requirements of the tutorial's NodePool.
func (r *reader) checkGraviton() {
	r.requireLabels(map[string]string{
		karpenter.NodePoolLabelKey: "default", karpenter.LabelEC2NodeClass: "default", karpenter.LabelInstanceFamily: "t4g", karpenter.CapacityTypeLabelKey: "spot",
		"topology.kubernetes.io/zone": "ap-northeast-2a", "kubernetes.io/arch": "arm64", karpenter.NodeInitializedLabelKey: "true",
	})
	for _, class := range cluster.ListCached[*karpenter.EC2NodeClass](r.Cache, cluster.NodeClasses) {
		if len(class.Status.Subnets) != len(r.AWS.Subnets) {
			r.Errorf("the EC2NodeClass has %d subnets, and %d are tagged", len(class.Status.Subnets), len(r.AWS.Subnets))
		}
	}
	r.runShows("joist report", "Prices of ap-northeast-2 are those of the AWS account", "after consolidation")
}
