package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	subnetID = regexp.MustCompile(`^subnet-([0-9a-f]{8}|[0-9a-f]{17})$`)
	groupID  = regexp.MustCompile(`^sg-([0-9a-f]{8}|[0-9a-f]{17})$`)
)

func (c *Config) checkNetwork() error {
	for _, id := range c.Subnets {
		if !subnetID.MatchString(id) {
			return newError("give ids with commas between them: subnets=subnet-0a1b2c3d,subnet-0b1c2d3e", "invalid subnet id %q", id)
		}
	}
	for _, id := range c.SecurityGroups {
		if !groupID.MatchString(id) {
			return newError("give ids with commas between them: securityGroups=sg-0c1d2e3f", "invalid security group id %q", id)
		}
	}
	return nil
}

var (
	kubectlRole  = regexp.MustCompile(`^arn:[a-z-]+:iam::\d{12}:role/[\w+=,.@/-]+$`)
	kubectlLayer = regexp.MustCompile(`^arn:[a-z-]+:lambda:[a-z0-9-]+:\d{12}:layer:[A-Za-z0-9_-]+:\d+$`)
)

func (c *Config) checkCharts() error {
	switch {
	case !c.Charts.Install:
		return nil
	case len(c.Clusters) > 1:
		return newError("leave it out, and run each cluster's HelmCommand", "installCharts requires a stack with one cluster; this one has %d", len(c.Clusters))
	case c.Charts.Images == "":
		return newError("give the registry of the images: images=111122223333.dkr.ecr.eu-west-1.amazonaws.com/joist", "installCharts requires images, because none are published yet")
	case !kubectlRole.MatchString(c.Charts.KubectlRole):
		return newError("give the ARN of a role that may change the cluster (an access entry with AmazonEKSClusterAdminPolicy)", "installCharts requires kubectlRole, which is %q", c.Charts.KubectlRole)
	case !kubectlLayer.MatchString(c.Charts.KubectlLayer):
		return newError("give the ARN of a version of a Lambda layer with kubectl and helm, such as AWS's asset lambda-layer-kubectl", "installCharts requires kubectlLayer, which is %q", c.Charts.KubectlLayer)
	}
	return nil
}

var (
	stackName  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,127}$`)
	account    = regexp.MustCompile(`^\d{12}$`)
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	topicARN   = regexp.MustCompile(`^arn:[a-z-]+:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]+$`)
)

// longestRegion is the length of the longest region's name, as in ap-southeast-1.
const longestRegion = 14

// checkNames rejects names that AWS would reject during the deployment.
func (c *Config) checkNames() error {
	switch {
	case !stackName.MatchString(c.StackName):
		return newError("use letters, digits and hyphens, beginning with a letter: stackName=Joist-prod", "invalid stack name %q", c.StackName)
	case c.Account != "" && !account.MatchString(c.Account):
		return newError("give the twelve digits that `aws sts get-caller-identity` prints", "invalid AWS account %q", c.Account)
	case c.AlarmTopic != "" && !topicARN.MatchString(c.AlarmTopic):
		return newError("give the topic's ARN", "alarmTopic %q is not the ARN of an SNS topic", c.AlarmTopic)
	case c.Bucket != "" && !bucketName.MatchString(c.Bucket):
		return newError("use 3 to 63 lower-case letters, digits and hyphens", "invalid bucket name %q", c.Bucket)
	case c.Bucket != "":
		return nil
	}
	owner := c.SharedPrefix()
	region := max(len(c.Region), longestRegion)
	if c.Region != "" {
		region = len(c.Region)
	}
	if length := len("joist-") + len(owner) + len("-123456789012-") + region; length > 63 {
		return newError("set the bucket's name: bucket=joist-"+strings.ToLower(owner[:min(len(owner), 12)])+"-123456789012",
			"the bucket of %q would have a name of %d characters; at most 63 are allowed", owner, length)
	}
	if !bucketName.MatchString("joist-" + owner + "-1") {
		return newError("set the bucket's name: bucket=joist-123456789012", "%q cannot be in a bucket's name, which has only lower-case letters, digits and hyphens", owner)
	}
	return nil
}

// SharedPrefix returns the name prefix of resources that all clusters of the stack share.
func (c *Config) SharedPrefix() string {
	if len(c.Clusters) > 1 {
		return strings.ToLower(c.StackName)
	}
	return c.Clusters[0].Plan.Prefix
}

// checkDuplicates rejects two clusters that would own the same resource.
func (c *Config) checkDuplicates() error {
	owners := map[string]string{}
	for _, cluster := range c.Clusters {
		// IAM compares names without case.
		resources := map[string]string{"cluster " + cluster.Name: "list it once", "prefix " + strings.ToLower(cluster.Plan.Prefix): "give each a namePrefix of its own"}
		for _, q := range cluster.Plan.Queues {
			resources["queue "+q.Name] = "give each an interruptionQueue of its own: a queue has one reader"
		}
		if !cluster.Node.Existing {
			resources["role "+strings.ToLower(cluster.Node.Role)] = "give each a nodeRole or a namePrefix of its own"
		}
		for _, thing := range slices.Sorted(maps.Keys(resources)) {
			if other, taken := owners[thing]; taken {
				return newError(resources[thing], "the %s belongs to both %s and %s", thing, other, cluster.Name)
			}
		}
		for thing := range resources {
			owners[thing] = cluster.Name
		}
	}
	return nil
}
