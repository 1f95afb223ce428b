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

// plane is what one cluster has.
type plane struct {
	shared
	scope   constructs.Construct
	cluster config.Cluster
	rights  rights.Scope
	queues  map[string]WorkQueue
	roles   map[string]awsiam.CfnRole
}

// newCluster makes everything that belongs to one cluster.
func newCluster(stack awscdk.Stack, s shared, k config.Cluster) plane {
	p := plane{
		shared: s, scope: constructs.NewConstruct(stack, jsii.String(clusterID(k))), cluster: k, rights: scopeOf(s.place, s.bucket, k),
		queues: map[string]WorkQueue{}, roles: map[string]awsiam.CfnRole{},
	}
	newNodeIdentity(p.scope, "Nodes", s.place, p.rights, k)
	newBus(p.scope, "Bus", k.Plan, plain(p.rights.Bus()))
	p.makeRoles()
	p.makeQueues()
	p.makeRules()
	newTicker(p.scope, "Ticker", k.Plan, p.queues, p.roles[topology.Scheduler])
	for _, service := range topology.Outside {
		p.work(service)
	}
	p.people()
	p.known()
	p.board()
	if s.config.Charts.Install {
		p.charts()
	}
	p.outputs()
	return p
}

// work makes the cluster's function of a service, or has the one that clusters share work
// for it.
func (p plane) work(service string) {
	if host, ok := p.hosts[service]; ok {
		newSource(constructs.NewConstruct(p.scope, jsii.String(title(service))), service, p.queues[service], host)
		return
	}
	newWorker(p.scope, title(service), workerProps{
		name: p.cluster.Plan.Function(service), service: service, queue: p.queues[service], role: p.roles[service],
		code: p.code[service], environment: told(p.place, p.bucket, p.config, p.cluster, service), memory: p.config.SizeOf(service).Memory, timeout: timeout(p.cluster, service), network: p.network, reserved: p.config.Reserved[service],
	})
}

// makeRoles makes a role for each service, and one for the scheduler.
func (p plane) makeRoles() {
	for _, service := range append(append([]string{topology.Scheduler}, topology.Outside...), topology.Inside...) {
		role := newServiceRole(p.scope, title(service)+"Role", roleProps{
			name: roleName(p.cluster, service), description: "What Joist's " + service + " may do for the cluster " + p.cluster.Name,
			trust: p.trust(service), rights: p.may(service),
		})
		except(role, p.wildcards(service)...)
		p.roles[service] = role
	}
	for _, service := range topology.Inside {
		if p.cluster.OIDCProvider == "" {
			newPodIdentity(p.scope, title(service)+"Identity", p.cluster, service, p.roles[service])
		}
	}
}

// wildcards are the exceptions of a service's role as the cluster has it.
func (p plane) wildcards(service string) []exception {
	var all []exception
	for _, e := range wildcards[service] {
		if (e != profilesOf || p.cluster.Node.Profiles == config.ByRole) && (e != logStreams || p.hosts == nil) {
			all = append(all, e)
		}
	}
	if p.network != nil && p.hosts == nil && slices.Contains(topology.Outside, service) {
		all = append(all, interfaces)
	}
	return all
}

// roleName is what the role is called that a service has in a cluster.
func roleName(k config.Cluster, service string) string { return k.Plan.Prefix + "-joist-" + service }

func (p plane) roleARN(service string) string {
	return p.place.global("role/" + roleName(p.cluster, service))
}

// makeQueues makes each service's queue. Policies name roles in conditions only, and so need not wait for them.
func (p plane) makeQueues() {
	for _, queue := range p.cluster.Plan.Queues {
		p.queues[queue.Service] = newWorkQueue(p.scope, title(queue.Service)+"Queue", queueProps{
			place: p.place, queue: queue, policy: plain(p.rights.Queue(queue)), deadPolicy: plain(p.rights.Dead(queue)),
		})
	}
	newDeadQueue(p.scope, "AuditQueue", p.cluster.Plan.AuditDead, plain(p.rights.RuleDead(p.cluster.Plan.AuditDead)))
}

// adoptQueue lets the rules send to a queue that was there before, if nothing does.
func (p plane) adoptQueue() {
	if q := p.queues["interruption"]; q.Existing && !p.cluster.Queue.Policy {
		newQueuePolicy(p.scope, "AdoptedPolicy", jsii.String(q.URL), plain(p.rights.Queue(q.Queue)))
	}
}

// known gives what Karpenter's template has, too, the logical ids of that.
func (p plane) known() {
	for _, r := range *p.scope.Node().FindAll(constructs.ConstructOrder_PREORDER) {
		path := strings.TrimPrefix(*r.Node().Path(), *p.scope.Node().Path()+"/")
		if id := karpenters[path]; id != "" {
			p.named(r, id)
		}
	}
}

// karpenters are the logical ids of Karpenter's template by our paths; its rules are
// called as ours.
var karpenters = map[string]string{
	"Nodes/Role": "KarpenterNodeRole", "Nodes/Profile": "KarpenterNodeInstanceProfile",
	"InterruptionQueue/Main": "KarpenterInterruptionQueue", "InterruptionQueue/Policy": "KarpenterInterruptionQueuePolicy",
}

// makeRules makes the rules of both buses that are not there.
func (p plane) makeRules() {
	existing := map[string]bool{}
	for _, id := range p.cluster.Queue.Rules {
		existing[id] = true
	}
	for _, rule := range p.cluster.Plan.Rules {
		if existing[rule.ID] {
			continue
		}
		target, arn, dead := "AuditLog", p.place.arn("logs", "log-group:"+p.cluster.Plan.AuditLogGroup), p.place.arn("sqs", p.cluster.Plan.AuditDead)
		if rule.Service != "" {
			queue := p.queues[rule.Service]
			target, arn, dead = "JoistQueue", queue.ARN, queue.DeadARN
			if rule.Service == "interruption" {
				// The id that people know from Karpenter's template.
				target = "KarpenterInterruptionQueueTarget"
			}
		}
		made := newRule(p.scope, rule.ID, rule, target, arn, dead)
		p.named(made, rule.ID)
		if rule.Bus != topology.DefaultBus {
			made.Node().AddDependency(p.scope.Node().FindChild(jsii.String("Bus")))
		}
		if q := p.queues[rule.Service].made; q != nil {
			made.Node().AddDependency(q)
		}
	}
}
