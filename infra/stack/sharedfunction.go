package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/joist-autoscaler/joist/infra/rights"
	"github.com/joist-autoscaler/joist/shared/host/telemetry/board"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// newSharedFunctions adds the shared functions and their alarms, and returns them by service.
func (s sharedParts) newSharedFunctions(stack constructs.Construct) map[string]awslambda.CfnFunction {
	scope := constructs.NewConstruct(stack, jsii.String("Functions"))
	hosts := map[string]awslambda.CfnFunction{}
	for _, service := range topology.ExternalServices {
		hosts[service] = s.newSharedFunction(scope, service)
	}
	// The alarms cover all clusters; the logs name the cluster of a failed message.
	for _, a := range board.Alarms(board.Cluster{Plan: topology.Plan{Cluster: "NAME", Prefix: s.config.Clusters[0].Plan.Functions}}) {
		if a.Metrics[0].Namespace == "AWS/Lambda" {
			s.addAlarm(scope, a)
		}
	}
	return hosts
}

// newSharedFunction adds the shared function of one service. Its role may only consume the
// clusters' queues and assume their roles.
func (s sharedParts) newSharedFunction(scope constructs.Construct, service string) awslambda.CfnFunction {
	scope = constructs.NewConstruct(scope, jsii.String(titleCase(service)))
	name := s.config.Clusters[0].Plan.FunctionName(service)
	scopes := s.listScopes(s.bucket)
	may := map[string]map[string]any{"function": policyMap(rights.SharedFunctionPolicy(service, scopes...))}
	exceptions := []suppression{logStreams}
	if s.network != nil {
		may["network"], exceptions = policyMap(scopes[0].NetworkPolicy(service)), append(exceptions, interfaces)
	}
	role := newServiceRole(scope, "Role", roleProps{
		name: name, description: "Allows Joist's " + service + " to assume the roles of the clusters of " + s.config.StackName,
		trust: policyMap(rights.TrustFunction()), rights: may,
	})
	suppress(role, exceptions...)
	// The function must end before any queue's visibility timeout.
	shortest := functionTimeout(s.config.Clusters[0], service)
	for _, k := range s.config.Clusters[1:] {
		shortest = min(shortest, functionTimeout(k, service))
	}
	return newServiceFunction(scope, workerProps{
		name: name, service: service, role: role, code: s.code[service], memory: s.config.SizeOf(service).Memory, timeout: shortest, network: s.network, reserved: s.config.Reserved[service],
		environment: sharedEnvironment(s.place, s.bucket, s.config, service),
	})
}
