package stack

import (
	"cmp"
	"maps"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3assets"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/joist-autoscaler/joist/infra/config"
	"github.com/joist-autoscaler/joist/infra/rights"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// New adds the stack to an app. Errors are fault.Invalid. If there are too many resources, it
// fails after adding them, and the app cannot be used.
func New(app awscdk.App, c config.Config) (awscdk.Stack, error) {
	if err := validate(app, c); err != nil {
		return nil, err
	}
	stack := awscdk.NewStack(app, jsii.String(c.StackName), &awscdk.StackProps{
		StackName: jsii.String(c.StackName), Env: stackEnvironment(c),
		Description: jsii.String("Joist: event-driven node autoscaling for EKS"),
		// Indentation is a quarter of a template's bytes, which CloudFormation limits.
		SuppressTemplateIndentation: jsii.Bool(true),
		// The template must not depend on the account or region that synthesizes it.
		Synthesizer: awscdk.NewDefaultStackSynthesizer(&awscdk.DefaultStackSynthesizerProps{GenerateBootstrapVersionRule: jsii.Bool(false)}),
	})
	awscdk.Tags_Of(stack).Add(jsii.String("joist:stack"), jsii.String(c.StackName), nil)
	shared := newSharedParts(stack, c)
	planes := make([]clusterStack, len(c.Clusters))
	for i, k := range c.Clusters {
		planes[i] = newCluster(stack, shared, k)
	}
	// cdk-nag fails on policies of queues outside the stack and skips the policies after
	// them, so these are added last.
	for _, p := range planes {
		p.adoptQueue()
	}
	if len(c.Clusters) == 1 {
		newParameter(stack, c.Clusters[0])
	}
	if err := checkResourceCount(stack, c); err != nil {
		return nil, err
	}
	return stack, nil
}

// resourcesMax is CloudFormation's limit of resources per template
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html).
const resourcesMax = 500

// checkResourceCount rejects more clusters than fit into one template.
func checkResourceCount(stack awscdk.Stack, c config.Config) error {
	if len(c.Clusters) == 1 {
		return nil
	}
	count := 0
	for _, part := range *stack.Node().FindAll(constructs.ConstructOrder_PREORDER) {
		if *awscdk.CfnResource_IsCfnResource(part) {
			count++
		}
	}
	if count > resourcesMax {
		return fault.F("adding the stack "+c.StackName, fault.Invalid, "%d clusters need %d resources; a template may have %d", len(c.Clusters), count, resourcesMax).
			WithHint("put some of the clusters into another stack")
	}
	return nil
}

// validate checks the config together with the app's other stacks.
func validate(app awscdk.App, c config.Config) error {
	for _, child := range *app.Node().Children() {
		other, ok := child.(awscdk.Stack)
		if !ok {
			continue
		}
		for _, k := range c.Clusters {
			if other.Node().TryFindChild(jsii.String(clusterID(k))) != nil {
				return fault.F("adding the stack "+c.StackName, fault.Invalid, "the cluster %s already has the stack %s", k.Name, *other.StackName()).
					WithHint("name each cluster once: two stacks of one cluster would own the same queues and roles")
			}
		}
	}
	for _, k := range c.Clusters {
		if err := newScope(placeOf(c), cmp.Or(c.Bucket, "joist"), k).Validate(); err != nil {
			return err
		}
	}
	for _, service := range append(slices.Clone(topology.ExternalServices), helperFunctions(c)...) {
		if err := CheckBinary(c.Binaries, service); err != nil {
			return err
		}
	}
	if err := checkPolicySizes(c); err != nil {
		return err
	}
	return checkEnvironmentSizes(c)
}

// helperFunctions returns the functions that are not services.
func helperFunctions(c config.Config) []string {
	if c.SpotRole {
		return []string{spotRole}
	}
	return nil
}

func stackEnvironment(c config.Config) *awscdk.Environment {
	var e awscdk.Environment
	if c.Account != "" {
		e.Account = jsii.String(c.Account)
	}
	if c.Region != "" {
		e.Region = jsii.String(c.Region)
	}
	return &e
}

// clusterID returns the id of the construct with all resources of a cluster.
func clusterID(k config.Cluster) string { return "Cluster-" + k.Name }

// sharedParts are the parts that the clusters of a stack share: the bucket, in which each
// cluster has a prefix, and the functions' code.
type sharedParts struct {
	config config.Config
	place  place
	bucket string
	code   map[string]awss3assets.Asset
	// network is the functions' VPC network, or nil.
	network *network
	// functions are the shared functions by service; nil if each cluster has its own.
	functions map[string]awslambda.CfnFunction
}

func newSharedParts(stack awscdk.Stack, c config.Config) sharedParts {
	s := sharedParts{config: c, place: placeOf(c), code: map[string]awss3assets.Asset{}}
	s.bucket = bucketOf(c, s.place)
	newStore(stack, "Store", s.bucket, func(bucket string) map[string]any { return policyMap(rights.BucketPolicy(s.listScopes(bucket)...)) })
	for _, service := range append(slices.Clone(topology.ExternalServices), helperFunctions(c)...) {
		s.code[service] = awss3assets.NewAsset(stack, jsii.String("Code-"+service), &awss3assets.AssetProps{Path: jsii.String(c.Binaries + "/" + service)})
	}
	if len(c.Subnets) > 0 {
		s.network = &network{subnets: c.Subnets, securityGroups: c.SecurityGroups}
	}
	newAuditPolicy(stack, c.StackName+"-audit", rights.AuditPolicy(s.listScopes(s.bucket)...))
	if c.SharedFunctions {
		s.functions = s.newSharedFunctions(stack)
	}
	if c.SpotRole {
		newSpotRole(stack, "SpotRole", s.place, c.StackName, s.code[spotRole])
	}
	return s
}

// bucketOf returns the name of the bucket.
func bucketOf(c config.Config, p place) string {
	return cmp.Or(c.Bucket, "joist-"+c.SharedPrefix()+"-"+p.account+"-"+p.region)
}

// listScopes returns the scopes of all clusters.
func (s sharedParts) listScopes(bucket string) []rights.Scope {
	all := make([]rights.Scope, len(s.config.Clusters))
	for i, k := range s.config.Clusters {
		all[i] = newScope(s.place, bucket, k)
	}
	return all
}

// newParameter adds the parameter ClusterName of Karpenter's template, for scripts that deploy
// with --parameter-overrides. It rejects any other cluster.
func newParameter(stack awscdk.Stack, k config.Cluster) {
	parameter := awscdk.NewCfnParameter(stack, jsii.String("ClusterName"), &awscdk.CfnParameterProps{
		Type: jsii.String("String"), Description: jsii.String("EKS cluster name; the template was generated for this one"),
		Default: jsii.String(k.Name), AllowedValues: jsii.Strings(k.Name),
	})
	awscdk.NewCfnOutput(stack, jsii.String("Cluster"), &awscdk.CfnOutputProps{
		Description: jsii.String("The cluster of the stack"), Value: parameter.ValueAsString(),
	})
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// overrideID gives a resource the logical id of Karpenter's template if the stack has one
// cluster.
func (s sharedParts) overrideID(r constructs.IConstruct, id string) {
	if resource, ok := r.(awscdk.CfnElement); ok && len(s.config.Clusters) == 1 {
		resource.OverrideLogicalId(jsii.String(id))
	}
}
