package rights_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/infra/evaluator"
	"github.com/joist-autoscaler/joist/infra/rights"
	"github.com/joist-autoscaler/joist/infra/template"
)

// deployment is a golden template of the CDK app, resolved for the account and region of
// the attacks.
type deployment struct {
	t *testing.T
	*template.Stack
}

func newDeployment(t *testing.T, name string) deployment {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "stack", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	written, err := template.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return deployment{t, written.DeployTo(template.Place{Account: account, Region: region, Partition: "aws", Name: "Joist"})}
}

func (d deployment) properties(id string) map[string]any {
	d.t.Helper()
	r, err := d.Resource(id)
	if err != nil {
		d.t.Fatal(err)
	}
	return r.Properties
}

func (d deployment) policy(name string, document any) evaluator.Policy {
	d.t.Helper()
	text, err := json.Marshal(document)
	if err != nil {
		d.t.Fatal(err)
	}
	p, err := evaluator.Parse(name, text)
	if err != nil {
		d.t.Fatal(err)
	}
	return p
}

// policies returns the template's policies by the ARN of their role or resource: the
// identity policies of roles, and the resource policies with the roles' trust policies.
func (d deployment) policies() (identity, resource map[string][]evaluator.Policy) {
	identity, resource = map[string][]evaluator.Policy{}, map[string][]evaluator.Policy{}
	for id, r := range d.Resources {
		add := func(arn, document any) {
			resource[fmt.Sprint(arn)] = append(resource[fmt.Sprint(arn)], d.policy(id, document))
		}
		switch r.Type {
		case "AWS::IAM::Role":
			p := d.properties(id)
			name := fmt.Sprint(p["RoleName"])
			list, _ := p["Policies"].([]any)
			for _, own := range list {
				identity[role(name)] = append(identity[role(name)], d.policy(id, own.(map[string]any)["PolicyDocument"]))
			}
			add(role(name), p["AssumeRolePolicyDocument"])
		case "AWS::SQS::QueuePolicy":
			p := d.properties(id)
			for _, q := range p["Queues"].([]any) {
				add(queue(template.Name(fmt.Sprint(q))), p["PolicyDocument"])
			}
		case "AWS::S3::BucketPolicy":
			p := d.properties(id)
			add("arn:aws:s3:::"+fmt.Sprint(p["Bucket"]), p["PolicyDocument"])
		case "AWS::Logs::ResourcePolicy":
			for _, name := range []string{cluster, beside} {
				add(auditLog+name, json.RawMessage(fmt.Sprint(d.properties(id)["PolicyDocument"])))
			}
		case "AWS::Events::EventBusPolicy":
			p := d.properties(id)
			add(bus(fmt.Sprint(p["EventBusName"])), map[string]any{"Version": "2012-10-17", "Statement": p["Statement"]})
		}
	}
	return identity, resource
}

// synthesizedSystem returns Joist with the policies of a synthesized template. Policies
// for people, which the template attaches to no role, come from the package, as does the
// second cluster if the template has only one.
func synthesizedSystem(t *testing.T, name string, change func(*rights.Scope)) system {
	t.Helper()
	identity, resource := newDeployment(t, name).policies()
	s := joist(t, name, deployed(t, change))
	beyond, around := s.identity, s.resource
	s.identity = func(service, of string) []evaluator.Policy {
		if found, ok := identity[role(of+"-joist-"+service)]; ok {
			return found
		}
		return beyond(service, of)
	}
	s.resource = func(arn string) []evaluator.Policy {
		arn = attachedTo(arn)
		if found, ok := resource[arn]; ok {
			return found
		}
		return around(arn)
	}
	return s
}

// options are calls that a template denies unless its context has the named key.
var options = map[string]string{
	"read zonal shifts":                    "zonalShift",
	"watcher's pod assumes its role":       "oidcProvider",
	"the replayer moves DLQ messages back": "replayers",
}

// The synthesized template denies every attack, except those with tags that node classes
// may have, and allows all of Joist's calls: the app attaches the policies that the tests
// above check.
func TestSynthesizedTemplate(t *testing.T) {
	const name = "fresh.template.json"
	identity, resource := newDeployment(t, name).policies()
	s := synthesizedSystem(t, name, currentSystem)
	for _, service := range services() {
		if len(identity[s.role(service)]) == 0 {
			t.Errorf("the template has no policies of %s", service)
		}
	}
	for arn := range deployed(t, currentSystem) {
		if strings.HasPrefix(arn, "arn:") && !strings.Contains(arn, beside) && len(resource[arn]) == 0 {
			t.Errorf("the template has no resource policy of %s", arn)
		}
	}
	checkSystem(t, s, anyTags(t))
}

// anyTags returns the attacks that succeed if node classes may have any tag, which is the
// default.
func anyTags(t *testing.T) []string {
	t.Helper()
	s := joist(t, "any tag", deployed(t, func(s *rights.Scope) { s.NodeTags = []string{"*"} }))
	var out []string
	for _, a := range attacks() {
		if ok, _ := s.isAllowed(t, a.call); ok {
			out = append(out, a.name)
		}
	}
	return out
}

// Two clusters that share a stack and a bucket are isolated as well as two that do not.
// In the bucket they may list the names of each other's objects, but not read them.
func TestSynthesizedClustersShareABucket(t *testing.T) {
	const bucket = "joist-joist-all-" + account + "-" + region
	s := synthesizedSystem(t, "clusters.template.json", func(s *rights.Scope) { s.Bucket = bucket })
	s.rename = func(arn string) string {
		for _, name := range []string{cluster, beside} {
			arn = strings.Replace(arn, "arn:aws:s3:::joist-"+name+"-"+account+"-"+region, "arn:aws:s3:::"+bucket, 1)
		}
		return arn
	}
	// Its node tags are listed, so no other attack succeeds.
	checkSystem(t, s, []string{"planner lists the other cluster's bucket"})
}

// checkSystem checks all calls in a system. The calls in but are allowed, for a reason
// that is stated where they are named.
func checkSystem(t *testing.T, s system, but []string) {
	t.Helper()
	for _, c := range legitimate() {
		if ok, refused := s.isAllowed(t, c); ok == (options[c.name] != "") {
			t.Errorf("%s: %v, %s", c.name, ok, refused)
		}
	}
	for _, a := range attacks() {
		if ok, _ := s.isAllowed(t, a.call); ok != slices.Contains(but, a.name) {
			t.Errorf("%s: %v", a.name, ok)
		}
	}
}
