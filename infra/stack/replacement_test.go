package stack_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var release = flag.String("release", "", "record the resources of the golden templates as those of this version, such as v0.1.0")

// releasedDir has a folder for each release, with the resources of each golden template. Its files are never edited.
const releasedDir = "testdata/released"

// replacing lists, for each type of resource, the properties whose change makes CloudFormation replace the resource
// (the AWS CloudFormation template reference, "Update requires: Replacement"). The first one is its name. It cannot
// replace a resource with a fixed name: it creates the new one first, and the name is taken.
var replacing = map[string][]string{
	"AWS::CloudWatch::Alarm":              {"AlarmName"},
	"AWS::CloudWatch::Dashboard":          {"DashboardName"},
	"AWS::EKS::AccessEntry":               {"PrincipalArn", "ClusterName", "Type"},
	"AWS::EKS::PodIdentityAssociation":    {"ServiceAccount", "ClusterName", "Namespace"},
	"AWS::Events::Archive":                {"ArchiveName", "SourceArn"},
	"AWS::Events::EventBus":               {"Name"},
	"AWS::Events::EventBusPolicy":         {"StatementId", "EventBusName"},
	"AWS::Events::Rule":                   {"Name", "EventBusName"},
	"AWS::IAM::InstanceProfile":           {"InstanceProfileName", "Path"},
	"AWS::IAM::ManagedPolicy":             {"ManagedPolicyName", "Description", "Path"},
	"AWS::IAM::Role":                      {"RoleName", "Path"},
	"AWS::Lambda::EventSourceMapping":     {"EventSourceArn"},
	"AWS::Lambda::Function":               {"FunctionName", "PackageType"},
	"AWS::Logs::LogGroup":                 {"LogGroupName"},
	"AWS::Logs::ResourcePolicy":           {"PolicyName"},
	"AWS::S3::Bucket":                     {"BucketName"},
	"AWS::S3::BucketPolicy":               {"Bucket"},
	"AWS::SQS::Queue":                     {"QueueName", "FifoQueue"},
	"AWS::SQS::QueuePolicy":               {},
	"AWS::Scheduler::Schedule":            {"Name"},
	"AWS::Scheduler::ScheduleGroup":       {"Name"},
	"AWS::CloudFormation::CustomResource": {"ServiceToken"},
	"AWS::CloudFormation::Stack":          {},
	"Custom::AWSCDK-EKS-HelmChart":        {"ServiceToken", "ClusterName", "Namespace", "Release"},
}

// recorded is a resource as a release records it: its type, and its replacing properties as JSON.
type recorded struct {
	Type       string            `json:"type"`
	Properties map[string]string `json:"properties,omitempty"`
}

// recordTemplate returns the resources of a template by their logical ids.
func recordTemplate(t *testing.T, text []byte) map[string]recorded {
	t.Helper()
	var template struct {
		Resources map[string]struct {
			Type       string
			Properties map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(text, &template); err != nil {
		t.Fatal(err)
	}
	out := map[string]recorded{}
	for id, r := range template.Resources {
		names, known := replacing[r.Type]
		if !known {
			t.Errorf("resource %s has the type %s: list the properties that replace it in the table replacing", id, r.Type)
		}
		one := recorded{Type: r.Type, Properties: map[string]string{}}
		for _, name := range names {
			if value, ok := r.Properties[name]; ok {
				one.Properties[name] = string(value)
			}
		}
		out[id] = one
	}
	return out
}

// findReplacements returns the resources that an update of the stack from one release would replace, or create under
// a name that another logical id still has.
func findReplacements(before, after map[string]recorded) []string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(before)) {
		was := before[id]
		now, kept := after[id]
		if !kept {
			for _, other := range slices.Sorted(maps.Keys(after)) {
				if is := after[other]; len(was.Properties) > 0 && is.Type == was.Type && cmp.Equal(is.Properties, was.Properties) {
					out = append(out, fmt.Sprintf("%s (%s) has the logical id %s now, and the same name: give it its old id", id, was.Type, other))
				}
			}
			continue
		}
		if was.Type != now.Type {
			out = append(out, fmt.Sprintf("%s is a %s now and was a %s: give the new resource another id", id, now.Type, was.Type))
			continue
		}
		for _, name := range replacing[was.Type] {
			if was.Properties[name] != now.Properties[name] {
				out = append(out, fmt.Sprintf("%s (%s) would be replaced: its %s was %s and is %s", id, was.Type, name, was.Properties[name], now.Properties[name]))
			}
		}
	}
	return out
}

// goldenResources returns the recorded resources of each golden template.
func goldenResources(t *testing.T) map[string]map[string]recorded {
	t.Helper()
	out := map[string]map[string]recorded{}
	for name := range contexts {
		text, err := os.ReadFile(filepath.Join("testdata", name+".template.json"))
		if err != nil {
			t.Fatal(err)
		}
		out[name] = recordTemplate(t, text)
	}
	return out
}

// TestNoReleasedResourceIsReplaced requires that a stack of each release can be updated to today's without replacing a
// resource. Before the first release it only requires that the table knows every type.
func TestNoReleasedResourceIsReplaced(t *testing.T) {
	today := goldenResources(t)
	if *release != "" {
		dir := filepath.Join(releasedDir, *release)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatalf("a released version is never recorded again: %v", err)
		}
		for name, resources := range today {
			text, err := json.MarshalIndent(resources, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name+".json"), append(text, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(releasedDir, "*", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var before map[string]recorded
		if err := json.Unmarshal(text, &before); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, problem := range findReplacements(before, today[strings.TrimSuffix(filepath.Base(file), ".json")]) {
			t.Errorf("%s: %s", file, problem)
		}
	}
}

// TestFindReplacements changes one property of a golden template at a time.
func TestFindReplacements(t *testing.T) {
	text, err := os.ReadFile("testdata/fresh.template.json")
	if err != nil {
		t.Fatal(err)
	}
	before := recordTemplate(t, text)
	if found := findReplacements(before, before); len(found) > 0 {
		t.Fatalf("an unchanged template replaces %v", found)
	}
	of := func(kind string) string {
		ids := slices.Sorted(maps.Keys(before))
		return ids[slices.IndexFunc(ids, func(id string) bool { return before[id].Type == kind })]
	}
	policy, queue := of("AWS::IAM::ManagedPolicy"), of("AWS::SQS::Queue")
	for name, c := range map[string]struct {
		change func(map[string]recorded)
		want   string
	}{
		"the description of a managed policy": {func(m map[string]recorded) {
			m[policy] = recorded{Type: m[policy].Type, Properties: map[string]string{"Description": `"other"`, "ManagedPolicyName": m[policy].Properties["ManagedPolicyName"]}}
		}, "its Description was"},
		"a new logical id":   {func(m map[string]recorded) { m["Other"] = m[queue]; delete(m, queue) }, "has the logical id Other now"},
		"another type":       {func(m map[string]recorded) { m[queue] = recorded{Type: "AWS::SNS::Topic"} }, "is a AWS::SNS::Topic now"},
		"a removed resource": {func(m map[string]recorded) { delete(m, queue) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			after := maps.Clone(before)
			c.change(after)
			found := findReplacements(before, after)
			if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.Contains(found[0], c.want)) {
				t.Errorf("found %q, want one problem with %q", found, c.want)
			}
		})
	}
}
