package stack

import (
	"fmt"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/joist-autoscaler/joist/infra/config"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// addOutputs adds the outputs for the charts and for users. Their names are those of the
// outputs of terraform-aws-eks' module karpenter.
func (p clusterStack) addOutputs() {
	k, queue := p.cluster, p.queues["interruption"]
	p.addOutput("QueueName", "The queue of interruption events", queue.Name)
	p.addOutput("QueueArn", "Its ARN", queue.ARN)
	p.addOutput("QueueUrl", "Its URL", queue.URL)
	p.addOutput("NodeIamRoleName", "The nodes' role: spec.role of EC2NodeClasses", k.Node.Role)
	p.addOutput("NodeIamRoleArn", "Its ARN", nodeRoleARN(p.place, k))
	if k.Node.Profiles == config.ByInstanceProfile {
		p.addOutput("InstanceProfileName", "The nodes' instance profile: spec.instanceProfile of EC2NodeClasses", k.Node.Profile)
	}
	p.addOutput("Namespace", "The namespace of the charts", k.Namespace)
	p.addOutput("Bucket", "The bucket of Joist's documents", p.bucket)
	p.addOutput("EventBus", "The event bus", k.Plan.Bus)
	for _, service := range topology.ClusterServices {
		p.addOutput(titleCase(service)+"IamRoleArn", "The role of the service account "+serviceAccount(service), p.roleARN(service))
		p.addOutput(titleCase(service)+"ServiceAccount", "The service account of "+service, serviceAccount(service))
	}
	for _, q := range k.Plan.Queues {
		if q.Service != "interruption" {
			p.addOutput(titleCase(q.Service)+"QueueUrl", "The queue of "+q.Service, p.queues[q.Service].URL)
		}
	}
	if k.Node.Access == config.AWSAuth {
		p.addOutput("AwsAuth", "Command that lets nodes join the cluster; run it once", awsAuthCommand(p.place, k))
	}
	if queue.Existing && k.Queue.Visibility > queue.Visibility {
		p.addOutput("LowerVisibility", "Command that sets the existing queue's visibility timeout, so that a spot warning survives a throttled invocation; then deploy again with the queueVisibility in it",
			fmt.Sprintf("aws sqs set-queue-attributes --queue-url %s --attributes VisibilityTimeout=%.0f,SqsManagedSseEnabled=true # queueVisibility=%s",
				queue.URL, queue.Visibility.Seconds(), queue.Visibility))
	}
	if !p.config.SpotRole {
		p.addOutput("SpotServiceLinkedRole", "Command to run once per account, if the account has not used spot instances yet",
			"aws iam create-service-linked-role --aws-service-name spot.amazonaws.com || true")
	}
	p.addOutput("HelmCommand", "Command that installs the charts", p.helmCommand())
}

// awsAuthCommand returns the command that adds the nodes' role to the aws-auth ConfigMap, whose
// ARNs must not have a path
// (https://docs.aws.amazon.com/eks/latest/userguide/auth-configmap.html). kube-proxy of Windows
// nodes has the node's identity and needs the last group
// (https://docs.aws.amazon.com/eks/latest/userguide/windows-support.html). Linux nodes run
// kube-proxy as a pod, whose ServiceAccount has the same permissions.
func awsAuthCommand(p place, k config.Cluster) string {
	return "eksctl create iamidentitymapping --cluster " + k.Name + " --region " + p.region + " --arn " + p.iamARN("role/"+k.Node.Role) +
		" --username 'system:node:{{EC2PrivateDNSName}}' --group system:bootstrappers --group system:nodes --group eks:kube-proxy-windows"
}

func (p clusterStack) addOutput(name, description, value string) {
	out := awscdk.NewCfnOutput(p.scope, jsii.String("Output"+name), &awscdk.CfnOutputProps{
		Description: jsii.String(description), Value: jsii.String(value),
	})
	id := name
	if len(p.config.Clusters) > 1 {
		id = logicalName(p.cluster.Name) + name
	}
	out.OverrideLogicalId(jsii.String(id))
}

// logicalName returns the name without characters that a logical id may not have.
// CloudFormation rejects two names that become equal.
func logicalName(name string) string {
	var b strings.Builder
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '-' || r == '_' }) {
		b.WriteString(titleCase(part))
	}
	return b.String()
}

// chartValues returns the chart's values as paths and values.
func (p clusterStack) chartValues() [][2]string {
	k := p.cluster
	values := [][2]string{
		{"settings.clusterName", k.Name}, {"settings.region", p.place.region}, {"settings.accountID", p.place.account},
		{"controller.image.repository", p.config.Charts.Images},
		{"settings.namePrefix", k.Plan.Prefix}, {"settings.bucket", p.bucket}, {"settings.prefix", k.Name},
	}
	for _, q := range k.Plan.Queues {
		if q.Service != "interruption" {
			values = append(values, [2]string{"settings.queues." + q.Service, p.queues[q.Service].URL})
		}
		if q.Service == "lifecycle" {
			values = append(values, [2]string{"settings.queues.lifecycleDead", p.queues[q.Service].DeadURL})
		}
	}
	if k.ZonalShift {
		values = append(values, [2]string{"settings.enableZonalShift", "true"})
	}
	if k.RebootForRepair {
		values = append(values, [2]string{"settings.awsFeatureGates.rebootForRepair", "true"})
	}
	if k.CloudWatchMetrics != "" {
		values = append(values, [2]string{"settings.cloudWatchMetrics", k.CloudWatchMetrics})
	}
	if k.OIDCProvider != "" {
		for _, service := range topology.ClusterServices {
			values = append(values, [2]string{service + `.serviceAccount.annotations.eks\.amazonaws\.com/role-arn`, p.roleARN(service)})
		}
	}
	return values
}

// helmCommand returns the command that installs the charts. It takes the CRDs over from any other
// release or controller, because Helm otherwise refuses them in each cluster that has Karpenter's.
func (p clusterStack) helmCommand() string {
	repository, version := p.config.Charts.Repository, ""
	if p.config.Charts.Version != "" {
		version = " --version " + p.config.Charts.Version
	}
	var b strings.Builder
	fmt.Fprintf(&b, "helm upgrade --install joist-crd %s/joist-crd%s --namespace %s --create-namespace --take-ownership && ", repository, version, p.cluster.Namespace)
	fmt.Fprintf(&b, "helm upgrade --install joist %s/joist%s --namespace %s --create-namespace", repository, version, p.cluster.Namespace)
	for _, v := range p.chartValues() {
		if v[0] == "controller.image.repository" && v[1] == "" {
			b.WriteString(` --set-string "controller.image.repository=$JOIST_IMAGES"`)
			continue
		}
		fmt.Fprintf(&b, " --set-string '%s=%s'", v[0], v[1])
	}
	return b.String()
}
