package config_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/infra/config"
	"github.com/joist-autoscaler/joist/shared/fault"
)

type contextValues map[string]any

func readConfig(c contextValues) (config.Config, error) {
	return config.Read(func(key string) any { return c[key] })
}

func mustRead(t *testing.T, c contextValues) config.Config {
	t.Helper()
	got, err := readConfig(c)
	if err != nil {
		t.Fatalf("%v (%s)", err, fault.FindHint(err))
	}
	return got
}

func TestClusterNameIsEnough(t *testing.T) {
	c := mustRead(t, contextValues{"clusterName": "prod"})
	if c.StackName != "Joist-prod" || c.Partition != "aws" || c.SharedPrefix() != "prod" || len(c.Clusters) != 1 {
		t.Errorf("%+v", c)
	}
	k := c.Clusters[0]
	if !reflect.DeepEqual(k.Node, config.Node{Role: "KarpenterNodeRole-prod", Profile: "KarpenterNodeInstanceProfile-prod", Profiles: config.ByRole, Access: config.AccessEntry, Tags: []string{"*"}}) {
		t.Errorf("node %+v", k.Node)
	}
	if k.Namespace != "joist" || k.OIDCProvider != "" || k.Queue.Policy || k.Queue.Rules != nil || k.Queue.Visibility != 0 {
		t.Errorf("%+v", k)
	}
}

// The default memory is within a new account's quota, and each function's memory can be
// set.
func TestFunctionMemory(t *testing.T) {
	c := mustRead(t, contextValues{"clusterName": "prod"})
	for service := range config.Sizes {
		if got := c.SizeOf(service).Memory; got > 3008 {
			t.Errorf("the default memory of %s is %v MB, a new account allows 3,008", service, got)
		}
	}
	c = mustRead(t, contextValues{"clusterName": "prod", "functionMemory": "planner=3538,disruption=1769"})
	for service, want := range map[string]float64{"planner": 3538, "disruption": 1769, "launcher": config.Sizes["launcher"].Memory} {
		if got := c.SizeOf(service); got.Memory != want || got.Batch != config.Sizes[service].Batch {
			t.Errorf("%s has %+v, want %v MB", service, got, want)
		}
	}
}

// For each Karpenter set-up, the stack knows the existing resources and creates the rest.
func TestAdoptedResources(t *testing.T) {
	cloudFormation := mustRead(t, contextValues{"clusterName": "prod", "adopt": "cloudformation"}).Clusters[0]
	if q, _ := cloudFormation.Plan.Queue("interruption"); q.Name != "prod" || !q.Existing {
		t.Errorf("queue %+v", q)
	}
	if !cloudFormation.Queue.Policy || len(cloudFormation.Queue.Rules) != 4 || cloudFormation.Queue.Visibility != 30*time.Second ||
		!cloudFormation.Node.Existing || cloudFormation.Node.Access != config.ExistingAccess || cloudFormation.Node.ProfileExisting {
		t.Errorf("%+v", cloudFormation)
	}
	terraform := mustRead(t, contextValues{"clusterName": "prod", "adopt": "terraform", "interruptionQueue": "Karpenter-prod-SpotInterruptionQueue",
		"nodeRole": "KarpenterNodeRole-prod"}).Clusters[0]
	if q, _ := terraform.Plan.Queue("interruption"); q.Name != "Karpenter-prod-SpotInterruptionQueue" || !q.Existing {
		t.Errorf("queue %+v", q)
	}
	// It has neither.
	if terraform.Queue.Policy || terraform.Queue.Rules != nil || !terraform.Node.Existing {
		t.Errorf("%+v", terraform)
	}
	all := mustRead(t, contextValues{"clusterName": "prod", "adopt": "cloudformation", "existingRules": "SpotInterruptionRule, RebalanceRule", "queueVisibility": "9m"}).Clusters[0]
	if !slices.Equal(all.Queue.Rules, []string{"SpotInterruptionRule", "RebalanceRule"}) || all.Queue.Visibility != 9*time.Minute {
		t.Errorf("%+v", all.Queue)
	}
}

// An existing node role may have a path, which is not part of its name.
func TestNodeRolePath(t *testing.T) {
	for given, path := range map[string]string{"nodes": "", "eks/nodes": "eks/", "/eks/prod/nodes": "eks/prod/"} {
		if node := mustRead(t, contextValues{"clusterName": "prod", "nodeRole": given}).Clusters[0].Node; node.Role != "nodes" || node.RolePath != path || !node.Existing {
			t.Errorf("nodeRole=%s: %+v", given, node)
		}
	}
}

func TestPartitions(t *testing.T) {
	for region, want := range map[string]string{
		"eu-west-1": "aws", "ap-southeast-1": "aws", "us-gov-west-1": "aws-us-gov", "cn-north-1": "aws-cn", "mx-central-1": "aws",
	} {
		if got := mustRead(t, contextValues{"clusterName": "prod", "region": region}).Partition; got != want {
			t.Errorf("%s is in %s, want %s", region, got, want)
		}
	}
}

func TestManyClusters(t *testing.T) {
	byName := mustRead(t, contextValues{"clusters": "prod,staging"})
	if len(byName.Clusters) != 2 || byName.StackName != "Joist" || byName.SharedPrefix() != "joist" {
		t.Errorf("%+v", byName)
	}
	mixed := mustRead(t, contextValues{"clusters": []any{"prod", map[string]any{"clusterName": "staging", "adopt": "cloudformation"}}})
	if mixed.Clusters[0].Node.Existing || !mixed.Clusters[1].Node.Existing {
		t.Errorf("%+v", mixed.Clusters)
	}
}

// By default each cluster has its own functions. Shared functions still permit settings
// that differ between clusters.
func TestSharedFunctionSettings(t *testing.T) {
	own := mustRead(t, contextValues{"clusters": "prod,staging"})
	if own.SharedFunctions || own.Clusters[1].Plan.FunctionName("planner") != "staging-joist-planner" {
		t.Errorf("%+v", own)
	}
	shared := mustRead(t, contextValues{"sharedFunctions": "true", "stackName": "Joist-EU", "clusters": []any{
		map[string]any{"clusterName": "prod", "environment": "LOG_LEVEL=debug,JOIST_MAX_INSTANCES_PER_INTENT=7"}, map[string]any{"clusterName": "staging", "environment": "LOG_LEVEL=debug"}}})
	for _, k := range shared.Clusters {
		if !shared.SharedFunctions || !k.Plan.HasSharedFunctions() || k.Plan.FunctionName("planner") != "joist-eu-joist-planner" {
			t.Errorf("%+v of %s", k.Plan, shared.SharedPrefix())
		}
	}
}

// If the cluster's name is too long for IAM, names use the prefix instead.
func TestLongClusterNames(t *testing.T) {
	long := strings.Repeat("c", 60)
	c := mustRead(t, contextValues{"clusterName": long, "namePrefix": "short"})
	if k := c.Clusters[0]; k.Node.Role != "KarpenterNodeRole-short" || k.Node.Profile != "KarpenterNodeInstanceProfile-"+long || c.SharedPrefix() != "short" {
		t.Errorf("%+v of %s", k.Node, c.SharedPrefix())
	}
}

func TestInvalidConfig(t *testing.T) {
	with := func(more contextValues) contextValues {
		c := contextValues{"clusterName": "prod"}
		maps.Copy(c, more)
		return c
	}
	for name, test := range map[string]struct {
		context contextValues
		says    string
	}{
		"nothing":                                         {contextValues{}, "--context clusterName=prod"},
		"a blank name":                                    {contextValues{"clusterName": " "}, "clusterName is missing"},
		"an invalid name":                                 {contextValues{"clusterName": "my cluster"}, "list-clusters"},
		"a long name":                                     {contextValues{"clusterName": strings.Repeat("c", 43)}, "namePrefix"},
		"a name that is too long for S3":                  {contextValues{"clusterName": strings.Repeat("c", 40)}, "bucket=joist-"},
		"a name that is invalid for S3":                   {contextValues{"clusterName": "Prod_1"}, "lower-case"},
		"a number as name":                                {contextValues{"clusterName": 7}, "give a text"},
		"a bucket":                                        {with(contextValues{"bucket": "UPPER"}), "invalid bucket name"},
		"a partition":                                     {with(contextValues{"partition": "aws-iso"}), "not supported"},
		"a region":                                        {with(contextValues{"region": "us-iso-east-1"}), "in an unknown partition"},
		"a region of another partition":                   {with(contextValues{"region": "cn-north-1", "partition": "aws"}), "leave partition out"},
		"a stack's name":                                  {with(contextValues{"stackName": "my_stack"}), "invalid stack name"},
		"an account":                                      {with(contextValues{"account": "12"}), "twelve digits"},
		"a topic":                                         {with(contextValues{"alarmTopic": "page-me"}), "SNS topic"},
		"subnets without security groups":                 {with(contextValues{"subnets": "subnet-0a1b2c3d"}), "securityGroups"},
		"a subnet":                                        {with(contextValues{"subnets": "private", "securityGroups": "sg-0c1d2e3f"}), "invalid subnet id"},
		"a security group":                                {with(contextValues{"subnets": "subnet-0a1b2c3d", "securityGroups": "nodes"}), "invalid security group id"},
		"a set-up":                                        {with(contextValues{"adopt": "pulumi"}), "cloudformation or terraform"},
		"Terraform without a queue":                       {with(contextValues{"adopt": "terraform", "nodeRole": "KarpenterNodeRole-prod"}), "prod would adopt an incomplete"},
		"Terraform without a role":                        {with(contextValues{"adopt": "terraform", "interruptionQueue": "q"}), "prod would adopt an incomplete"},
		"rules without a queue":                           {with(contextValues{"existingRules": "RebalanceRule"}), "prod would adopt an incomplete"},
		"a policy without a queue":                        {with(contextValues{"existingQueuePolicy": "true"}), "prod would adopt an incomplete"},
		"rules without a policy":                          {with(contextValues{"interruptionQueue": "q", "existingRules": "RebalanceRule"}), "existingQueuePolicy=true"},
		"an unknown rule":                                 {with(contextValues{"interruptionQueue": "q", "existingQueuePolicy": true, "existingRules": "R"}), "CapacityReservationInterruptionRule"},
		"a short visibility timeout":                      {with(contextValues{"interruptionQueue": "q", "queueVisibility": "5s"}), "at least 30 s"},
		"an invalid reservation":                          {with(contextValues{"reservedConcurrency": "launcher=many"}), "interruption=10"},
		"a reservation of an unknown function":            {with(contextValues{"reservedConcurrency": "watcher=10"}), "catalog, disruption, interruption"},
		"a reservation that is too small":                 {with(contextValues{"reservedConcurrency": "interruption=9"}), "at least 10"},
		"a shared reservation that is too small":          {contextValues{"clusters": "a,b", "sharedFunctions": true, "stackName": "joist", "reservedConcurrency": "interruption=19"}, "at least 20"},
		"an invalid visibility timeout":                   {with(contextValues{"interruptionQueue": "q", "queueVisibility": "soon"}), "30s or 9m"},
		"a profile without a role":                        {with(contextValues{"instanceProfile": "p"}), "its role is not given"},
		"a role's ARN":                                    {with(contextValues{"nodeRole": "arn:aws:iam::123456789012:role/x"}), "without the rest of its ARN"},
		"a role's path with a wildcard":                   {with(contextValues{"nodeRole": "*/x"}), "nodeRole is"},
		"a role's path alone":                             {with(contextValues{"nodeRole": "eks/"}), "invalid role name"},
		"a Windows role's ARN":                            {with(contextValues{"windowsNodeRole": "arn:aws:iam::123456789012:role/x"}), "after its path"},
		"the same role for Windows":                       {with(contextValues{"nodeRole": "eks/x", "windowsNodeRole": "/eks/x"}), "another existing role"},
		"a Windows role in aws-auth":                      {with(contextValues{"windowsNodeRole": "x", "nodeAccess": "awsAuth"}), "leave windowsNodeRole out"},
		"profiles":                                        {with(contextValues{"nodeProfiles": "mine"}), "spec.instanceProfile"},
		"access":                                          {with(contextValues{"nodeAccess": "all"}), "accessEntry"},
		"a namespace":                                     {with(contextValues{"namespace": "My"}), "invalid namespace"},
		"a provider":                                      {with(contextValues{"oidcProvider": "https://oidc.eks"}), "list-open-id-connect-providers"},
		"podIdentity and a provider":                      {with(contextValues{"oidcProvider": "arn:aws:iam::123456789012:oidc-provider/x", "podIdentity": true}), "both podIdentity"},
		"charts without images":                           {with(contextValues{"installCharts": "true"}), "images="},
		"charts without a role":                           {with(contextValues{"installCharts": "true", "images": "x"}), "kubectlRole"},
		"charts without a layer":                          {with(contextValues{"installCharts": "true", "images": "x", "kubectlRole": "arn:aws:iam::111122223333:role/x"}), "kubectlLayer"},
		"charts of two clusters":                          {contextValues{"clusters": "a,b", "installCharts": "true"}, "HelmCommand"},
		"an unknown variable":                             {with(contextValues{"environment": "LOGLEVEL=debug"}), "which no service reads"},
		"a value":                                         {with(contextValues{"environment": "LOG_LEVEL=loud"}), "LOG_LEVEL"},
		"a value that a function ignores":                 {with(contextValues{"environment": "OTEL_TRACES_SAMPLER=xray"}), "OTEL_TRACES_SAMPLER"},
		"a variable that the stack sets":                  {with(contextValues{"environment": map[string]any{"JOIST_BUS": "x"}}), "sets itself"},
		"an address of metrics without tcp":               {with(contextValues{"cloudWatchMetrics": "agent:25888"}), "stdout"},
		"a variable without a value":                      {with(contextValues{"environment": "LOG_LEVEL"}), "NAME=value"},
		"a flag":                                          {with(contextValues{"installCharts": "yes"}), "true or false"},
		"a queue's URL":                                   {with(contextValues{"interruptionQueue": "https://sqs.eu-west-1.amazonaws.com/1/prod"}), "neither its URL"},
		"a cluster and a list of clusters":                {with(contextValues{"clusters": "a,b"}), "both clusterName and clusters"},
		"no clusters":                                     {contextValues{"clusters": ""}, "clusters is empty"},
		"shared functions of one cluster":                 {with(contextValues{"sharedFunctions": true}), "clusters=prod,staging"},
		"shared functions without a stack name":           {contextValues{"clusters": "a,b", "sharedFunctions": true}, "another name in each region"},
		"a role variable that the stack sets":             {with(contextValues{"environment": "JOIST_ROLE_ARN=x"}), "sets itself"},
		"a long stack name":                               {contextValues{"clusters": "a,b", "sharedFunctions": true, "stackName": strings.Repeat("s", 46), "bucket": "joist-1"}, "at most 45"},
		"a stack name that a cluster has":                 {contextValues{"clusters": "a,b", "sharedFunctions": true, "stackName": "B"}, "not a cluster's name"},
		"a stack name that a cluster has in another case": {contextValues{"clusters": "a,B", "sharedFunctions": true, "stackName": "b"}, "not a cluster's name"},
		"two cluster names that differ in case":           {contextValues{"clusters": "a,A", "bucket": "joist-1"}, "namePrefix of its own"},
		"shared functions with two log levels": {contextValues{"sharedFunctions": true, "stackName": "joist-all", "clusters": []any{map[string]any{"clusterName": "a", "environment": "LOG_LEVEL=debug"}, "b"}},
			`LOG_LEVEL applies to functions that all clusters share: it is "debug" for a and "" for b`},
		"memory of an unknown function": {with(contextValues{"functionMemory": "watcher=512"}), "has the unknown function"},
		"too little memory":             {with(contextValues{"functionMemory": "planner=64"}), "Lambda allows 128 to 10240"},
		"too much memory":               {with(contextValues{"functionMemory": "planner=10241"}), "Lambda allows 128 to 10240"},
		"memory with a unit":            {with(contextValues{"functionMemory": "planner=3GB"}), "functionMemory=planner=3538"},
		"a snapshot by its name":        {with(contextValues{"snapshots": "images"}), "snap-0123456789abcdef0"},
		"a cluster twice":               {contextValues{"clusters": "prod,prod"}, "belongs to both prod and prod"},
		"a queue twice": {contextValues{"clusters": []any{map[string]any{"clusterName": "a", "interruptionQueue": "q"}, map[string]any{"clusterName": "b", "interruptionQueue": "q"}}},
			"one reader"},
		"a queue of another cluster": {contextValues{"clusters": []any{"a", map[string]any{"clusterName": "b", "interruptionQueue": "a"}}}, "one reader"},
		"a prefix twice": {contextValues{"clusters": []any{map[string]any{"clusterName": "a", "namePrefix": "x"}, map[string]any{"clusterName": "b", "namePrefix": "x"}}},
			"namePrefix of its own"},
		"an unknown key":            {contextValues{"clusters": []any{map[string]any{"clusterName": "a", "rolle": "x"}}}, `"rolle"`},
		"a key without its cluster": {contextValues{"clusters": "a,b", "nodeRole": "x"}, "its cluster is unknown"},
		"a number in clusters":      {contextValues{"clusters": []any{7}}, "neither a name nor an object"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readConfig(test.context)
			if !fault.Is(err, fault.Invalid) || fault.FindHint(err) == "" || !strings.Contains(err.Error()+" "+fault.FindHint(err), test.says) {
				t.Errorf("%v (%s) does not contain %q", err, fault.FindHint(err), test.says)
			}
		})
	}
}
