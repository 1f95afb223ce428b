package rights_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/infra/evaluator"
	"github.com/joist-autoscaler/joist/infra/rights"
	"github.com/joist-autoscaler/joist/shared/queue/eventpattern"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// need is one request of a call. A call succeeds if all its requests are allowed.
type need struct {
	action, resource string
	context          map[string][]string
	// owner is the resource's account, if the ARN has none.
	owner string
	// entry is an event on the cluster's bus. If the attack is its delivery, one of the
	// bus's rules must match it.
	entry []byte
}

// call is an API call by a principal.
type call struct {
	// name describes the call in one line; it is unique.
	name string
	// who is a service of the cluster, or another principal that systems know (see
	// principal).
	who string
	// models is the modelled API call, or the code that makes it.
	models string
	needs  []need
	// apart is set if Joist denies the call because another service does that work. A
	// single process that does all work cannot deny it.
	apart bool
}

// system decides calls by the policies of one way to run a cluster.
type system struct {
	title string
	// role returns the ARN of the role of a service in the cluster.
	role func(service string) string
	// identity returns the policies of a service of a cluster, resource those of a
	// resource.
	identity func(service, cluster string) []evaluator.Policy
	resource func(arn string) []evaluator.Policy
	// rename returns the system's name of a resource, if it differs from the usual one.
	rename func(arn string) string
	// together is the name prefix of functions that both clusters share; empty if each
	// cluster has its own.
	together string
}

// deployed returns the documents of two clusters, by owner: a service's role, a
// resource's ARN, or a person.
func deployed(t *testing.T, change func(*rights.Scope)) map[string]rights.Document {
	t.Helper()
	out := map[string]rights.Document{}
	var both []rights.Scope
	for _, name := range []string{cluster, beside} {
		s := scope(t, name)
		change(&s)
		both = append(both, s)
		for _, service := range append(services(), topology.Scheduler) {
			out[name+"/"+service], out[s.Role(service)] = must(t)(s.ServicePolicy(service)), trustOf(s, service)
			if slices.Contains(topology.ExternalServices, service) && !s.Plan.HasSharedFunctions() {
				out[name+"/"+service+"/function"] = s.FunctionPolicy(service)
			}
		}
		for _, q := range s.Plan.Queues {
			out[queue(q.Name)], out[queue(q.Dead)] = s.QueuePolicy(q), s.DeadLetterPolicy(q)
		}
		out[bus(s.Plan.Bus)], out["arn:aws:s3:::"+s.Bucket], out[s.NodeRole] = s.BusPolicy(), rights.BucketPolicy(s), s.TrustNodes()
		out[auditLog+name] = rights.AuditPolicy(s)
		out[name+"/operator"], out[name+"/replayer"], out[name+"/replayer/function"] = must(t)(s.OperatorPolicy()), must(t)(s.ReplayerPolicy()), must(t)(s.OperatorPolicy())
	}
	maps.Copy(out, ofCommon(both))
	return out
}

func must(t *testing.T) func(rights.Document, error) rights.Document {
	return func(d rights.Document, err error) rights.Document {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

// joist returns a system with the deployed documents.
func joist(t *testing.T, title string, documents map[string]rights.Document) system {
	t.Helper()
	read := func(names ...string) (out []evaluator.Policy) {
		for _, name := range names {
			if d, ok := documents[name]; ok {
				out = append(out, parsePolicy(t, name, d))
			}
		}
		return out
	}
	together := ""
	if _, shared := documents[common+"/launcher"]; shared {
		together = common
	}
	return system{
		title: title, together: together, rename: commonNames(together),
		role: scope(t, cluster).Role,
		identity: func(service, of string) []evaluator.Policy {
			return read(of+"/"+service, of+"/"+service+"/function", of+"/"+service+"/network")
		},
		resource: func(arn string) []evaluator.Policy {
			return read(attachedTo(arn))
		},
	}
}

// auditLog is the prefix of the ARNs of audit logs.
const auditLog = "arn:aws:logs:" + region + ":" + account + ":log-group:/joist/"

// attachedTo returns the resource whose policy applies to a resource: the bucket for an
// object, the log group for a stream.
func attachedTo(arn string) string {
	if strings.HasPrefix(arn, "arn:aws:s3:::") {
		arn, _, _ = strings.Cut(arn, "/")
	}
	arn, _, _ = strings.Cut(arn, "/facts:")
	return arn
}

// factLog returns the ARN of the stream of a cluster's audit log that EventBridge writes
// to.
func factLog(cluster string) string { return auditLog + cluster + "/facts:log-stream:1" }

func trustOf(s rights.Scope, service string) rights.Document {
	switch service {
	case topology.Scheduler:
		return s.TrustScheduler()
	case "planner", "disruption", "interruption", "catalog", "launcher":
		if s.Plan.HasSharedFunctions() {
			return s.TrustShared(service)
		}
		return rights.TrustFunction()
	case "lifecycle":
		return s.TrustPod("joist", "joist-lifecycle")
	case "watcher":
		return rights.TrustAccount("arn:aws:iam::"+account+":oidc-provider/"+issuer, issuer, "joist", "joist-watcher")
	}
	panic(service + " is no service")
}

// everything returns the policy of an administrator.
func everything(t *testing.T) evaluator.Policy {
	t.Helper()
	p, err := evaluator.Parse("administrator", []byte(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}`))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// principal returns a system's principal and its policies by name. In addition to
// services, the names are: "neighbour/<service>" of the other cluster, "administrator" of
// this account, "outsider" with all permissions in another account, "stranger/<role>"
// with all permissions in this one but another name, "common/<service>" for a shared
// function, "aws/<service principal>", "web/<issuer>" for users of an OIDC provider, and
// people.
func (s system) principal(t *testing.T, who string) (evaluator.Principal, []evaluator.Policy) {
	t.Helper()
	kind, name, _ := strings.Cut(who, "/")
	switch kind {
	case "administrator":
		return evaluator.Principal{Kind: evaluator.Role, Name: role("administrator")}, []evaluator.Policy{everything(t)}
	case "outsider":
		return evaluator.Principal{Kind: evaluator.Role, Name: otherARN(role("administrator"), account, foreign)}, []evaluator.Policy{everything(t)}
	case "stranger":
		return evaluator.Principal{Kind: evaluator.Role, Name: role(name)}, []evaluator.Policy{everything(t)}
	case "common":
		return evaluator.Principal{Kind: evaluator.Role, Name: role(common + "-joist-" + name)}, s.identity(name, common)
	case "aws":
		return evaluator.Principal{Kind: evaluator.Service, Name: name}, nil
	case "web":
		return evaluator.Principal{Kind: evaluator.Federated, Name: "arn:aws:iam::" + account + ":oidc-provider/" + name}, nil
	case "neighbour":
		return evaluator.Principal{Kind: evaluator.Role, Name: strings.ReplaceAll(s.role(name), cluster, beside)}, s.identity(name, beside)
	case "operator":
		return evaluator.Principal{Kind: evaluator.Role, Name: role("operator")}, s.identity(who, cluster)
	case "replayer":
		return evaluator.Principal{Kind: evaluator.Role, Name: onCall}, s.identity(who, cluster)
	}
	return evaluator.Principal{Kind: evaluator.Role, Name: s.role(who)}, s.identity(who, cluster)
}

// placeholder stands for a service's role, whose name differs between systems.
const placeholder = "role of "

// isAllowed reports whether the call succeeds, otherwise which request was denied. An
// attacker who controls a function has all roles that it may assume.
func (s system) isAllowed(t *testing.T, c call) (ok bool, refused string) {
	t.Helper()
	for _, who := range s.assumedRoles(c) {
		if ok, refused = s.decide(t, c, who); ok {
			return true, ""
		}
	}
	return false, refused
}

// decide is isAllowed for one of the roles.
func (s system) decide(t *testing.T, c call, caller string) (bool, string) {
	t.Helper()
	who, identity := s.principal(t, caller)
	for _, n := range c.needs {
		resource := n.resource
		if service, ok := strings.CutPrefix(resource, placeholder); ok {
			resource = s.role(service)
			if s.together != "" && caller == "aws/lambda.amazonaws.com" && slices.Contains(topology.ExternalServices, service) {
				resource = role(common + "-joist-" + service)
			}
		}
		if s.rename != nil {
			resource = s.rename(resource)
		}
		full := map[string][]string{"aws:SecureTransport": {"true"}, "aws:RequestedRegion": {region}}
		if function := s.functionOf(caller); function != "" {
			full["lambda:SourceFunctionArn"] = []string{function}
		}
		maps.Copy(full, n.context)
		owner := n.owner
		if owner == "" && strings.HasPrefix(resource, "arn:aws:s3") {
			owner = account
			if len(full["aws:ResourceAccount"]) > 0 {
				owner = full["aws:ResourceAccount"][0]
			}
			full["aws:ResourceAccount"] = []string{owner}
		}
		policies := evaluator.Policies{Identity: identity, Resource: s.resource(resource)}
		if strings.HasPrefix(resource, "arn:aws:s3") && owner == foreign {
			// An attacker who creates a bucket to receive Joist's documents permits writes
			// by everyone.
			policies.Resource = []evaluator.Policy{trapBucket(t)}
		}
		d, err := policies.Evaluate(evaluator.Request{Principal: who, Action: n.action, Resource: resource, Owner: owner, Context: full})
		if err != nil {
			t.Fatalf("%s: %s: %v", s.title, c.name, err)
		}
		if !d.Allowed {
			return false, fmt.Sprintf("%s on %s (%s)", n.action, resource, d.By)
		}
		if n.entry != nil && !deliveredFrom(t, n.entry) {
			return false, "no rule of the bus matches " + string(n.entry)
		}
	}
	return true, ""
}

// deliveredFrom reports whether a rule of the cluster's own bus matches the event.
func deliveredFrom(t *testing.T, entry []byte) bool {
	t.Helper()
	plan := scope(t, cluster).Plan
	return slices.ContainsFunc(plan.Rules, func(r topology.Rule) bool {
		if r.Bus != plan.Bus {
			return false
		}
		pattern, err := eventpattern.Compile([]byte(r.Pattern))
		if err != nil {
			t.Fatal(err)
		}
		ok, err := pattern.Match(entry)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	})
}

// trapBucket returns the policy of an attacker's bucket.
func trapBucket(t *testing.T) evaluator.Policy {
	t.Helper()
	return parsePolicy(t, "trap", rights.Document{Version: "2012-10-17", Statement: []rights.Statement{
		{Effect: "Allow", Principal: rights.Principal{"AWS": {"*"}}, Action: []string{"s3:*"}, Resource: []string{"*"}}}})
}

func function(cluster, service string) string {
	return "arn:aws:lambda:" + region + ":" + account + ":function:" + cluster + "-joist-" + service
}

// Builders of requests.

func newCall(action, resource string, contexts ...map[string][]string) need {
	n := need{action: action, resource: resource, context: map[string][]string{}}
	for _, c := range contexts {
		maps.Copy(n.context, c)
	}
	return n
}

// key returns one condition key.
func key(name string, values ...string) map[string][]string {
	return map[string][]string{name: values}
}

// resourceTags returns the condition keys of the resource's tags; EC2 has two names for
// each.
func resourceTags(tags map[string]string) map[string][]string {
	out := map[string][]string{}
	for k, v := range tags {
		out["aws:ResourceTag/"+k], out["ec2:ResourceTag/"+k] = []string{v}, []string{v}
	}
	return out
}

// requestTags returns the condition keys of the tags in a request.
func requestTags(tags map[string]string) map[string][]string {
	out := map[string][]string{}
	for k, v := range tags {
		out["aws:RequestTag/"+k] = []string{v}
	}
	if len(tags) > 0 {
		out["aws:TagKeys"] = slices.Sorted(maps.Keys(tags))
	}
	return out
}

// launch is a CreateFleet of type instant, which launches with RunInstances: the tags of
// the new resources, the template's tags, and the instances' role.
type launch struct {
	tags, template map[string]string
	// templateARN, node and region have defaults if empty.
	templateARN, node, region string
	// bare are the kinds of resources that get no tags.
	bare []string
}

func (l launch) needs() []need {
	template, node := l.templateARN, l.node
	if template == "" {
		template = ec2("launch-template")
	}
	if node == "" {
		node = role("KarpenterNodeRole-" + cluster)
	}
	var out []need
	for _, action := range []string{"CreateFleet", "RunInstances"} {
		for _, kind := range []string{"image", "subnet", "security-group"} {
			out = append(out, newCall("ec2:"+action, ec2(kind)))
		}
		out = append(out, newCall("ec2:"+action, template, resourceTags(l.template)))
		for _, kind := range []string{"fleet", "instance", "volume", "network-interface", "spot-instances-request"} {
			if kind == "fleet" && action != "CreateFleet" {
				continue
			}
			set := l.tags
			if slices.Contains(l.bare, kind) {
				set = nil
			}
			out = append(out, newCall("ec2:"+action, ec2(kind), requestTags(set)))
			if len(set) > 0 {
				out = append(out, newCall("ec2:CreateTags", ec2(kind), requestTags(set), key("ec2:CreateAction", action)))
			}
		}
	}
	out = append(out, newCall("iam:PassRole", node, key("iam:PassedToService", "ec2.amazonaws.com")))
	if l.region != "" {
		for i := range out {
			out[i].resource = otherARN(out[i].resource, region, l.region)
			out[i].context["aws:RequestedRegion"] = []string{l.region}
		}
	}
	return out
}

// makeTemplate returns the requests of ec2:CreateLaunchTemplate.
func makeTemplate(tags map[string]string) []need {
	out := []need{newCall("ec2:CreateLaunchTemplate", ec2("launch-template"), requestTags(tags))}
	if len(tags) > 0 {
		out = append(out, newCall("ec2:CreateTags", ec2("launch-template"), requestTags(tags), key("ec2:CreateAction", "CreateLaunchTemplate")))
	}
	return out
}

// changeTags returns the requests of ec2:CreateTags on an existing instance.
func changeTags(has, gets map[string]string) []need {
	return []need{newCall("ec2:CreateTags", ec2("instance"), resourceTags(has), requestTags(gets))}
}

func singleCall(n need) []need { return []need{n} }
