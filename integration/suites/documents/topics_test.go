package documents

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/golden"
	"github.com/joist-autoscaler/joist/integration/environment/testbed"
)

// topic is a kind of step of the tutorials, and a row of the page.
type topic struct {
	// tutorial is what tutorials do, and joist what a reader does with Joist, in Markdown.
	tutorial, joist string
	// tests cover what cannot run here.
	tests []string
}

// The topics, in the order of the page.
var (
	tools       = &topic{"Install the AWS CLI, eksctl, kubectl and Helm", "The same, and Node for the CDK, or Terraform. `joist doctor` reports tools that are missing or too old", []string{"TestDoctorFinds", "TestLint"}}
	variables   = &topic{"`export CLUSTER_NAME=… KARPENTER_VERSION=…`", "The same; `joist convert --expand` fills them in, and `joist lint` names each one that is not set", nil}
	newCluster  = &topic{"Create the cluster: eksctl, Terraform", "The same, with a version that EKS supports; Joist's [Terraform example](../terraform/README.md) creates one, too. Give Joist's pods a small node group", []string{"TestTerraformModule"}}
	nodeRole    = &topic{"IAM role and instance profile of the nodes, aws-auth or `iamidentitymapping`", "Joist's stack creates `KarpenterNodeRole-<cluster>` and its access entry, or [adopts](../../infra/README.md#a-set-up-of-karpenters-that-is-there-already) yours", []string{"TestNodePolicies", "TestAdoptedResources", "TestDoctorFinds"}}
	servicesIAM = &topic{"IAM role and policy of the controller, `iamserviceaccount`, IRSA", "Joist's stack creates a role for each service. Karpenter's is not used", []string{"TestAttacksAreDenied", "TestLegitimateCallsAreAllowed", "TestEveryRightIsNeeded"}}
	stackDeploy = &topic{"`aws cloudformation deploy` of Karpenter's template", "`cdk deploy`, or the Terraform module; with [adopt](../../infra/README.md#a-set-up-of-karpenters-that-is-there-already) the resources of Karpenter's template remain in use", []string{"TestMotoDeploy", "TestLocalStackDeploy", "TestModuleEqualsTemplate"}}
	queues      = &topic{"SQS queue and EventBridge rules for interruptions", "Part of Joist's stack; `interruptionQueue` of the values is not read in the cluster", nil}
	subnetTags  = &topic{"Tag subnets and security groups with `karpenter.sh/discovery`", "The same tags", nil}
	spotRole    = &topic{"`aws iam create-service-linked-role` for EC2 Spot", "Part of Joist's stack, also if the role exists; `joist doctor` reports a missing one", []string{"TestCreateServiceLinkedRole", "TestDoctorFinds"}}
	values      = &topic{"`values.yaml`, or `--set` of `helm`", "`joist convert -f values.yaml`, or `joist convert --set settings.aws.clusterName=prod`, writes the values for Joist's chart", nil}
	helmInstall = &topic{"Install Karpenter's chart with Helm", "The command that the stack prints, with `--values` and the converted values, in the same namespace", nil}
	seePods     = &topic{"Look at Karpenter's pods", "`kubectl get pods`: two Deployments, `joist-watcher` and `joist-lifecycle`", nil}
	nodeClass   = &topic{"Create the EC2NodeClass or AWSNodeTemplate", "`joist convert -f nodeclass.yaml | kubectl apply -f -`", nil}
	nodePool    = &topic{"Create the NodePool or Provisioner", "`joist convert -f nodepool.yaml | kubectl apply -f -`; give it both files if the kubelet is set", nil}
	globals     = &topic{"ConfigMaps `karpenter-global-settings` and `config-logging`", "`joist convert --values values.yaml` writes them as values of the chart", nil}
	workload    = &topic{"Create the Deployment `inflate` with 0 replicas", "The same; `joist convert` replaces images that do not exist any more", nil}
	scaleUp     = &topic{"`kubectl scale deployment inflate --replicas 5`", "The same. Before, `joist plan` prints the nodes and their price", nil}
	readNodes   = &topic{"`kubectl get nodes`, and their labels", "The same; `joist report` adds what they cost", nil}
	readLogs    = &topic{"`kubectl logs` of Karpenter's controller", "`joist explain pod NAME` and `joist trace node NAME`. With the value `nameOverride: karpenter` the tutorial's selector also finds Joist's logs", nil}
	scaleDown   = &topic{"`kubectl scale deployment inflate --replicas 0`", "The same; `joist explain node NAME` prints why a node stays, `kubectl get events` why one goes", nil}
	poolLimits  = &topic{"`limits` of a NodePool", "The same; a pod over the limit stays pending, and its Event and `joist explain pod NAME` name the limit", nil}
	keepPod     = &topic{"`karpenter.sh/do-not-disrupt` on a pod", "The same, as a quoted string", nil}
	change      = &topic{"Change the NodePool or the image: drift", "The same; `joist simulate --pool-change FILE` prints what would be replaced", nil}
	deleteNode  = &topic{"`kubectl delete node`", "The same: the finalizer drains the node and terminates its instance", nil}
	removal     = &topic{"Remove everything", "NodePools, then EC2NodeClasses, then the chart, then the stack: [Uninstall](uninstall.md)", []string{"TestUninstall"}}

	topics = []*topic{
		tools, variables, newCluster, nodeRole, servicesIAM, stackDeploy, queues, subnetTags, spotRole, values, helmInstall, seePods, globals, nodeClass, nodePool,
		workload, scaleUp, readNodes, readLogs, scaleDown, poolLimits, keepPod, change, deleteNode, removal,
	}
)

const (
	page       = testbed.Root + "/deploy/docs/tutorials.md"
	tableBegin = "<!-- steps: `go test ./suites/documents -run TestPage -update` in integration writes this table -->\n"
	tableEnd   = "<!-- end of the steps -->\n"
)

// TestPage compares the table of the page with the topics.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), tableBegin)
	_, after, ended := strings.Cut(rest, tableEnd)
	if !found || !ended {
		t.Fatalf("%s has not the lines %s and %s", page, tableBegin, tableEnd)
	}
	golden.Compare(t, page, before+tableBegin+stepTable()+tableEnd+after)
}

// stepTable returns the rows of the page. Every topic runs here, or names the tests that cover it.
func stepTable() string {
	var b strings.Builder
	b.WriteString("\n| the tutorial | with Joist | tested by |\n|---|---|---|\n")
	for _, topic := range topics {
		tests := slices.Clone(topic.tests)
		if topic.runs() {
			tests = append([]string{"TestDocuments"}, tests...)
		}
		fmt.Fprintf(&b, "| %s | %s | `%s` |\n", topic.tutorial, topic.joist, strings.Join(tests, "`, `"))
	}
	b.WriteString("\n")
	return b.String()
}

// runs reports whether a step of the topic runs here.
func (t *topic) runs() bool {
	return slices.ContainsFunc(documents, func(d document) bool {
		return slices.ContainsFunc(d.steps, func(s step) bool { return s.topic == t && s.play != nil })
	})
}

// TestSteps requires that no step is left out: each runs here, or its topic names the tests that cover it. Every topic occurs in a
// document.
func TestSteps(t *testing.T) {
	used := map[*topic]bool{}
	for _, d := range documents {
		for _, s := range d.steps {
			used[s.topic] = true
			if s.play == nil && len(s.topic.tests) == 0 {
				t.Errorf("%s: step %q does not run here, and its topic names no test", d.name, s.does)
			}
		}
	}
	for _, topic := range topics {
		if !used[topic] {
			t.Errorf("no document has the topic %q", topic.tutorial)
		}
		delete(used, topic)
	}
	for topic := range used {
		t.Errorf("the page has no row for the topic %q", topic.tutorial)
	}
}
