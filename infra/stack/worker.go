package stack

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3assets"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/joist-autoscaler/joist/infra/config"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// logDays is the retention of the functions' logs.
const logDays = 30

// CheckBinary fails if the folder lacks a function's binary.
func CheckBinary(folder, service string) error {
	file := filepath.Join(folder, service, "bootstrap")
	found, err := os.Stat(file)
	if err == nil && found.Mode().IsRegular() && found.Mode().Perm()&0o111 != 0 {
		return nil
	}
	return fault.F("finding the function of "+service, fault.Invalid, "%s is not an executable file", file).
		WithHint("build the functions with `make lambdas`, or set their folder: --context binaries=<folder>")
}

// workerProps are the properties of a service's function.
type workerProps struct {
	name, service string
	queue         WorkQueue
	role          awsiam.CfnRole
	code          awss3assets.Asset
	environment   map[string]string
	memory        float64
	timeout       time.Duration
	network       *network
	// reserved is the reserved concurrency; 0 reserves none.
	reserved int
}

// network has the subnets and security groups of functions in a VPC.
type network struct{ subnets, securityGroups []string }

func (n *network) vpcConfig() *awslambda.CfnFunction_VpcConfigProperty {
	if n == nil {
		return nil
	}
	return &awslambda.CfnFunction_VpcConfigProperty{SubnetIds: jsii.Strings(n.subnets...), SecurityGroupIds: jsii.Strings(n.securityGroups...)}
}

// newWorker adds a function that consumes a queue, with its log group.
func newWorker(scope constructs.Construct, id string, p workerProps) awslambda.CfnFunction {
	scope = constructs.NewConstruct(scope, jsii.String(id))
	function := newServiceFunction(scope, p)
	newSource(scope, p.service, p.queue, function)
	return function
}

// newServiceFunction adds the function of a service.
func newServiceFunction(scope constructs.Construct, p workerProps) awslambda.CfnFunction {
	return newFunction(scope, functionProps{
		name: p.name, description: "Joist's " + p.service + " service", memory: p.memory, timeout: p.timeout,
		role: p.role, code: p.code, environment: p.environment, network: p.network, reserved: p.reserved,
	})
}

// newSource adds the event source mapping from a queue to a function.
func newSource(scope constructs.Construct, service string, queue WorkQueue, function awslambda.CfnFunction) {
	size := config.Sizes[service]
	mapping := awslambda.NewCfnEventSourceMapping(scope, jsii.String("Source"), &awslambda.CfnEventSourceMappingProps{
		FunctionName: function.Ref(), EventSourceArn: jsii.String(queue.ARN), BatchSize: jsii.Number(size.Batch),
		FunctionResponseTypes: jsii.Strings("ReportBatchItemFailures"),
		ScalingConfig:         &awslambda.CfnEventSourceMapping_ScalingConfigProperty{MaximumConcurrency: jsii.Number(size.Concurrency)},
	})
	if queue.resource != nil {
		mapping.Node().AddDependency(queue.resource)
	}
}

// functionProps are the properties of a function.
type functionProps struct {
	name, description string
	memory            float64
	timeout           time.Duration
	role              awsiam.CfnRole
	code              awss3assets.Asset
	environment       map[string]string
	network           *network
	reserved          int
}

// newFunction adds a function with a prebuilt binary. It does not use X-Ray; spans go to
// OTEL_EXPORTER_OTLP_ENDPOINT.
func newFunction(scope constructs.Construct, p functionProps) awslambda.CfnFunction {
	logs := awslogs.NewCfnLogGroup(scope, jsii.String("Logs"), &awslogs.CfnLogGroupProps{
		LogGroupName: jsii.String(logGroup(p.name)), RetentionInDays: jsii.Number(logDays),
	})
	props := &awslambda.CfnFunctionProps{
		FunctionName: jsii.String(p.name), Description: jsii.String(p.description),
		Runtime: jsii.String("provided.al2023"), Architectures: jsii.Strings("arm64"), Handler: jsii.String("bootstrap"),
		MemorySize: jsii.Number(p.memory), Timeout: seconds(p.timeout), Role: p.role.AttrArn(),
		Code:          &awslambda.CfnFunction_CodeProperty{S3Bucket: p.code.S3BucketName(), S3Key: p.code.S3ObjectKey()},
		LoggingConfig: &awslambda.CfnFunction_LoggingConfigProperty{LogGroup: logs.Ref(), LogFormat: jsii.String("Text")},
	}
	if p.reserved > 0 {
		props.ReservedConcurrentExecutions = jsii.Number(float64(p.reserved))
	}
	if len(p.environment) > 0 {
		props.Environment = &awslambda.CfnFunction_EnvironmentProperty{Variables: p.environment}
	}
	if vpc := p.network.vpcConfig(); vpc != nil {
		props.VpcConfig = vpc
	}
	return awslambda.NewCfnFunction(scope, jsii.String("Function"), props)
}

func logGroup(function string) string { return "/aws/lambda/" + function }

// titleCase returns a service's name as part of a logical id.
func titleCase(service string) string { return strings.ToUpper(service[:1]) + service[1:] }
