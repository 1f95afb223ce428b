package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/joist-autoscaler/joist/infra/evaluator"
	"github.com/joist-autoscaler/joist/infra/rights"
	"github.com/joist-autoscaler/joist/integration/environment/helm"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// hostileRights decides which calls a service may make, by the policies that the CDK app attaches and by the roles
// that the Helm chart binds. It has no list of its own.
type hostileRights struct {
	scope rights.Scope
	// identity are the policies of roles by service, resource those of queues, bus and bucket by ARN.
	identity map[string][]evaluator.Policy
	resource map[string][]evaluator.Policy
	grants   map[string][]helm.Grant
}

// The account, region and bucket of the simulated cluster.
const (
	hostileAccount = "123456789012"
	hostileRegion  = "us-west-2"
	hostileBucket  = "joist-demo"
	hostileCluster = "demo"
)

// readHostileRights builds the policies and renders the chart once, because every seed has the same.
var readHostileRights = sync.OnceValues(func() (*hostileRights, error) {
	plan, err := topology.NewPlan(topology.Cluster{Name: hostileCluster})
	if err != nil {
		return nil, err
	}
	r := &hostileRights{
		scope: rights.Scope{
			Partition: "aws", Account: hostileAccount, Region: hostileRegion, Plan: plan, Bucket: hostileBucket, Prefix: hostileCluster,
			NodeRole: "arn:aws:iam::" + hostileAccount + ":role/nodes", Profiles: true, RebootForRepair: true,
		},
		identity: map[string][]evaluator.Policy{}, resource: map[string][]evaluator.Policy{}, grants: map[string][]helm.Grant{},
	}
	for _, service := range slices.Concat(topology.ExternalServices, topology.ClusterServices) {
		document, err := r.scope.ServicePolicy(service)
		if err != nil {
			return nil, err
		}
		if err := addPolicy(r.identity, service, document); err != nil {
			return nil, err
		}
	}
	resources := map[string]rights.Document{r.arn("events", "event-bus/"+plan.Bus): r.scope.BusPolicy(), hostileBucket: rights.BucketPolicy(r.scope)}
	for _, q := range plan.Queues {
		resources[r.arn("sqs", q.Name)], resources[r.arn("sqs", q.Dead)] = r.scope.QueuePolicy(q), r.scope.DeadLetterPolicy(q)
	}
	for arn, document := range resources {
		if err := addPolicy(r.resource, arn, document); err != nil {
			return nil, err
		}
	}
	return r, r.readGrants()
})

func addPolicy(to map[string][]evaluator.Policy, name string, document rights.Document) error {
	policy, err := evaluator.Parse(name, document.JSON())
	if err != nil {
		return fmt.Errorf("reading the policy of %s: %w", name, err)
	}
	to[name] = append(to[name], policy)
	return nil
}

// readGrants renders the chart with the values of the simulated cluster.
func (r *hostileRights) readGrants() error {
	text, err := helm.Template(context.Background(), helm.Release{Name: "joist", Namespace: "joist", Chart: helm.Joist, Set: []string{
		"settings.clusterName=" + hostileCluster, "settings.region=" + hostileRegion, "settings.accountID=" + hostileAccount,
		"controller.image.repository=registry.example.com/joist",
	}})
	if err != nil {
		return err
	}
	objects, err := helm.Objects(text)
	if err != nil {
		return err
	}
	for _, service := range topology.ClusterServices {
		if r.grants[service], err = helm.GrantsOf(objects, "joist-"+service); err != nil {
			return err
		}
	}
	return nil
}

func (r *hostileRights) arn(service, resource string) string {
	return strings.Join([]string{"arn:aws", service, hostileRegion, hostileAccount, resource}, ":")
}

// allows evaluates one request to AWS.
func (r *hostileRights) allows(service, action, resource string, keys map[string]string) bool {
	policies := r.resource[resource]
	if strings.HasPrefix(resource, "arn:aws:s3:::") {
		policies = r.resource[hostileBucket]
	}
	request := evaluator.Request{
		Principal: evaluator.Principal{Kind: evaluator.Role, Name: r.scope.Role(service)}, Action: action, Resource: resource, Owner: hostileAccount,
		Context: map[string][]string{"aws:SecureTransport": {"true"}, "aws:RequestedRegion": {hostileRegion}, "aws:ResourceAccount": {hostileAccount}},
	}
	for key, value := range keys {
		request.Context[key] = []string{value}
	}
	decision, err := evaluator.Policies{Identity: r.identity[service], Resource: policies}.Evaluate(request)
	return err == nil && decision.Allowed
}

// allowsFact reports whether the service may publish an entry with this source and type.
func (r *hostileRights) allowsFact(service, source, detailType string) bool {
	return r.allows(service, "events:PutEvents", r.arn("events", "event-bus/"+r.scope.Plan.Bus), map[string]string{"events:source": source, "events:detail-type": detailType})
}

// queueARN returns the ARN of the queue that belongs to a queue of the simulator: that of a service, or its DLQ.
func (r *hostileRights) queueARN(service string) string {
	owner, dead := strings.CutSuffix(service, "-dead")
	q, _ := r.scope.Plan.Queue(owner)
	if dead {
		return r.arn("sqs", q.Dead)
	}
	return r.arn("sqs", q.Name)
}

// allowsSend reports whether the service may send to a queue.
func (r *hostileRights) allowsSend(service, to string) bool {
	return r.allows(service, "sqs:SendMessage", r.queueARN(to), nil)
}

// allowsReceive reports whether the service may receive from a queue and delete its messages.
func (r *hostileRights) allowsReceive(service, from string) bool {
	return r.allows(service, "sqs:ReceiveMessage", r.queueARN(from), nil) && r.allows(service, "sqs:DeleteMessage", r.queueARN(from), nil)
}

// allowsPut reports whether the service may write a document.
func (r *hostileRights) allowsPut(service, key string) bool {
	return r.allows(service, "s3:PutObject", "arn:aws:s3:::"+hostileBucket+"/"+hostileCluster+"/"+key, nil)
}

// allowsInstanceCall reports whether the service may call an action of EC2 on an instance with these tags.
func (r *hostileRights) allowsInstanceCall(service, action, id string, tags map[string]string) bool {
	keys := map[string]string{}
	for key, value := range tags {
		keys["aws:ResourceTag/"+key] = value
	}
	return r.allows(service, "ec2:"+action, r.arn("ec2", "instance/"+id), keys)
}

// allowsObject reports whether the chart's roles allow a verb on an object of Kubernetes. A subresource follows the
// resource after a slash.
func (r *hostileRights) allowsObject(service, verb, group, resource string, key cluster.Key) bool {
	for _, grant := range r.grants[service] {
		if grant.Namespace != "" && grant.Namespace != key.Namespace {
			continue
		}
		if slices.ContainsFunc(grant.Rules, func(rule rbacv1.PolicyRule) bool {
			return hasOrAll(rule.APIGroups, group) && hasOrAll(rule.Resources, resource) && hasOrAll(rule.Verbs, verb) &&
				(len(rule.ResourceNames) == 0 || verb != "create" && slices.Contains(rule.ResourceNames, key.Name))
		}) {
			return true
		}
	}
	return false
}

func hasOrAll(list []string, value string) bool {
	return slices.Contains(list, value) || slices.Contains(list, "*")
}
