package stack

import (
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/joist-autoscaler/joist/infra/config"
	"github.com/joist-autoscaler/joist/infra/rights"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// clusterStack has the constructs of one cluster.
type clusterStack struct {
	sharedParts
	scope   constructs.Construct
	cluster config.Cluster
	rights  rights.Scope
	queues  map[string]WorkQueue
	roles   map[string]awsiam.CfnRole
}

// newCluster adds all resources of one cluster.
func newCluster(stack awscdk.Stack, s sharedParts, k config.Cluster) clusterStack {
	p := clusterStack{
		sharedParts: s, scope: constructs.NewConstruct(stack, jsii.String(clusterID(k))), cluster: k, rights: newScope(s.place, s.bucket, k),
		queues: map[string]WorkQueue{}, roles: map[string]awsiam.CfnRole{},
	}
	newNodeIdentity(p.scope, "Nodes", s.place, p.rights, k)
	newBus(p.scope, "Bus", k.Plan, policyMap(p.rights.BusPolicy()))
	p.addRoles()
	p.addQueues()
	p.addRules()
	newTicker(p.scope, "Ticker", k.Plan, p.queues, p.roles[topology.Scheduler])
	for _, service := range topology.ExternalServices {
		p.addFunction(service)
	}
	p.addPersonPolicies()
	p.useKarpenterIDs()
	p.addDashboard()
	if s.config.Charts.Install {
		p.addCharts()
	}
	p.addOutputs()
	return p
}

// addFunction adds the cluster's function of a service, or connects its queue to the shared
// function.
func (p clusterStack) addFunction(service string) {
	if host, ok := p.functions[service]; ok {
		newSource(constructs.NewConstruct(p.scope, jsii.String(titleCase(service))), service, p.queues[service], host)
		return
	}
	newWorker(p.scope, titleCase(service), workerProps{
		name: p.cluster.Plan.FunctionName(service), service: service, queue: p.queues[service], role: p.roles[service],
		code: p.code[service], environment: functionEnvironment(p.place, p.bucket, p.config, p.cluster, service), memory: p.config.SizeOf(service).Memory, timeout: functionTimeout(p.cluster, service), network: p.network, reserved: p.config.Reserved[service],
	})
}

// addRoles adds a role for each service and for the scheduler.
func (p clusterStack) addRoles() {
	for _, service := range append(append([]string{topology.Scheduler}, topology.ExternalServices...), topology.ClusterServices...) {
		role := newServiceRole(p.scope, titleCase(service)+"Role", roleProps{
			name: roleName(p.cluster, service), description: "Permissions of Joist's " + service + " for the cluster " + p.cluster.Name,
			trust: p.trustPolicy(service), rights: p.rolePolicies(service),
		})
		suppress(role, p.suppressionsOf(service)...)
		p.roles[service] = role
	}
	for _, service := range topology.ClusterServices {
		if p.cluster.OIDCProvider == "" {
			newPodIdentity(p.scope, titleCase(service)+"Identity", p.cluster, service, p.roles[service])
		}
	}
}

// suppressionsOf returns the cdk-nag suppressions of a service's role.
func (p clusterStack) suppressionsOf(service string) []suppression {
	var all []suppression
	for _, e := range roleSuppressions[service] {
		if (e != profilesOf || p.cluster.Node.Profiles == config.ByRole) && (e != logStreams || p.functions == nil) {
			all = append(all, e)
		}
	}
	if p.network != nil && p.functions == nil && slices.Contains(topology.ExternalServices, service) {
		all = append(all, interfaces)
	}
	return all
}

// roleName returns the name of a service's role in a cluster.
func roleName(k config.Cluster, service string) string { return k.Plan.Prefix + "-joist-" + service }

func (p clusterStack) roleARN(service string) string {
	return p.place.iamARN("role/" + roleName(p.cluster, service))
}

// addQueues adds each service's queue. Its policies name roles in conditions only, so they do not depend on the roles.
func (p clusterStack) addQueues() {
	for _, queue := range p.cluster.Plan.Queues {
		p.queues[queue.Service] = newWorkQueue(p.scope, titleCase(queue.Service)+"Queue", queueProps{
			place: p.place, queue: queue, policy: policyMap(p.rights.QueuePolicy(queue)), deadPolicy: policyMap(p.rights.DeadLetterPolicy(queue)),
		})
	}
	newDeadQueue(p.scope, "AuditQueue", p.cluster.Plan.AuditDead, policyMap(p.rights.RuleDeadLetterPolicy(p.cluster.Plan.AuditDead)))
}

// adoptQueue allows the rules to send to an existing queue without a policy.
func (p clusterStack) adoptQueue() {
	if q := p.queues["interruption"]; q.Existing && !p.cluster.Queue.Policy {
		newQueuePolicy(p.scope, "AdoptedPolicy", jsii.String(q.URL), policyMap(p.rights.QueuePolicy(q.Queue)))
	}
}

// useKarpenterIDs gives resources that are also in Karpenter's template its logical ids.
func (p clusterStack) useKarpenterIDs() {
	for _, r := range *p.scope.Node().FindAll(constructs.ConstructOrder_PREORDER) {
		path := strings.TrimPrefix(*r.Node().Path(), *p.scope.Node().Path()+"/")
		if id := karpenterIDs[path]; id != "" {
			p.overrideID(r, id)
		}
	}
}

// karpenterIDs are the logical ids of Karpenter's template by construct path. Rules have the
// same ids in both.
var karpenterIDs = map[string]string{
	"Nodes/Role": "KarpenterNodeRole", "Nodes/Profile": "KarpenterNodeInstanceProfile",
	"InterruptionQueue/Main": "KarpenterInterruptionQueue", "InterruptionQueue/Policy": "KarpenterInterruptionQueuePolicy",
}

// addRules adds the missing rules of both buses.
func (p clusterStack) addRules() {
	existing := map[string]bool{}
	for _, id := range p.cluster.Queue.Rules {
		existing[id] = true
	}
	for _, rule := range p.cluster.Plan.Rules {
		if existing[rule.ID] {
			continue
		}
		target, arn, dead := "AuditLog", p.place.resourceARN("logs", "log-group:"+p.cluster.Plan.AuditLogGroup), p.place.resourceARN("sqs", p.cluster.Plan.AuditDead)
		if rule.Service != "" {
			queue := p.queues[rule.Service]
			target, arn, dead = "JoistQueue", queue.ARN, queue.DeadARN
			if rule.Service == "interruption" {
				// The id in Karpenter's template.
				target = "KarpenterInterruptionQueueTarget"
			}
		}
		made := newRule(p.scope, rule.ID, rule, target, arn, dead)
		p.overrideID(made, rule.ID)
		if rule.Bus != topology.DefaultBus {
			made.Node().AddDependency(p.scope.Node().FindChild(jsii.String("Bus")))
		}
		if q := p.queues[rule.Service].resource; q != nil {
			made.Node().AddDependency(q)
		}
	}
}
