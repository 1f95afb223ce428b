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
)

// template is a CloudFormation template, as far as policies need it.
type template struct {
	t         *testing.T
	Resources map[string]struct {
		Type       string
		Properties map[string]any
	}
}

func readTemplate(t *testing.T, name string) template {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "stack", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	out := template{t: t}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// names are the properties by which Ref calls a resource.
var names = map[string]string{"AWS::SQS::Queue": "QueueName", "AWS::S3::Bucket": "BucketName", "AWS::Events::EventBus": "Name", "AWS::IAM::Role": "RoleName"}

// resolve fills in what CloudFormation would. What it does not know fails the test.
func (f template) resolve(value any) any {
	switch v := value.(type) {
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = f.resolve(inner)
		}
		return out
	case map[string]any:
		if ref, ok := v["Ref"].(string); ok {
			return f.named(ref)
		}
		if join, ok := v["Fn::Join"].([]any); ok {
			var b strings.Builder
			for _, piece := range f.resolve(join[1]).([]any) {
				fmt.Fprint(&b, piece)
			}
			return b.String()
		}
		out := map[string]any{}
		for key, inner := range v {
			if strings.HasPrefix(key, "Fn::") {
				f.t.Fatalf("%s is not known here", key)
			}
			out[key] = f.resolve(inner)
		}
		return out
	}
	return value
}

func (f template) named(ref string) any {
	known := map[string]string{"AWS::AccountId": account, "AWS::Region": region, "AWS::Partition": "aws", "AWS::URLSuffix": "amazonaws.com"}
	if value, ok := known[ref]; ok {
		return value
	}
	r, ok := f.Resources[ref]
	if !ok || names[r.Type] == "" {
		f.t.Fatalf("what Ref calls %s (%s) is not known here", ref, r.Type)
	}
	return f.resolve(r.Properties[names[r.Type]])
}

func (f template) policy(name string, document any) evaluator.Policy {
	f.t.Helper()
	text, err := json.Marshal(f.resolve(document))
	if err != nil {
		f.t.Fatal(err)
	}
	p, err := evaluator.Parse(name, text)
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

// policies are those of the template by the ARN of the role or resource that they are
// attached to; identity are what roles may do, the other what is said of resources,
// with the trust of roles.
func (f template) policies() (identity, resource map[string][]evaluator.Policy) {
	identity, resource = map[string][]evaluator.Policy{}, map[string][]evaluator.Policy{}
	for id, r := range f.Resources {
		add := func(arn any, document any) {
			resource[fmt.Sprint(arn)] = append(resource[fmt.Sprint(arn)], f.policy(id, document))
		}
		switch r.Type {
		case "AWS::IAM::Role":
			name, _ := f.resolve(r.Properties["RoleName"]).(string)
			list, _ := r.Properties["Policies"].([]any)
			for _, p := range list {
				identity[role(name)] = append(identity[role(name)], f.policy(id, p.(map[string]any)["PolicyDocument"]))
			}
			add(role(name), r.Properties["AssumeRolePolicyDocument"])
		case "AWS::SQS::QueuePolicy":
			for _, q := range r.Properties["Queues"].([]any) {
				add(queue(fmt.Sprint(f.resolve(q))), r.Properties["PolicyDocument"])
			}
		case "AWS::S3::BucketPolicy":
			add("arn:aws:s3:::"+fmt.Sprint(f.resolve(r.Properties["Bucket"])), r.Properties["PolicyDocument"])
		case "AWS::Events::EventBusPolicy":
			statement := map[string]any{"Version": "2012-10-17", "Statement": r.Properties["Statement"]}
			add(bus(fmt.Sprint(f.resolve(r.Properties["EventBusName"]))), statement)
		}
	}
	return identity, resource
}

// synthesized is Joist by a template that the CDK app wrote. People, whom the app gives
// no role, are as the package has them, and so is the cluster beside it where the
// template has one alone.
func synthesized(t *testing.T, name string, change func(*rights.Scope)) system {
	t.Helper()
	identity, resource := readTemplate(t, name).policies()
	s := joist(t, name, deployed(t, change))
	beyond, around := s.identity, s.resource
	s.identity = func(service, of string) []evaluator.Policy {
		if found, ok := identity[role(of+"-joist-"+service)]; ok {
			return found
		}
		return beyond(service, of)
	}
	s.resource = func(arn string) []evaluator.Policy {
		if strings.HasPrefix(arn, "arn:aws:s3:::") {
			arn, _, _ = strings.Cut(arn, "/")
		}
		if found, ok := resource[arn]; ok {
			return found
		}
		return around(arn)
	}
	return s
}

// options are calls that a template without the context that they name refuses.
var options = map[string]string{
	"read zonal shifts":                       "zonalShift",
	"watcher's pod takes its role":            "oidcProvider",
	"the one on call moves dead letters back": "replayers",
}

// The template that is deployed keeps every attack out, too, but for the tags that node
// classes may have, and lets every call of Joist's through: what the app attaches is
// what is judged above.
func TestSynthesizedTemplate(t *testing.T) {
	const name = "fresh.template.json"
	identity, resource := readTemplate(t, name).policies()
	s := synthesized(t, name, asIs)
	for _, service := range services() {
		if len(identity[s.role(service)]) == 0 {
			t.Errorf("the template has no rights of %s", service)
		}
	}
	for arn := range deployed(t, asIs) {
		if strings.HasPrefix(arn, "arn:") && !strings.Contains(arn, beside) && len(resource[arn]) == 0 {
			t.Errorf("the template has no policy of %s", arn)
		}
	}
	judge(t, s, anyTags(t))
}

// anyTags are the attacks that the package lets through where node classes may have any
// tag, as they may unless the context lists them.
func anyTags(t *testing.T) []string {
	t.Helper()
	s := joist(t, "any tag", deployed(t, func(s *rights.Scope) { s.NodeTags = []string{"*"} }))
	var out []string
	for _, a := range attacks() {
		if ok, _ := s.goes(t, a.call); ok {
			out = append(out, a.name)
		}
	}
	return out
}

// Two clusters that share a stack and a bucket are kept apart as two that do not. Of
// the bucket they may list the names of each other's objects, and read none.
func TestSynthesizedClustersShareABucket(t *testing.T) {
	const bucket = "joist-joist-all-" + account + "-" + region
	s := synthesized(t, "clusters.template.json", func(s *rights.Scope) { s.Bucket = bucket })
	s.rename = func(arn string) string {
		for _, name := range []string{cluster, beside} {
			arn = strings.Replace(arn, "arn:aws:s3:::joist-"+name+"-"+account+"-"+region, "arn:aws:s3:::"+bucket, 1)
		}
		return arn
	}
	// Its node classes' tags are listed, so that nothing else goes through.
	judge(t, s, []string{"planner lists the other cluster's bucket"})
}

// judge runs all calls through a system; those of but are let through, and it is said
// why where they are named.
func judge(t *testing.T, s system, but []string) {
	t.Helper()
	for _, c := range legitimate() {
		if ok, refused := s.goes(t, c); ok == (options[c.name] != "") {
			t.Errorf("%s: %v, %s", c.name, ok, refused)
		}
	}
	for _, a := range attacks() {
		if ok, _ := s.goes(t, a.call); ok != slices.Contains(but, a.name) {
			t.Errorf("%s: %v", a.name, ok)
		}
	}
}
