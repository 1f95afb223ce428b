package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// The keys of the context. Those of a cluster may also stand in the objects of the
// list `clusters`.
var (
	stackKeys = []string{
		"clusters", "stackName", "partition", "region", "account", "bucket", "binaries", "alarmTopic", "subnets", "securityGroups",
		"spotServiceLinkedRole", "chartRepository", "chartVersion", "images", "installCharts", "charts", "kubectlRole", "kubectlLayer",
	}
	clusterKeys = []string{
		"clusterName", "clusterUID", "namePrefix", "namespace", "oidcProvider", "podIdentity", "adopt", "nodeRole", "instanceProfile", "nodeProfiles",
		"nodeAccess", "interruptionQueue", "queueVisibility", "existingRules", "existingQueuePolicy",
		"nodeTags", "parameters", "replayers", "zonalShift", "isolatedVPC", "environment",
	}
)

// Keys are all keys that Read asks for.
func Keys() []string { return slices.Concat(stackKeys, clusterKeys) }

func invalid(remedy, format string, args ...any) error {
	return fault.F("reading what the stack is to be", fault.Invalid, format, args...).WithHint("%s", remedy)
}

// Read makes a Config of the context. get gives the value of a key, or nil. Errors are
// fault.Invalid.
func Read(get func(key string) any) (Config, error) {
	r := &reader{get: get}
	c := Config{
		StackName: r.text("stackName"), Region: r.text("region"), Account: r.text("account"), Partition: r.text("partition"),
		Bucket: r.text("bucket"), Binaries: r.or("binaries", "../bin/lambda"), AlarmTopic: r.text("alarmTopic"),
		Subnets: r.list("subnets"), SecurityGroups: r.list("securityGroups"),
		SpotRole: r.flag("spotServiceLinkedRole"),
		Charts: Charts{Repository: r.or("chartRepository", "deploy/charts"), Version: r.text("chartVersion"), Images: r.text("images"),
			Install: r.flag("installCharts"), Folder: r.or("charts", "../deploy/charts"), KubectlRole: r.text("kubectlRole"), KubectlLayer: r.text("kubectlLayer")},
	}
	sources, err := clusters(r)
	if err != nil {
		return c, err
	}
	for _, source := range sources {
		cluster, err := readCluster(source)
		if err != nil {
			return c, err
		}
		c.Clusters = append(c.Clusters, cluster)
	}
	if r.err != nil {
		return c, r.err
	}
	return c, c.complete()
}

// clusters are the readers of each cluster's keys.
func clusters(r *reader) ([]*reader, error) {
	value := r.get("clusters")
	if value == nil {
		return []*reader{r}, nil
	}
	if r.get("clusterName") != nil {
		return nil, invalid("give one of them", "both clusterName and clusters are given")
	}
	var all []*reader
	list, ok := value.([]any)
	if !ok {
		for _, name := range r.list("clusters") {
			list = append(list, name)
		}
	}
	for i, item := range list {
		keys, ok := item.(map[string]any)
		if name, isText := item.(string); isText {
			keys, ok = map[string]any{"clusterName": name}, true
		}
		if !ok {
			return nil, invalid(`write {"clusterName": "prod", …}, or the name alone`, "clusters[%d] is %v, neither a name nor an object", i, item)
		}
		for key := range keys {
			if !slices.Contains(clusterKeys, key) {
				return nil, invalid("its keys are "+strings.Join(clusterKeys, ", "), "clusters[%d] has the key %q, which nothing reads", i, key)
			}
		}
		all = append(all, &reader{get: func(key string) any { return keys[key] }, at: fmt.Sprintf("clusters[%d].", i)})
	}
	if len(all) == 0 {
		return nil, invalid("give clusterName=prod, or clusters=prod,staging", "clusters is empty")
	}
	for _, key := range clusterKeys {
		if r.get(key) != nil {
			return nil, invalid("write it into the objects of clusters, in cdk.json", "%s is given beside clusters, and it is not said whose it is", key)
		}
	}
	return all, nil
}

// partitions are those in which all that the stack uses exists, with how their
// regions begin; the first that fits is a region's
// (https://docs.aws.amazon.com/whitepapers/latest/aws-fault-isolation-boundaries/partitions.html).
var partitions = []struct{ name, regions string }{
	{"aws-cn", `^cn-[a-z]+-\d$`},
	{"aws-us-gov", `^us-gov-[a-z]+-\d$`},
	{"aws", `^(af|ap|ca|eu|il|me|mx|sa|us)-(north|south|east|west|central|northeast|northwest|southeast|southwest)-\d$`},
}

// partitionOf finds a region's partition, or none.
func partitionOf(region string) string {
	for _, p := range partitions {
		if regexp.MustCompile(p.regions).MatchString(region) {
			return p.name
		}
	}
	return ""
}

// complete fills in what was left out, and refuses what cannot be.
func (c *Config) complete() error {
	if c.Region != "" && partitionOf(c.Region) == "" {
		return invalid("use a region of the partitions aws, aws-cn or aws-us-gov", "the region %q is in no partition that Joist knows", c.Region)
	}
	if c.Partition == "" {
		c.Partition = "aws"
		if c.Region != "" {
			c.Partition = partitionOf(c.Region)
		}
	}
	if !slices.ContainsFunc(partitions, func(p struct{ name, regions string }) bool { return p.name == c.Partition }) {
		return invalid("use aws, aws-cn or aws-us-gov", "the partition %q is not supported", c.Partition)
	}
	if c.Region != "" && partitionOf(c.Region) != c.Partition {
		return invalid("leave partition out: it follows from the region", "the region %s is in the partition %s, not in %s", c.Region, partitionOf(c.Region), c.Partition)
	}
	if c.StackName == "" {
		c.StackName = "Joist-" + strings.ReplaceAll(c.Clusters[0].Plan.Prefix, "_", "-")
		if len(c.Clusters) > 1 {
			c.StackName = "Joist"
		}
	}
	if len(c.Subnets) > 0 != (len(c.SecurityGroups) > 0) {
		return invalid("give both, or neither", "functions in a VPC need subnets and securityGroups")
	}
	return firstOf(c.network, c.charts, c.names, c.twice)
}

var (
	subnetID = regexp.MustCompile(`^subnet-([0-9a-f]{8}|[0-9a-f]{17})$`)
	groupID  = regexp.MustCompile(`^sg-([0-9a-f]{8}|[0-9a-f]{17})$`)
)

func (c *Config) network() error {
	for _, id := range c.Subnets {
		if !subnetID.MatchString(id) {
			return invalid("give ids with commas between them: subnets=subnet-0a1b2c3d,subnet-0b1c2d3e", "%q is no id of a subnet", id)
		}
	}
	for _, id := range c.SecurityGroups {
		if !groupID.MatchString(id) {
			return invalid("give ids with commas between them: securityGroups=sg-0c1d2e3f", "%q is no id of a security group", id)
		}
	}
	return nil
}

var (
	kubectlRole  = regexp.MustCompile(`^arn:[a-z-]+:iam::\d{12}:role/[\w+=,.@/-]+$`)
	kubectlLayer = regexp.MustCompile(`^arn:[a-z-]+:lambda:[a-z0-9-]+:\d{12}:layer:[A-Za-z0-9_-]+:\d+$`)
)

func (c *Config) charts() error {
	switch {
	case !c.Charts.Install:
		return nil
	case len(c.Clusters) > 1:
		return invalid("leave it out, and run each cluster's HelmCommand", "installCharts is of a stack with one cluster, and this has %d", len(c.Clusters))
	case c.Charts.Images == "":
		return invalid("say where the images are: images=111122223333.dkr.ecr.eu-west-1.amazonaws.com/joist", "installCharts needs images, and none are published yet")
	case !kubectlRole.MatchString(c.Charts.KubectlRole):
		return invalid("give the ARN of a role that may change the cluster (an access entry with AmazonEKSClusterAdminPolicy)", "installCharts needs kubectlRole, which is %q", c.Charts.KubectlRole)
	case !kubectlLayer.MatchString(c.Charts.KubectlLayer):
		return invalid("give the ARN of a version of a Lambda layer with kubectl and helm, as AWS's asset lambda-layer-kubectl makes one", "installCharts needs kubectlLayer, which is %q", c.Charts.KubectlLayer)
	}
	return nil
}

func firstOf(checks ...func() error) error {
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
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

// names refuses what AWS would refuse half-way through a deployment.
func (c *Config) names() error {
	switch {
	case !stackName.MatchString(c.StackName):
		return invalid("use letters, digits and hyphens, beginning with a letter: stackName=Joist-prod", "%q is no name of a stack", c.StackName)
	case c.Account != "" && !account.MatchString(c.Account):
		return invalid("give the twelve digits that `aws sts get-caller-identity` prints", "%q is no AWS account", c.Account)
	case c.AlarmTopic != "" && !topicARN.MatchString(c.AlarmTopic):
		return invalid("give the topic's ARN", "alarmTopic %q is no ARN of an SNS topic", c.AlarmTopic)
	case c.Bucket != "" && !bucketName.MatchString(c.Bucket):
		return invalid("use 3 to 63 lower-case letters, digits and hyphens", "%q is no name of a bucket", c.Bucket)
	case c.Bucket != "":
		return nil
	}
	owner := c.Owner()
	region := max(len(c.Region), longestRegion)
	if c.Region != "" {
		region = len(c.Region)
	}
	if length := len("joist-") + len(owner) + len("-123456789012-") + region; length > 63 {
		return invalid("name the bucket yourself: bucket=joist-"+strings.ToLower(owner[:min(len(owner), 12)])+"-123456789012",
			"the bucket of %q would have %d characters, and 63 are allowed", owner, length)
	}
	if !bucketName.MatchString("joist-" + owner + "-1") {
		return invalid("name the bucket yourself: bucket=joist-123456789012", "%q cannot be part of a bucket's name, which has lower-case letters, digits and hyphens only", owner)
	}
	return nil
}

// Owner begins the names of what all clusters of the stack share.
func (c *Config) Owner() string {
	if len(c.Clusters) > 1 {
		return strings.ToLower(c.StackName)
	}
	return c.Clusters[0].Plan.Prefix
}

// twice refuses two clusters that would own the same thing.
func (c *Config) twice() error {
	owners := map[string]string{}
	for _, cluster := range c.Clusters {
		mine := map[string]string{"cluster " + cluster.Name: "name it once", "prefix " + cluster.Plan.Prefix: "give each a namePrefix of its own"}
		for _, q := range cluster.Plan.Queues {
			mine["queue "+q.Name] = "give each an interruptionQueue of its own: a queue has one reader"
		}
		if !cluster.Node.Existing {
			mine["role "+cluster.Node.Role] = "give each a nodeRole or a namePrefix of its own"
		}
		for _, thing := range slices.Sorted(maps.Keys(mine)) {
			if other, taken := owners[thing]; taken {
				return invalid(mine[thing], "the %s is both of %s and of %s", thing, other, cluster.Name)
			}
		}
		for thing := range mine {
			owners[thing] = cluster.Name
		}
	}
	return nil
}
