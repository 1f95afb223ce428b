package rights_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/joist-autoscaler/joist/infra/rights"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// inVPC is a way to run functions in a VPC.
type inVPC struct {
	change func(*rights.Scope)
	// owner is the first part of the names of the functions' documents, who that of their
	// principals.
	owner, who string
	// calls are the calls that Joist makes.
	calls []call
}

// functionsInVPC returns both ways by title.
func functionsInVPC() map[string]inVPC {
	return map[string]inVPC{
		"own functions":    {currentSystem, cluster + "/", "", legitimate()},
		"shared functions": {sharedSystem, common + "/", "common/", slices.Concat(legitimate(), legitimateTogether())},
	}
}

// documents returns the policies for the VPC of the first cluster's functions.
func (v inVPC) documents(t *testing.T) map[string]rights.Document {
	t.Helper()
	s, out := scope(t, cluster), map[string]rights.Document{}
	v.change(&s)
	for _, service := range topology.ExternalServices {
		out[v.owner+service+"/network"] = s.NetworkPolicy(service)
	}
	return out
}

// networkActions are the actions that Lambda's documentation requires for functions in a VPC.
var networkActions = []string{
	"ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets",
	"ec2:UnassignPrivateIpAddresses",
}

// connections returns the calls with which Lambda connects a service's function. They have no
// function ARN.
func (v inVPC) connections(service string) []call {
	var out []call
	for _, action := range networkActions {
		out = append(out, call{name: "Lambda calls " + action + " with the role of " + service, who: v.who + service, models: "Lambda",
			needs: singleCall(newCall(action, "*", key("lambda:SourceFunctionArn")))})
	}
	return out
}

// attacks returns the same calls by the function's code, except for the catalog's own.
func (v inVPC) attacks(service string) []attack {
	var out []call
	for _, action := range networkActions {
		if v.who+service != "catalog" || action != "ec2:DescribeSubnets" {
			out = append(out, call{name: "the code of " + service + " calls " + action, who: v.who + service, models: action, needs: singleCall(newCall(action, "*"))})
		}
	}
	return asPrincipal(otherCalls, out...)
}

// check checks calls in a system of functions in a VPC. AWS adds the function's ARN to the
// calls of its code.
func (v inVPC) check(t *testing.T, s system, calls []call) {
	t.Helper()
	for _, service := range topology.ExternalServices {
		calls = slices.Concat(calls, v.connections(service))
		for _, a := range v.attacks(service) {
			if ok, _ := s.isAllowed(t, a.call); ok {
				t.Errorf("%s: %s is allowed", s.title, a.name)
			}
		}
	}
	for _, c := range calls {
		// A shared function makes some calls with its own role and some with the cluster's.
		for _, n := range c.needs {
			c.needs = singleCall(n)
			if ok, refused := s.isAllowed(t, c); !ok {
				t.Errorf("%s: %s: %s is denied", s.title, c.name, refused)
			}
		}
	}
}

// Functions in a VPC may make each call that they make outside one. Lambda may connect them to
// the VPC, and their code may not.
func TestFunctionsInVPCMakeTheirCalls(t *testing.T) {
	for title, v := range functionsInVPC() {
		all := deployed(t, v.change)
		maps.Copy(all, v.documents(t))
		v.check(t, joist(t, title, all), v.calls)
	}
}

// The synthesized template of functions in a VPC allows the same. Its node classes name their
// profiles, and it reads no zonal shifts.
func TestSynthesizedFunctionsInVPCMakeTheirCalls(t *testing.T) {
	calls := slices.DeleteFunc(slices.Concat(legitimateLaunches(), legitimateReads(), legitimateDocuments(), legitimateMessages()), func(c call) bool {
		return !slices.Contains(topology.ExternalServices, c.who) || options[c.name] == "zonalShift"
	})
	if len(calls) < 80 {
		t.Errorf("there are only %d calls", len(calls))
	}
	functionsInVPC()["own functions"].check(t, synthesizedSystem(t, "oidc.template.json", currentSystem), calls)
}

// Lambda needs each action of the policy for a VPC, and its denial prevents attacks. The
// service's own policy is left out, because the catalog's allows one of the actions as well.
func TestEveryRightInVPCIsNeeded(t *testing.T) {
	for _, v := range functionsInVPC() {
		all := v.documents(t)
		for _, service := range topology.ExternalServices {
			whose := v.owner + service + "/network"
			everyRightIsNeeded(t, all, whose, v.connections(service))
			for i, s := range all[whose].Statement {
				for _, m := range withoutCondition(all, whose, i, s) {
					if !allowsAttack(t, m, whose, v.attacks(service)) {
						t.Errorf("without %s/%s: %s every attack is still denied", whose, s.Sid, m.name)
					}
				}
			}
		}
	}
}
