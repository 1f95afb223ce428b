package stack

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/joist-autoscaler/joist/infra/config"
	"github.com/joist-autoscaler/joist/shared/settings"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// plane is what one cluster has.
type plane struct {
	shared
	scope   constructs.Construct
	cluster config.Cluster
	rights  documents
	queues  map[string]WorkQueue
	roles   map[string]awsiam.CfnRole
}

// newCluster makes everything that belongs to one cluster.
func newCluster(stack awscdk.Stack, s shared, k config.Cluster) {
	p := plane{
		shared: s, scope: constructs.NewConstruct(stack, jsii.String(clusterID(k))), cluster: k, rights: rightsOf(s, k),
		queues: map[string]WorkQueue{}, roles: map[string]awsiam.CfnRole{},
	}
	newNodeIdentity(p.scope, "Nodes", s.place, k)
	newBus(p.scope, "Bus", k.Plan)
	p.makeRoles()
	p.makeQueues()
	p.makeRules()
	newTicker(p.scope, "Ticker", k.Plan, p.queues, p.roles[topology.Scheduler])
	for _, service := range topology.Outside {
		newWorker(p.scope, title(service), workerProps{
			place: s.place, name: k.Plan.Prefix + "-joist-" + service, service: service, queue: p.queues[service], role: p.roles[service],
			code: s.code[service], environment: p.environment(service), timeout: p.timeout(service), network: s.network,
		})
	}
	p.board()
	p.outputs()
}

// makeRoles makes a role for each service, and one for the scheduler.
func (p plane) makeRoles() {
	for _, service := range append(append([]string{topology.Scheduler}, topology.Outside...), topology.Inside...) {
		role := newServiceRole(p.scope, title(service)+"Role", roleProps{
			name: p.roleName(service), description: "What Joist's " + service + " may do for the cluster " + p.cluster.Name,
			trust: p.rights.trust(service), rights: map[string]map[string]any{"joist-" + service: p.rights.role(service)},
		})
		p.roles[service] = role
	}
	for _, service := range topology.Inside {
		if p.cluster.OIDCProvider == "" {
			newPodIdentity(p.scope, title(service)+"Identity", p.cluster, service, p.roles[service])
		}
	}
}

func (p plane) roleName(service string) string { return p.cluster.Plan.Prefix + "-joist-" + service }

func (p plane) roleARN(service string) string { return p.place.global("role/" + p.roleName(service)) }

// makeQueues makes each service's queue. Its policy may name roles, which must exist
// then.
func (p plane) makeQueues() {
	for _, queue := range p.cluster.Plan.Queues {
		props := queueProps{place: p.place, queue: queue, deadPolicy: p.rights.dead(queue)}
		if !queue.Existing || !p.cluster.Queue.Policy {
			props.policy = p.rights.queue(queue)
		}
		made := newWorkQueue(p.scope, title(queue.Service)+"Queue", props)
		for _, role := range sortedKeys(p.roles) {
			if made.policy != nil {
				made.policy.Node().AddDependency(p.roles[role])
			}
		}
		p.queues[queue.Service] = made
	}
	newDeadQueue(p.scope, "AuditQueue", p.auditDead(), p.rights.auditDead())
}

// auditDead is the dead-letter queue of what could not be written to the audit log.
func (p plane) auditDead() string { return p.cluster.Plan.Prefix + "-joist-audit-dead" }

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
		target, arn, dead := "AuditLog", p.place.arn("logs", "log-group:"+p.cluster.Plan.AuditLogGroup), p.place.arn("sqs", p.auditDead())
		if rule.Service != "" {
			queue := p.queues[rule.Service]
			target, arn, dead = "JoistQueue", queue.ARN, queue.DeadARN
			if rule.Service == "interruption" {
				// The id that people know from Karpenter's template (A046).
				target = "KarpenterInterruptionQueueTarget"
			}
		}
		made := newRule(p.scope, rule.ID, rule, target, arn, dead)
		if rule.Bus != topology.DefaultBus {
			made.Node().AddDependency(p.scope.Node().FindChild(jsii.String("Bus")))
		}
		if q := p.queues[rule.Service].made; q != nil {
			made.Node().AddDependency(q)
		}
	}
}

// timeout is a function's. Lambda refuses one that is longer than the queue hides its
// messages (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html), and an existing queue is not ours to change.
func (p plane) timeout(service string) time.Duration {
	q := p.queues[service]
	if q.Existing {
		return min(q.Timeout, p.cluster.Queue.Visibility)
	}
	return q.Timeout
}

// environment is what a function is told. Lambda tells it the region, and each message its queue.
func (p plane) environment(service string) map[string]string {
	e := map[string]string{
		settings.ClusterName: p.cluster.Name, settings.Bus: p.cluster.Plan.Bus, settings.DeadLetterURL: p.queues[service].DeadURL,
	}
	if p.cluster.UID != "" {
		e[settings.ClusterUID] = p.cluster.UID
	}
	if service != "interruption" {
		e[settings.Bucket], e[settings.Prefix] = p.bucket, p.cluster.Name
	}
	return e
}
