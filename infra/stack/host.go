package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/joist-autoscaler/joist/infra/rights"
	"github.com/joist-autoscaler/joist/shared/host/telemetry/board"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// newHosts makes the functions that all clusters of the stack share, by services, and what
// watches them.
func (s shared) newHosts(stack constructs.Construct) map[string]awslambda.CfnFunction {
	scope := constructs.NewConstruct(stack, jsii.String("Functions"))
	hosts := map[string]awslambda.CfnFunction{}
	for _, service := range topology.Outside {
		hosts[service] = s.newHost(scope, service)
	}
	// The alarms are those of the functions of a cluster; whose messages fail is in their logs.
	for _, a := range board.Alarms(board.Cluster{Plan: topology.Plan{Cluster: "NAME", Prefix: s.config.Clusters[0].Plan.Functions}}) {
		if a.Metrics[0].Namespace == "AWS/Lambda" {
			s.alarm(scope, a)
		}
	}
	return hosts
}

// newHost makes the function of one service. Its role may work on the clusters' queues and
// take their roles, and nothing else.
func (s shared) newHost(scope constructs.Construct, service string) awslambda.CfnFunction {
	scope = constructs.NewConstruct(scope, jsii.String(title(service)))
	name := s.config.Clusters[0].Plan.Function(service)
	may := map[string]map[string]any{"function": plain(rights.SharedFunction(service, s.scopes(s.bucket)...))}
	exceptions := []exception{logStreams}
	if s.network != nil {
		may["network"], exceptions = networkRights(s.place.arn("lambda", "function:"+name)), append(exceptions, interfaces)
	}
	role := newServiceRole(scope, "Role", roleProps{
		name: name, description: "Lets Joist's " + service + " take the roles of the clusters of " + s.config.StackName,
		trust: plain(rights.TrustFunction()), rights: may,
	})
	except(role, exceptions...)
	// No queue may give its messages back before the function has ended.
	longest := timeout(s.config.Clusters[0], service)
	for _, k := range s.config.Clusters[1:] {
		longest = min(longest, timeout(k, service))
	}
	return newServiceFunction(scope, workerProps{
		name: name, service: service, role: role, code: s.code[service], memory: s.config.SizeOf(service).Memory, timeout: longest, network: s.network, reserved: s.config.Reserved[service],
		environment: toldTogether(s.place, s.bucket, s.config, service),
	})
}
