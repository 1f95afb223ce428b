package rights_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/infra/rights"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// sharedSystem makes the two clusters share their functions.
func sharedSystem(s *rights.Scope) { s.Plan.Functions = common }

// ofCommon returns the documents of the resources that the clusters share.
func ofCommon(clusters []rights.Scope) map[string]rights.Document {
	out := map[string]rights.Document{}
	for _, service := range topology.ExternalServices {
		if s := clusters[0]; s.Plan.HasSharedFunctions() {
			out[common+"/"+service], out[s.SharedRole(service)] = rights.SharedFunctionPolicy(service, clusters...), rights.TrustFunction()
		}
	}
	return out
}

// commonNames returns a function that replaces the names of functions and their logs by
// those of shared functions.
func commonNames(together string) func(arn string) string {
	if together == "" {
		return nil
	}
	return func(arn string) string {
		for _, name := range []string{cluster, beside} {
			for _, kind := range []string{":function:", ":log-group:/aws/lambda/"} {
				arn = strings.Replace(arn, kind+name+"-joist-", kind+together+"-joist-", 1)
			}
		}
		return arn
	}
}

// assumedRoles returns the roles with which the caller can make requests: a shared
// function has its own role and may assume the clusters' roles. Credentials that name a
// function are those of the function's own role.
func (s system) assumedRoles(c call) []string {
	service := strings.TrimPrefix(c.who, "neighbour/")
	if s.together == "" || !slices.Contains(topology.ExternalServices, service) {
		return []string{c.who}
	}
	if slices.ContainsFunc(c.needs, func(n need) bool { return len(n.context["lambda:SourceFunctionArn"]) > 0 }) {
		return []string{"common/" + service}
	}
	return []string{c.who, "common/" + service, s.other(c)}
}

// other returns the same service of the other cluster.
func (s system) other(c call) string {
	if service, theirs := strings.CutPrefix(c.who, "neighbour/"); theirs {
		return service
	}
	return "neighbour/" + c.who
}

// functionOf returns the function that AWS reports for a caller; a caller with an assumed
// role has none.
func (s system) functionOf(caller string) string {
	service, theirs := strings.CutPrefix(caller, "neighbour/")
	shared, isShared := strings.CutPrefix(caller, "common/")
	switch {
	case isShared:
		return function(common, shared)
	case s.together != "" || !slices.Contains(topology.ExternalServices, service):
		return ""
	case theirs:
		return function(beside, service)
	}
	return function(cluster, service)
}

// legitimateTogether returns the calls with which shared functions assume the clusters'
// roles.
func legitimateTogether() []call {
	var out []call
	for _, service := range topology.ExternalServices {
		for _, name := range []string{cluster, beside} {
			out = append(out, call{name: service + "'s function assumes the role of " + name, who: "common/" + service, models: "stscreds",
				needs: singleCall(newCall("sts:AssumeRole", role(name+"-joist-"+service), session(service, name)))})
		}
		theirs := queue(strings.Replace(queueOf(service), cluster, beside, 1))
		out = append(out, call{name: service + "'s function receives from the queue of " + beside, who: "common/" + service, models: "host",
			needs: []need{newCall("sqs:ReceiveMessage", theirs), newCall("sqs:DeleteMessage", theirs), newCall("sqs:ChangeMessageVisibility", theirs), newCall("sqs:GetQueueAttributes", theirs)}})
	}
	return out
}

// session returns the condition key with the session name of a function that assumes a
// cluster's role.
func session(service, name string) map[string][]string {
	return key("sts:RoleSessionName", topology.RoleSessionName(service, name))
}

// attacksOnSharing returns the attacks on the roles of clusters that share functions.
func attacksOnSharing() []attack {
	var out []call
	take := func(name, who string, needs need) {
		out = append(out, call{name: name, who: who, models: "AssumeRole", needs: singleCall(needs)})
	}
	launcher := placeholder + "launcher"
	for _, service := range topology.ExternalServices {
		if service != "launcher" {
			take("the shared function of "+service+" assumes the launcher's role", "common/"+service, newCall("sts:AssumeRole", launcher, session("launcher", cluster)))
		}
		take("an administrator assumes the role of "+service+" under the function's name", "administrator", newCall("sts:AssumeRole", placeholder+service, session(service, cluster)))
		take("the shared function of "+service+" assumes its role under the other cluster's name", "common/"+service, newCall("sts:AssumeRole", placeholder+service, session(service, beside)))
		take("the shared function of "+service+" assumes lifecycle's role", "common/"+service, newCall("sts:AssumeRole", placeholder+"lifecycle", session(service, cluster)))
	}
	take("the shared launcher assumes the launcher's role without a session name", "common/launcher", newCall("sts:AssumeRole", launcher))
	take("the shared launcher assumes an administrator's role", "common/launcher", newCall("sts:AssumeRole", role("administrator"), session("launcher", cluster)))
	take("the shared launcher of another stack assumes the launcher's role", "stranger/other-joist-launcher", newCall("sts:AssumeRole", launcher, session("launcher", cluster)))
	take("an administrator of another account assumes the launcher's role under the function's name", "outsider", newCall("sts:AssumeRole", launcher, session("launcher", cluster)))
	take("the other cluster's launcher assumes the launcher's role", "neighbour/lifecycle", newCall("sts:AssumeRole", launcher, session("launcher", cluster)))
	take("another function of the account assumes the launcher's role through the shared one", "common/launcher",
		newCall("sts:AssumeRole", launcher, session("launcher", cluster), key("lambda:SourceFunctionArn", function(cluster, "report"))))
	for _, action := range []need{
		newCall("ec2:TerminateInstances", ec2("instance"), resourceTags(launchedTags(cluster))), newCall("s3:GetObject", object(cluster, "intents/1")),
		newCall("sqs:SendMessage", queue(queueOf("launcher"))), newCall("sqs:SendMessage", queue(deadOf("launcher"))), newCall("sqs:ReceiveMessage", queue(queueOf("planner"))),
		newCall("sqs:ReceiveMessage", queue(deadOf("launcher"))), newCall("events:PutEvents", bus(cluster+"-joist"), key("events:source", "joist/launcher"), key("events:detail-type", "launch.settled.v1")),
	} {
		out = append(out, call{name: "the shared launcher calls " + action.action + " on " + short(action.resource) + " with its own role", who: "common/launcher", models: action.action, needs: singleCall(action)})
	}
	return asPrincipal(sharing, out...)
}

// short returns an ARN without account and region.
func short(arn string) string { return arn[strings.LastIndexAny(arn, ":")+1:] }

// With shared functions, all of Joist's calls are allowed, by the function's own role or
// by the cluster's. Only the attacks succeed that the other cluster's role is allowed to
// make: an attacker who controls the function has the roles of its clusters, and each of
// these has the same permissions as without sharing.
func TestSharedFunctionAttacks(t *testing.T) {
	checkSharedSystem(t, joist(t, "Joist, shared functions", deployed(t, sharedSystem)), legitimate(), nil)
}

// ofBothQueues are the attacks that the shared function makes with its own role: it
// consumes the queues of all its clusters.
var ofBothQueues = []string{
	"interruption deletes messages of an unrelated queue, staging", "interruption receives messages of an unrelated queue, staging",
	"the other cluster receives messages of interruption", "the other cluster receives messages of launcher",
}

// checkSharedSystem checks calls in a system whose clusters share functions. The calls in
// but are allowed for a reason that is stated where they are named.
func checkSharedSystem(t *testing.T, s system, legitimate []call, but []string) {
	t.Helper()
	for _, c := range slices.Concat(legitimate, legitimateTogether()) {
		// A service's work takes several calls, some with the function's role and some with
		// the cluster's.
		for _, n := range c.needs {
			single := c
			single.needs = singleCall(n)
			if ok, refused := s.isAllowed(t, single); !ok {
				t.Errorf("%s: %s", c.name, refused)
			}
		}
	}
	through, apart := 0, slices.Concat(ofBothQueues, but)
	for _, a := range attacks() {
		if ok, _ := s.isAllowed(t, a.call); !ok {
			continue
		}
		if i := slices.Index(apart, a.name); i >= 0 {
			apart = slices.Delete(apart, i, i+1)
			continue
		}
		through++
		for _, who := range slices.DeleteFunc(s.assumedRoles(a.call), func(who string) bool { return who == s.other(a.call) }) {
			if ok, _ := s.decide(t, a.call, who); ok {
				t.Errorf("%s is allowed for %s", a.name, who)
			}
		}
	}
	if len(apart) > 0 {
		t.Errorf("listed as allowed attacks, but no attack has the name: %q", apart)
	}
	if through == 0 {
		t.Error("no attack of a compromised function succeeds, so the comparison is not tested")
	}
}

// The synthesized template has the permissions that the tests above check.
func TestSynthesizedSharedFunctions(t *testing.T) {
	const name, bucket = "shared.template.json", "joist-joist-all-" + account + "-" + region
	change := func(s *rights.Scope) {
		sharedSystem(s)
		s.Bucket = bucket
	}
	identity, resource := newDeployment(t, name).policies()
	for _, service := range topology.ExternalServices {
		for _, of := range []string{common, cluster, beside} {
			if arn := role(of + "-joist-" + service); len(identity[arn]) == 0 || len(resource[arn]) == 0 {
				t.Errorf("the template has no policies of %s, or no trust policy", arn)
			}
		}
	}
	s := synthesizedSystem(t, name, change)
	rename := s.rename
	s.rename = func(arn string) string {
		for _, name := range []string{cluster, beside} {
			arn = strings.Replace(arn, "arn:aws:s3:::joist-"+name+"-"+account+"-"+region, "arn:aws:s3:::"+bucket, 1)
		}
		return rename(arn)
	}
	// As with one bucket of clusters that share nothing else.
	checkSharedSystem(t, s, slices.DeleteFunc(legitimate(), func(c call) bool { return options[c.name] != "" }), []string{"planner lists the other cluster's bucket"})
}

// With shared functions, no permission is superfluous, and each condition on them and on
// the assumed roles prevents an attack.
func TestEveryRightOfSharedFunctionsIsNeeded(t *testing.T) {
	all := deployed(t, sharedSystem)
	var calls []call
	for _, c := range slices.Concat(legitimate(), legitimateTogether()) {
		for _, n := range c.needs {
			c.needs = singleCall(n)
			calls = append(calls, c)
		}
	}
	s := joist(t, "Joist, shared functions", all)
	refused := slices.DeleteFunc(attacks(), func(a attack) bool {
		ok, _ := s.isAllowed(t, a.call)
		return ok
	})
	for _, service := range topology.ExternalServices {
		everyRightIsNeeded(t, all, common+"/"+service, calls)
		for _, whose := range []string{common + "/" + service, role(cluster + "-joist-" + service)} {
			for i, statement := range all[whose].Statement {
				for _, m := range withoutCondition(all, whose, i, statement) {
					if !allowsAttack(t, m, whose, refused) {
						t.Errorf("without %s/%s: %s every attack is still denied", whose, statement.Sid, m.name)
					}
				}
			}
		}
	}
}
