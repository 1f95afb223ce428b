package documents

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// cloudformationSteps are those of a tutorial about Karpenter 0.26.
var cloudformationSteps = []step{
	{tools, "install the AWS CLI, eksctl, kubectl and Helm", nil},
	{stackDeploy, "aws cloudformation deploy of cloudformation.yaml: roles, queue and rules", (*reader).addProfile},
	{newCluster, "eksctl create cluster, with the ServiceAccount and the identity mapping", nil},
	{nodeRole, "iamIdentityMappings of the ClusterConfig", nil},
	{servicesIAM, "the ServiceAccount of the ClusterConfig", nil},
	{spotRole, "aws iam create-service-linked-role, whose error means that the role exists", func(r *reader) {
		r.requireSymptom("Service role name AWSServiceRoleForEC2Spot has been taken in this account")
	}},
	{values, "helm --set settings.aws.…", func(r *reader) {
		r.convertValues(setRole+` --set settings.aws.clusterName=$CLUSTER_NAME --set settings.aws.defaultInstanceProfile=`+profile+
			` --set settings.aws.interruptionQueueName=$CLUSTER_NAME --set nameOverride=karpenter`, "interruptionQueue: "+testbed.ClusterName)
	}},
	{helmInstall, "helm upgrade --install in the namespace karpenter", func(r *reader) { r.install("karpenter") }},
	{seePods, "--wait", (*reader).waitForDeployments},
	{nodePool, "the Provisioner and the AWSNodeTemplate", func(r *reader) {
		r.copyFile(manifests+"seed-003-02.yaml", "provisioner.yaml")
		r.applyProvisioner("settings.aws.defaultInstanceProfile")
	}},
	{nodePool, "requirements on category and generation, which are the defaults", func(r *reader) {
		r.runShows("kubectl get nodepool default -o jsonpath='{.spec.template.spec.requirements}'",
			`{"key":"karpenter.k8s.aws/instance-category","operator":"In","values":["c","m","r"]}`, `{"key":"karpenter.k8s.aws/instance-generation","operator":"Gt","values":["2"]}`)
	}},
	{readNodes, "only the two nodes of the node group", func(r *reader) {
		if out := r.run("kubectl get nodes --no-headers"); strings.Count(out, "\n") != 2 || strings.Contains(out, "ip-10-") {
			r.Errorf("the nodes are\n%s", out)
		}
	}},
	{workload, "the Deployment inflate with 0 replicas", func(r *reader) {
		r.copyFile(manifests+"seed-003-03.yaml", "inflate.yaml")
		r.run("joist convert -f inflate.yaml | kubectl apply -f -")
	}},
	{scaleUp, "kubectl scale deployment inflate --replicas 5", func(r *reader) {
		r.runChanges("joist convert -f inflate.yaml | sed 's/replicas: 0/replicas: 5/' | joist plan -f - -f nodepool.yaml --region "+testbed.Region, "to launch", "spot")
		r.scale(5)
		r.checkSpot()
	}},
	{readLogs, "kubectl logs -l app.kubernetes.io/name=karpenter -c controller", func(r *reader) {
		r.runShows("kubectl get pods --namespace karpenter -l app.kubernetes.io/name=karpenter -o jsonpath='{.items[*].spec.containers[*].name}'", "controller")
		pod := r.firstPod()
		r.runShows("joist explain pod "+pod.Name+" --store $STORE", "planned again from the recorded documents, byte for byte as recorded", "PRICE RANK")
		r.traceNode(r.firstNode().Name, "launch.requested.v1", "launch.settled.v1")
	}},
	{scaleDown, "kubectl scale deployment inflate --replicas 0: ttlSecondsAfterEmpty is 30", func(r *reader) {
		node := r.firstNode().Name
		began := time.Now()
		r.scale(0)
		r.runShows("joist explain node "+node+" --store $STORE", node)
		r.waitUntilEmpty(3 * time.Minute)
		if took := time.Since(began); took < 30*time.Second {
			r.Errorf("the nodes are removed after %s, but ttlSecondsAfterEmpty is 30", took)
		}
	}},
	{readLogs, "kubectl logs, with the reason of the removal", func(r *reader) {
		r.runShows("kubectl get events --all-namespaces --field-selector reason=DisruptionTerminating", "Empty")
	}},
	{removal, "everything is removed", (*reader).removeAll},
}

// eksctlSteps are those of a tutorial about Karpenter 0.17.
var eksctlSteps = []step{
	{variables, "export KARPENTER_VERSION, CLUSTER_NAME, AWS_DEFAULT_REGION and AWS_ACCOUNT_ID", func(r *reader) {
		r.copyFile(manifests+"seed-002-02.yaml", "provisioner.yaml")
		r.runChanges("joist lint -f provisioner.yaml", "the placeholder ${CLUSTER_NAME} is not filled in")
	}},
	{newCluster, "the ClusterConfig of eksctl, of which Joist needs nothing", func(r *reader) {
		r.copyFile(manifests+"seed-002-01.yaml", "cluster.yaml")
		r.runChanges("joist lint -f cluster.yaml", "duplicate key name")
	}},
	{stackDeploy, "aws cloudformation deploy of cloudformation.yaml", nil},
	{nodeRole, "eksctl create iamidentitymapping", nil},
	{servicesIAM, "eksctl create iamserviceaccount", nil},
	{values, "helm --set clusterName and aws.defaultInstanceProfile", func(r *reader) {
		r.convertValues(setRole+` --set clusterName=$CLUSTER_NAME --set clusterEndpoint=$CLUSTER_ENDPOINT --set aws.defaultInstanceProfile=`+profile, "clusterName: "+testbed.ClusterName)
	}},
	{helmInstall, "helm fails with an old kubeconfig", func(r *reader) {
		r.RequireNoError(os.WriteFile(filepath.Join(r.folder, "old.kubeconfig"), []byte(oldKubeconfig), 0o600))
		r.runFails("helm list --kubeconfig old.kubeconfig", `Kubernetes cluster unreachable: exec plugin: invalid apiVersion "client.authentication.k8s.io/v1alpha1"`)
	}},
	{helmInstall, "helm upgrade --install in the namespace karpenter", func(r *reader) { r.install("karpenter") }},
	{seePods, "--wait", (*reader).waitForDeployments},
	{nodePool, "the Provisioner and the AWSNodeTemplate", func(r *reader) { r.applyProvisioner("aws.defaultInstanceProfile") }},
	{workload, "the Deployment inflate, with an image that does not exist any more", func(r *reader) {
		r.copyFile(manifests+"seed-002-03.yaml", "inflate.yaml")
		r.runShows("joist convert -f inflate.yaml | kubectl apply -f - && kubectl get deployment inflate -o yaml", "image: public.ecr.aws/eks-distro/kubernetes/pause:3.7")
	}},
	{scaleUp, "pods get nodes automatically", func(r *reader) {
		r.scale(4)
		r.checkSpot()
	}},
	{removal, "everything is removed", (*reader).removeAll},
}

// setRole is the first value that the older tutorials give to helm.
const setRole = `--set serviceAccount.annotations."eks\.amazonaws\.com/role-arn"=$KARPENTER_IAM_ROLE_ARN`

// oldKubeconfig is what old versions of the AWS CLI wrote.
const oldKubeconfig = `apiVersion: v1
kind: Config
current-context: old
contexts: [{name: old, context: {cluster: old, user: old}}]
clusters: [{name: old, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: old, user: {exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: aws}}}]
`

// addProfile creates the instance profile of Karpenter's template.
func (r *reader) addProfile() {
	r.RequireNoError(r.Cloud.CreateProfile(r.Context(), cloud.Profile{Name: profile, Path: "/", Role: r.AWS.Role}))
}

// applyProvisioner applies provisioner.yaml with the instance profile of the Helm values. Its images are AL2, which EKS does not
// have any more; the reader follows the remark of joist convert.
func (r *reader) applyProvisioner(profileValue string) {
	r.Helper()
	// The file has lost its indentation; with it, kubectl reports the version.
	r.runFails("kubectl create -f - <<< '{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, metadata: {name: default}}'", `no matches for kind "Provisioner"`)
	r.runChanges("joist convert -f provisioner.yaml --set "+profileValue+"="+profile+" --expand --values settings.yaml > nodepool.yaml",
		"Provisioner of karpenter.sh/v1alpha5 is now NodePool of karpenter.sh/v1", "AWSNodeTemplate of karpenter.k8s.aws/v1alpha1 is now EC2NodeClass of karpenter.k8s.aws/v1",
		"move to AL2023 with amiSelectorTerms: [{alias: al2023@latest}]")
	r.run("kubectl apply -f nodepool.yaml")
	r.run("kubectl wait --for=condition=AMIsReady=false ec2nodeclass/default" + readyTimeout)
	r.runShows("kubectl get ec2nodeclass default -o yaml", "UnsupportedAlias", "al2023")
	r.requireSymptom("UnsupportedAlias")
	r.run("sed -i s/al2@latest/al2023@latest/ nodepool.yaml && kubectl apply -f nodepool.yaml")
	r.run("kubectl wait --for=condition=Ready ec2nodeclass/default nodepool/default" + readyTimeout)
	r.runShows("kubectl get nodepool default -o yaml", "consolidationPolicy: WhenEmpty\n", "consolidateAfter: 30s", "cpu: 1000")
}

// checkSpot checks the requirements of the Provisioner.
func (r *reader) checkSpot() {
	r.Helper()
	r.requireLabels(map[string]string{
		karpenter.NodePoolLabelKey: "default", karpenter.CapacityTypeLabelKey: "spot", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", karpenter.NodeInitializedLabelKey: "true",
	})
	for _, node := range r.ManagedNodes() {
		if category := node.Labels[karpenter.LabelInstanceCategory]; !strings.Contains("cmr", category) {
			r.Errorf("node %s has the category %q", node.Name, category)
		}
	}
	for _, record := range r.RunningInstances() {
		template, ok := r.Cloud.Template(record.Template)
		if ok && template.InstanceProfile != profile {
			r.Errorf("instance %s has the profile %s, want %s", record.ID, template.InstanceProfile, profile)
		}
	}
	r.runShows("kubectl get nodes -l karpenter.sh/nodepool=default", "Ready")
	r.runShows("joist report", "Prices of ap-northeast-2 are those of the AWS account", "after consolidation")
	r.RequireNoOrphans()
}

// traceNode runs joist trace on the logs of all services.
func (r *reader) traceNode(name string, wants ...string) {
	r.Helper()
	r.run("cat " + strings.Join(r.ServiceLogs(), " ") + " > services.jsonl")
	r.runShows("joist trace node "+name+" --store $STORE --log services.jsonl", wants...)
}
