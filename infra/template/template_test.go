package template_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/infra/template"
)

var place = template.Place{
	Account: "123456789012", Region: "eu-west-1", Partition: "aws", Name: "Joist",
	Parameters: map[string]string{"Given": "by hand"},
}

// around is the template to which the expressions in the tests refer.
const around = `{
 "Parameters": {"ClusterName": {"Type": "String", "Default": "prod"}, "Given": {"Type": "String"}, "Days": {"Type": "Number", "Default": 14}, "Open": {"Type": "String"}},
 "Conditions": {
  "Yes": {"Fn::Equals": [{"Ref": "ClusterName"}, "prod"]}, "No": {"Fn::Not": [{"Condition": "Yes"}]}, "Odd": "yes",
  "Both": {"Fn::And": [{"Condition": "Yes"}, {"Condition": "No"}]}, "Either": {"Fn::Or": [{"Condition": "Yes"}, {"Condition": "No"}]},
  "Itself": {"Fn::Not": [{"Condition": "Itself"}]}
 },
 "Resources": {
  "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": {"Fn::Sub": "${ClusterName}-work"}, "MessageRetentionPeriod": 1209600}},
  "Left": {"Type": "AWS::SQS::Queue", "Condition": "No"},
  "Round": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": {"Ref": "Round"}}},
  "Nameless": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": ["x"]}},
  "Bus": {"Type": "AWS::Events::EventBus", "Properties": {"Name": "facts"}},
  "Rule": {"Type": "AWS::Events::Rule", "Properties": {"EventBusName": {"Fn::GetAtt": ["Bus", "Arn"]}}},
  "Notice": {"Type": "AWS::Events::Rule", "Properties": {"Name": "spot"}},
  "Role": {"Type": "AWS::IAM::Role", "Properties": {"RoleName": "r"}},
  "Topic": {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": "oncall"}},
  "Bucket": {"Type": "AWS::S3::Bucket"},
  "Group": {"Type": "AWS::Scheduler::ScheduleGroup", "Properties": {"Name": "ticks"}},
  "Tick": {"Type": "AWS::Scheduler::Schedule", "Properties": {"Name": "minute", "GroupName": {"Ref": "Group"}}},
  "Alone": {"Type": "AWS::Scheduler::Schedule", "Properties": {"Name": "hour"}},
  "Policy": {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"ManagedPolicyName": "p"}},
  "Entry": {"Type": "AWS::EKS::AccessEntry"}, "Board": {"Type": "AWS::CloudWatch::Dashboard", "Properties": {"DashboardName": "b"}},
  "Stranger": {"Type": "AWS::Shield::Protection"}
 },
 "Outputs": {"Url": {"Value": {"Ref": "Queue"}}, "Lost": {"Value": {"Ref": "Gone"}}}
}`

func parsed(t *testing.T) template.Template {
	t.Helper()
	out, err := template.Parse([]byte(around))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Every function, and every kind of reference, is resolved.
func TestResolveValues(t *testing.T) {
	for _, test := range []struct{ name, written, want string }{
		{"a text", `"x"`, `"x"`},
		{"a number keeps its form", `1209600`, `1209600`},
		{"at any depth", `{"a": [{"b": {"Ref": "ClusterName"}}]}`, `{"a": [{"b": "prod"}]}`},
		{"a Condition that is not a reference", `{"Condition": {"Bool": {"x": "true"}}}`, `{"Condition": {"Bool": {"x": "true"}}}`},
		{"two members are not a function", `{"Ref": "a", "b": 1}`, `{"Ref": "a", "b": 1}`},

		{"Ref of the account", `{"Ref": "AWS::AccountId"}`, `"123456789012"`},
		{"Ref of the region", `{"Ref": "AWS::Region"}`, `"eu-west-1"`},
		{"Ref of the partition", `{"Ref": "AWS::Partition"}`, `"aws"`},
		{"Ref of the URL suffix", `{"Ref": "AWS::URLSuffix"}`, `"amazonaws.com"`},
		{"Ref of the stack", `[{"Ref": "AWS::StackName"}, {"Ref": "AWS::StackId"}]`, `["Joist", "arn:aws:cloudformation:eu-west-1:123456789012:stack/Joist/0"]`},
		{"Ref of NoValue", `{"a": {"Ref": "AWS::NoValue"}, "b": [{"Ref": "AWS::NoValue"}, 1]}`, `{"b": [1]}`},
		{"Ref of a parameter's default", `{"Ref": "ClusterName"}`, `"prod"`},
		{"Ref of a number's default", `{"Ref": "Days"}`, `"14"`},
		{"Ref of a given parameter", `{"Ref": "Given"}`, `"by hand"`},
		{"Ref of a queue is its URL", `{"Ref": "Queue"}`, `"https://sqs.eu-west-1.amazonaws.com/123456789012/prod-work"`},
		{"Ref of a topic is its ARN", `{"Ref": "Topic"}`, `"arn:aws:sns:eu-west-1:123456789012:oncall"`},
		{"Ref of other resources is the name", `[{"Ref": "Bus"}, {"Ref": "Role"}, {"Ref": "Bucket"}, {"Ref": "Stranger"}]`, `["facts", "r", "joist-bucket", "Joist-Stranger"]`},

		{"Fn::GetAtt of two", `{"Fn::GetAtt": ["Queue", "Arn"]}`, `"arn:aws:sqs:eu-west-1:123456789012:prod-work"`},
		{"Fn::GetAtt with a dot", `{"Fn::GetAtt": "Queue.QueueName"}`, `"prod-work"`},
		{"Fn::GetAtt of a resource without a region", `{"Fn::GetAtt": "Role.Arn"}`, `"arn:aws:iam::123456789012:role/r"`},
		{"Fn::GetAtt of a rule on a bus", `{"Fn::GetAtt": "Rule.Arn"}`, `"arn:aws:events:eu-west-1:123456789012:rule/facts/Joist-Rule"`},
		{"Fn::GetAtt of a rule on AWS's bus", `{"Fn::GetAtt": "Notice.Arn"}`, `"arn:aws:events:eu-west-1:123456789012:rule/spot"`},
		{"Fn::GetAtt of schedules", `[{"Fn::GetAtt": "Tick.Arn"}, {"Fn::GetAtt": "Alone.Arn"}]`,
			`["arn:aws:scheduler:eu-west-1:123456789012:schedule/ticks/minute", "arn:aws:scheduler:eu-west-1:123456789012:schedule/default/hour"]`},
		{"Fn::GetAtt of a policy and a topic", `[{"Fn::GetAtt": "Policy.PolicyArn"}, {"Fn::GetAtt": "Topic.TopicArn"}, {"Fn::GetAtt": "Topic.TopicName"}]`,
			`["arn:aws:iam::123456789012:policy/p", "arn:aws:sns:eu-west-1:123456789012:oncall", "oncall"]`},
		{"Fn::GetAtt of a bucket", `{"Fn::GetAtt": "Bucket.RegionalDomainName"}`, `"joist-bucket.s3.eu-west-1.amazonaws.com"`},

		{"Fn::Sub", `{"Fn::Sub": "${ClusterName}/${Queue.QueueName}/${!ClusterName}"}`, `"prod/prod-work/${ClusterName}"`},
		{"Fn::Sub with its own values", `{"Fn::Sub": ["${a}-${ClusterName}", {"a": {"Ref": "Given"}, "ClusterName": "own"}]}`, `"by hand-own"`},
		{"Fn::Join", `{"Fn::Join": ["-", [{"Ref": "ClusterName"}, 1, {"Ref": "AWS::NoValue"}, "x"]]}`, `"prod-1-x"`},
		{"Fn::Split", `{"Fn::Split": [":", "a:b"]}`, `["a", "b"]`},
		{"Fn::Select", `{"Fn::Select": [4, {"Fn::Split": [":", {"Fn::GetAtt": "Queue.Arn"}]}]}`, `"123456789012"`},
		{"Fn::If with a true condition", `{"Fn::If": ["Yes", 1, {"Ref": "Gone"}]}`, `1`},
		{"Fn::If with a false condition", `{"a": {"Fn::If": ["No", {"Ref": "Left"}, {"Ref": "AWS::NoValue"}]}}`, `{}`},
		{"Fn::Equals compares texts", `[{"Fn::Equals": [1, "1"]}, {"Fn::Equals": [1, 2]}]`, `[true, false]`},
		{"conditions", `[{"Condition": "Yes"}, {"Condition": "No"}, {"Condition": "Both"}, {"Condition": "Either"}]`, `[true, false, false, true]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := parsed(t).DeployTo(place).Value(mustParse(t, test.written))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(mustParse(t, test.want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// An unresolvable value is an error that names its path.
func TestUnresolvableValuesAreErrors(t *testing.T) {
	for _, test := range []struct{ name, written, says string }{
		{"Ref of a missing resource", `{"a": [1, {"Ref": "Gone"}]}`, `a: [1]: the template has no parameter and no resource "Gone"`},
		{"Ref of a parameter that was not given", `{"Ref": "Open"}`, "Open has no default"},
		{"Ref of a resource that is not created", `{"Ref": "Left"}`, "Left is not created, because the condition No is false"},
		{"a circle", `{"Ref": "Round"}`, "Round → Round depends on itself"},
		{"a name that is not a string", `{"Ref": "Nameless"}`, "QueueName is [x], not a text"},
		{"Fn::GetAtt of a missing resource", `{"Fn::GetAtt": ["Gone", "Arn"]}`, `no resource "Gone"`},
		{"Fn::GetAtt of an unknown attribute", `{"Fn::GetAtt": "Queue.Color"}`, `Queue, a AWS::SQS::Queue, has no attribute "Color"`},
		{"Fn::GetAtt of a name that CloudFormation does not return", `{"Fn::GetAtt": "Role.RoleName"}`, `no attribute "RoleName"`},
		{"Fn::GetAtt of a property that is not set", `{"Fn::GetAtt": "Queue.Name"}`, `no attribute "Name"`},
		{"Fn::GetAtt of a bucket's name", `{"Fn::GetAtt": "Bucket.Name"}`, `no attribute "Name"`},
		{"Fn::GetAtt of a policy with another attribute", `{"Fn::GetAtt": "Policy.Arn"}`, `no attribute "Arn"`},
		{"Fn::GetAtt of an entry, whose ARN has an unknown id", `{"Fn::GetAtt": "Entry.Arn"}`, `no attribute "Arn"`},
		{"Fn::GetAtt of a dashboard", `{"Fn::GetAtt": "Board.Arn"}`, `no attribute "Arn"`},
		{"Fn::GetAtt of an unknown type", `{"Fn::GetAtt": "Stranger.Arn"}`, `no attribute "Arn"`},
		{"Fn::GetAtt with one item", `{"Fn::GetAtt": ["Queue"]}`, `no resource ""`},
		{"Fn::Sub of a map", `{"Fn::Sub": {"a": 1}}`, "Fn::Sub of map"},
		{"Fn::Sub with invalid values", `{"Fn::Sub": ["${a}", ["a"]]}`, "Fn::Sub of ["},
		{"Fn::Sub of a missing resource", `{"Fn::Sub": "${ClusterName}-${Gone}"}`, `Fn::Sub "${ClusterName}-${Gone}": the template has no parameter and no resource "Gone"`},
		{"Fn::Sub with unresolvable values", `{"Fn::Sub": ["${a}", {"a": {"Ref": "Gone"}}]}`, `Fn::Sub: a: the template`},
		{"Fn::Join without a list", `{"Fn::Join": ["-", "a"]}`, "Fn::Join: [- a] is not a delimiter and a list"},
		{"Fn::Join of a missing resource", `{"Fn::Join": ["-", [{"Ref": "Gone"}]]}`, `Fn::Join: [1]: [0]: the template`},
		{"Fn::Join of a string", `{"Fn::Join": "a"}`, "which is not a list"},
		{"Fn::Split without a string", `{"Fn::Split": [":", ["a"]]}`, "is not a delimiter and a text"},
		{"Fn::Select beyond the end", `{"Fn::Select": [2, ["a", "b"]]}`, "no item 2 among 2"},
		{"Fn::Select with a name as index", `{"Fn::Select": ["a", ["a", "b"]]}`, "no item a among 2"},
		{"Fn::Select without a list", `{"Fn::Select": [0]}`, "is not an index and a list"},
		{"Fn::If with two items", `{"Fn::If": ["Yes", 1]}`, "instead of a condition and two values"},
		{"Fn::If with a missing condition", `{"Fn::If": ["Gone", 1, 2]}`, `Fn::If: there is no condition "Gone"`},
		{"Fn::Equals with one item", `{"Fn::Equals": ["a"]}`, "are not two values"},
		{"Fn::Not with two conditions", `{"Fn::Not": [{"Condition": "Yes"}, {"Condition": "Yes"}]}`, "2 conditions"},
		{"Fn::And with one condition", `{"Fn::And": [{"Condition": "Yes"}]}`, "1 conditions"},
		{"Fn::Or of strings", `{"Fn::Or": ["true", "false"]}`, "true is not a condition"},
		{"a condition that is not a boolean", `{"Condition": "Odd"}`, "the condition Odd is yes"},
		{"a condition of itself", `{"Condition": "Itself"}`, "depends on itself"},
		{"an unsupported function", `{"Fn::Cidr": ["10.0.0.0/8", 1]}`, "Fn::Cidr is not supported"},
		{"another stack's export", `{"Fn::ImportValue": "x"}`, "Fn::ImportValue is not supported"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := parsed(t).DeployTo(place).Value(mustParse(t, test.written))
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v: %v does not contain %q", got, err, test.says)
			}
		})
	}
}

func TestResolvedPartsOfStack(t *testing.T) {
	s := parsed(t).DeployTo(place)
	r, err := s.Resource("Queue")
	if err != nil || r.Properties["QueueName"] != "prod-work" || s.Resources["Queue"].Properties["QueueName"] == "prod-work" {
		t.Errorf("%v, %v; the template has %v", r, err, s.Resources["Queue"])
	}
	if _, err := s.Resource("Round"); err == nil || !strings.Contains(err.Error(), "the resource Round (AWS::SQS::Queue): QueueName: ") {
		t.Errorf("%v", err)
	}
	for id, want := range map[string]bool{"Queue": true, "Left": false} {
		if made, err := s.IsCreated(id); made != want || err != nil {
			t.Errorf("%s is created: %t, %v", id, made, err)
		}
	}
	if url, err := s.Output("Url"); url != "https://sqs.eu-west-1.amazonaws.com/123456789012/prod-work" || err != nil {
		t.Errorf("%s, %v", url, err)
	}
	if _, err := s.Output("Lost"); err == nil || !strings.Contains(err.Error(), "the output Lost: ") {
		t.Errorf("%v", err)
	}
}

// Names and URLs depend on the place.
func TestNamesDependOnPlace(t *testing.T) {
	china := parsed(t).DeployTo(template.Place{Account: "1", Region: "cn-north-1", Partition: "aws-cn", Name: "s"})
	local := parsed(t).DeployTo(template.Place{QueueURL: func(name string) string { return "http://queues/" + name }})
	for _, test := range []struct {
		in            *template.Stack
		written, want string
	}{
		{china, `{"Ref": "Queue"}`, "https://sqs.cn-north-1.amazonaws.com.cn/1/prod-work"},
		{china, `{"Fn::GetAtt": "Bucket.DomainName"}`, "s-bucket.s3.amazonaws.com.cn"},
		{china, `{"Fn::GetAtt": "Bucket.Arn"}`, "arn:aws-cn:s3:::s-bucket"},
		{local, `{"Ref": "Queue"}`, "http://queues/prod-work"},
	} {
		if got, err := test.in.Value(mustParse(t, test.written)); got != test.want || err != nil {
			t.Errorf("%s: %v, %v", test.written, got, err)
		}
	}
}

func TestNameOfARN(t *testing.T) {
	for _, test := range []struct{ arn, name, service string }{
		{"arn:aws:sqs:eu-west-1:1:work", "work", "sqs"},
		{"arn:aws:events:eu-west-1:1:event-bus/facts", "facts", "events"},
		{"https://sqs.eu-west-1.amazonaws.com/1/work", "work", ""},
		{"facts", "facts", ""},
	} {
		if template.Name(test.arn) != test.name || template.Service(test.arn) != test.service {
			t.Errorf("%s: %s, %s", test.arn, template.Name(test.arn), template.Service(test.arn))
		}
	}
}

func TestParseRejectsInvalidTemplates(t *testing.T) {
	if _, err := template.Parse([]byte("Resources:")); err == nil || !strings.Contains(err.Error(), "parsing the template") {
		t.Error(err)
	}
}

// mustParse decodes JSON in the same way as Parse.
func mustParse(t *testing.T, text string) any {
	t.Helper()
	var v any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
