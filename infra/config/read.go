package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// The keys of the context. clusterKeys may also be in the objects of the list `clusters`.
var (
	stackKeys = []string{
		"clusters", "stackName", "partition", "region", "account", "bucket", "binaries", "alarmTopic", "subnets", "securityGroups", "reservedConcurrency",
		"spotServiceLinkedRole", "sharedFunctions", "functionMemory", "chartRepository", "chartVersion", "images", "installCharts", "charts", "kubectlRole", "kubectlLayer",
	}
	clusterKeys = []string{
		"clusterName", "clusterUID", "namePrefix", "namespace", "oidcProvider", "podIdentity", "adopt", "nodeRole", "windowsNodeRole", "instanceProfile", "nodeProfiles",
		"nodeAccess", "interruptionQueue", "queueVisibility", "existingRules", "existingQueuePolicy",
		"nodeTags", "parameters", "snapshots", "replayers", "zonalShift", "isolatedVPC", "rebootForRepair", "cloudWatchMetrics", "environment",
	}
)

// Keys returns all keys that Read reads.
func Keys() []string { return slices.Concat(stackKeys, clusterKeys) }

func newError(remedy, format string, args ...any) error {
	return fault.F("reading the stack's configuration", fault.Invalid, format, args...).WithHint("%s", remedy)
}

// Read reads a Config from the context. get returns the value of a key, or nil. Errors are
// fault.Invalid.
func Read(get func(key string) any) (Config, error) {
	r := &reader{get: get}
	c := Config{
		StackName: r.readText("stackName"), Region: r.readText("region"), Account: r.readText("account"), Partition: r.readText("partition"),
		Bucket: r.readText("bucket"), Binaries: r.readTextOr("binaries", "../bin/lambda"), AlarmTopic: r.readText("alarmTopic"),
		Subnets: r.readList("subnets"), SecurityGroups: r.readList("securityGroups"),
		Reserved: r.readCounts("reservedConcurrency"),
		SpotRole: r.readFlag("spotServiceLinkedRole"), SharedFunctions: r.readFlag("sharedFunctions"),
		Charts: Charts{Repository: r.readTextOr("chartRepository", "deploy/charts"), Version: r.readText("chartVersion"), Images: r.readText("images"),
			Install: r.readFlag("installCharts"), Folder: r.readTextOr("charts", "../deploy/charts"), KubectlRole: r.readText("kubectlRole"), KubectlLayer: r.readText("kubectlLayer")},
	}
	var err error
	if c.Memory, err = readMemory(r, "functionMemory"); err != nil {
		return c, err
	}
	sources, err := clusterReaders(r)
	if err != nil {
		return c, err
	}
	functions, err := c.functionPrefix(len(sources))
	if err != nil {
		return c, err
	}
	for _, source := range sources {
		cluster, err := readCluster(source, functions)
		if err != nil {
			return c, err
		}
		c.Clusters = append(c.Clusters, cluster)
	}
	if r.err != nil {
		return c, r.err
	}
	return c, c.setDefaults()
}

// clusterReaders returns a reader of each cluster's keys.
func clusterReaders(r *reader) ([]*reader, error) {
	value := r.get("clusters")
	if value == nil {
		return []*reader{r}, nil
	}
	if r.get("clusterName") != nil {
		return nil, newError("set only one of them", "both clusterName and clusters are set")
	}
	var all []*reader
	list, ok := value.([]any)
	if !ok {
		for _, name := range r.readList("clusters") {
			list = append(list, name)
		}
	}
	for i, item := range list {
		keys, ok := item.(map[string]any)
		if name, isText := item.(string); isText {
			keys, ok = map[string]any{"clusterName": name}, true
		}
		if !ok {
			return nil, newError(`write {"clusterName": "prod", …}, or the name alone`, "clusters[%d] is %v, neither a name nor an object", i, item)
		}
		for key := range keys {
			if !slices.Contains(clusterKeys, key) {
				return nil, newError("the keys are "+strings.Join(clusterKeys, ", "), "clusters[%d] has the unknown key %q", i, key)
			}
		}
		all = append(all, &reader{get: func(key string) any { return keys[key] }, at: fmt.Sprintf("clusters[%d].", i)})
	}
	if len(all) == 0 {
		return nil, newError("give clusterName=prod, or clusters=prod,staging", "clusters is empty")
	}
	for _, key := range clusterKeys {
		if r.get(key) != nil {
			return nil, newError("set it in the objects of clusters, in cdk.json", "%s is set next to clusters, so its cluster is unknown", key)
		}
	}
	return all, nil
}

// partitions are the supported partitions, in which all used services exist, with a pattern
// of their regions. The first match is a region's partition
// (https://docs.aws.amazon.com/whitepapers/latest/aws-fault-isolation-boundaries/partitions.html).
var partitions = []struct{ name, regions string }{
	{"aws-cn", `^cn-[a-z]+-\d$`},
	{"aws-us-gov", `^us-gov-[a-z]+-\d$`},
	{"aws", `^(af|ap|ca|eu|il|me|mx|sa|us)-(north|south|east|west|central|northeast|northwest|southeast|southwest)-\d$`},
}

// partitionOf returns a region's partition, or "".
func partitionOf(region string) string {
	for _, p := range partitions {
		if regexp.MustCompile(p.regions).MatchString(region) {
			return p.name
		}
	}
	return ""
}

// setDefaults sets the defaults of missing keys and checks the config.
func (c *Config) setDefaults() error {
	if c.Region != "" && partitionOf(c.Region) == "" {
		return newError("use a region of the partitions aws, aws-cn or aws-us-gov", "the region %q is in an unknown partition", c.Region)
	}
	if c.Partition == "" {
		c.Partition = "aws"
		if c.Region != "" {
			c.Partition = partitionOf(c.Region)
		}
	}
	if !slices.ContainsFunc(partitions, func(p struct{ name, regions string }) bool { return p.name == c.Partition }) {
		return newError("use aws, aws-cn or aws-us-gov", "the partition %q is not supported", c.Partition)
	}
	if c.Region != "" && partitionOf(c.Region) != c.Partition {
		return newError("leave partition out: it follows from the region", "the region %s is in the partition %s, not in %s", c.Region, partitionOf(c.Region), c.Partition)
	}
	if c.StackName == "" {
		c.StackName = "Joist-" + strings.ReplaceAll(c.Clusters[0].Plan.Prefix, "_", "-")
		if len(c.Clusters) > 1 {
			c.StackName = multiClusterStack
		}
	}
	if len(c.Subnets) > 0 != (len(c.SecurityGroups) > 0) {
		return newError("set both, or neither", "functions in a VPC need subnets and securityGroups")
	}
	return firstError(c.checkNetwork, c.checkReserved, c.checkCharts, c.checkNames, c.checkDuplicates, c.checkSharedEnvironment)
}

func firstError(checks ...func() error) error {
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}
