package terraform

import (
	"regexp"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/infra/config"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// placeholders are the values of the synthesized templates that stand for an expression of
// the module. The first match is replaced, so that longer ones come first.
var placeholders = []struct{ text, expression string }{
	{"KarpenterNodeRole-placeholder", "local.node_role_name"},
	{"placeholder-windows-role", "var.windows_node_role_name"},
	{"placeholder-path/", "local.node_role_path"},
	{"KarpenterNodeInstanceProfile-placeholder", "local.instance_profile_name"},
	{"placeholder-cluster", "var.cluster_name"},
	{"placeholder-prefix", "local.name_prefix"},
	{"placeholder-stack", "local.stack_name"},
	{"placeholder-namespace", "var.namespace"},
	{"placeholder-bucket", "local.bucket_name"},
	{"placeholder-queue", "local.interruption_queue_name"},
	{"placeholder-uid", "var.cluster_uid"},
	{"tcp://placeholder-metrics:25888", "var.cloudwatch_metrics"},
	{"placeholder-images", "var.images"},
	{"placeholder-charts", "var.chart_repository"},
	{"arn:aws:iam::000000000000:oidc-provider/placeholder-issuer", "var.oidc_provider_arn"},
	{"placeholder-issuer", "local.oidc_issuer"},
}

// lists are the placeholders of the items of lists, by the variable.
var lists = []struct{ text, variable string }{
	{"placeholder-tag", "var.node_tags"},
	{"placeholder-parameter", "local.parameters"},
	{"arn:aws:sns:us-east-1:000000000000:placeholder-topic", "local.alarm_topics"},
	{"snap-0faceb00c", "var.snapshots"},
	{"arn:aws:iam::000000000000:role/placeholder-replayer", "var.replayers"},
	{"subnet-0faceb00c", "var.subnet_ids"},
	{"sg-0faceb00c", "var.security_group_ids"},
}

// option is a choice of the module that changes its resources.
type option struct {
	// condition is the expression that selects the option. %s is the name of the resource.
	condition string
	// set changes the config from that without options.
	set func(c *config.Config, k *config.Cluster)
}

// options are all choices. Each is synthesized alone, so that no two may change the same value
// of a resource; TestOptionsTogether checks pairs.
var options = []option{
	{`local.partition == "aws-cn"`, func(c *config.Config, _ *config.Cluster) { c.Partition = "aws-cn" }},
	{"var.node_role_name != null", func(_ *config.Config, k *config.Cluster) { k.Node.Existing = true }},
	{"var.windows_node_role_name != null", func(_ *config.Config, k *config.Cluster) { k.Node.WindowsRole = "placeholder-windows-role" }},
	{`var.node_access == "existing"`, func(_ *config.Config, k *config.Cluster) { k.Node.Access = config.ExistingAccess }},
	{`var.node_profiles == "instanceProfile"`, func(_ *config.Config, k *config.Cluster) { k.Node.Profiles = config.ByInstanceProfile }},
	{"local.adopt_without_policy", func(_ *config.Config, k *config.Cluster) { adoptQueue(k) }},
	{"local.adopt_with_policy", func(_ *config.Config, k *config.Cluster) { adoptQueue(k); k.Queue.Policy = true }},
	{`contains(local.adopted_rules, "%s")`, func(_ *config.Config, k *config.Cluster) {
		for _, rule := range k.Plan.Rules {
			if rule.Bus == topology.DefaultBus {
				k.Queue.Rules = append(k.Queue.Rules, rule.ID)
			}
		}
	}},
	{"var.cluster_uid != null", func(_ *config.Config, k *config.Cluster) { k.UID = "placeholder-uid" }},
	{"var.zonal_shift", func(_ *config.Config, k *config.Cluster) { k.ZonalShift = true }},
	{"var.reboot_for_repair", func(_ *config.Config, k *config.Cluster) { k.RebootForRepair = true }},
	{"var.isolated_vpc", func(_ *config.Config, k *config.Cluster) { k.IsolatedVPC = true }},
	{"var.cloudwatch_metrics != null", func(_ *config.Config, k *config.Cluster) { k.CloudWatchMetrics = "tcp://placeholder-metrics:25888" }},
	{"var.oidc_provider_arn != null", func(_ *config.Config, k *config.Cluster) {
		k.OIDCProvider = "arn:aws:iam::000000000000:oidc-provider/placeholder-issuer"
	}},
	{"length(var.subnet_ids) > 0", func(c *config.Config, _ *config.Cluster) {
		c.Subnets, c.SecurityGroups = []string{"subnet-0faceb00c"}, []string{"sg-0faceb00c"}
	}},
	{`!contains(var.node_tags, "*")`, func(_ *config.Config, k *config.Cluster) { k.Node.Tags = []string{"placeholder-tag"} }},
	{"length(local.parameters) > 0", func(_ *config.Config, k *config.Cluster) { k.Node.Parameters = []string{"placeholder-parameter"} }},
	{"length(var.snapshots) > 0", func(_ *config.Config, k *config.Cluster) { k.Node.Snapshots = []string{"snap-0faceb00c"} }},
	{"length(var.replayers) > 0", func(_ *config.Config, k *config.Cluster) {
		k.Replayers = []string{"arn:aws:iam::000000000000:role/placeholder-replayer"}
	}},
}

// adoptQueue makes the interruption queue an existing one.
func adoptQueue(k *config.Cluster) {
	for i := range k.Plan.Queues {
		if k.Plan.Queues[i].Service == "interruption" {
			k.Plan.Queues[i].Existing = true
		}
	}
	k.Queue.Visibility = 30 * time.Second // SQS's default.
}

// placeholderConfig returns the config without options.
func placeholderConfig() (config.Config, error) {
	context := map[string]any{
		"clusterName": "placeholder-cluster", "namePrefix": "placeholder-prefix", "namespace": "placeholder-namespace",
		"bucket": "placeholder-bucket", "stackName": "placeholder-stack", "images": "placeholder-images", "chartRepository": "placeholder-charts",
		"alarmTopic": "arn:aws:sns:us-east-1:000000000000:placeholder-topic",
	}
	c, err := config.Read(func(key string) any { return context[key] })
	if err != nil {
		return c, err
	}
	k := &c.Clusters[0]
	k.Node.Role, k.Node.RolePath, k.Node.Profile = "KarpenterNodeRole-placeholder", "placeholder-path/", "KarpenterNodeInstanceProfile-placeholder"
	k.Plan.Queues = slices.Clone(k.Plan.Queues)
	for i := range k.Plan.Queues {
		if k.Plan.Queues[i].Service == "interruption" {
			k.Plan.Queues[i].Name = "placeholder-queue"
		}
	}
	return c, nil
}

// queueHost matches the host of SQS before the partition's suffix.
var queueHost = regexp.MustCompile(`\.amazonaws\.com(\.cn)?/`)
