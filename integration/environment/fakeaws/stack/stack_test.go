package stack_test

import (
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/infra/template"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/stack"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

var place = template.Place{
	Account: "123456789012", Region: "eu-west-1", Partition: "aws", Name: "joist",
	QueueURL: func(name string) string { return "http://queues/" + name },
}

const small = `{
 "Parameters": {"ClusterName": {"Type": "String", "Default": "prod"}},
 "Conditions": {"Never": {"Fn::Equals": [{"Ref": "ClusterName"}, "other"]}},
 "Resources": {
  "Dead": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": {"Fn::Sub": "${ClusterName}-dead"}, "MessageRetentionPeriod": "1209600"}},
  "Work": {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 90,
    "RedrivePolicy": {"deadLetterTargetArn": {"Fn::GetAtt": ["Dead", "Arn"]}, "maxReceiveCount": 100}}},
  "Left": {"Type": "AWS::SQS::Queue", "Condition": "Never"},
  "Bus": {"Type": "AWS::Events::EventBus", "Properties": {"Name": {"Fn::Join": ["-", [{"Ref": "ClusterName"}, "joist"]]}}},
  "Rule": {"Type": "AWS::Events::Rule", "Properties": {"EventBusName": {"Ref": "Bus"}, "EventPattern": {"source": [{"prefix": "joist/"}]},
    "Targets": [{"Id": "t", "Arn": {"Fn::GetAtt": "Work.Arn"}, "InputPath": {"Fn::If": ["Never", "$", {"Ref": "AWS::NoValue"}]},
      "DeadLetterConfig": {"Arn": {"Fn::GetAtt": ["Dead", "Arn"]}}}]}},
  "Function": {"Type": "AWS::Lambda::Function", "Properties": {"FunctionName": "f", "Timeout": 15,
    "Environment": {"Variables": {"QUEUE": {"Ref": "Work"}, "ACCOUNT": {"Fn::Select": [4, {"Fn::Split": [":", {"Fn::GetAtt": ["Work", "Arn"]}]}]}}}}},
  "Mapping": {"Type": "AWS::Lambda::EventSourceMapping", "Properties": {"FunctionName": {"Ref": "Function"}, "EventSourceArn": {"Fn::GetAtt": ["Work", "Arn"]}}},
  "Role": {"Type": "AWS::IAM::Role", "Properties": {"RoleName": "r"}},
  "Policy": {"Type": "AWS::IAM::Policy", "Properties": {"PolicyName": "p", "Roles": [{"Ref": "Role"}], "PolicyDocument": {"Statement": [{"Resource": {"Fn::GetAtt": ["Bus", "Arn"]}}]}}},
  "Alarm": {"Type": "AWS::CloudWatch::Alarm"}
 },
 "Outputs": {"Url": {"Value": {"Ref": "Work"}}}
}`

func TestReadStack(t *testing.T) {
	s, err := stack.Read([]byte(small), place)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Queues) != 2 || s.Queues[0].QueueName != "prod-dead" || s.Queues[0].MessageRetentionPeriod != 1209600 || s.Queues[1].QueueName != "joist-Work" {
		t.Errorf("got queues %+v", s.Queues)
	}
	f, _, ok := s.Worker("joist-Work")
	if !ok || f.Environment.Variables["QUEUE"] != "http://queues/joist-Work" || f.Environment.Variables["ACCOUNT"] != "123456789012" {
		t.Errorf("got function %+v (%t)", f, ok)
	}
	if len(s.Roles) != 1 || len(s.Roles[0].Policies) != 1 || !strings.Contains(string(s.Roles[0].Policies[0].PolicyDocument), `"arn:aws:events:eu-west-1:123456789012:event-bus/prod-joist"`) {
		t.Errorf("got roles %+v", s.Roles)
	}
	if s.Outputs["Url"] != "http://queues/joist-Work" || s.Others["AWS::CloudWatch::Alarm"] != 1 {
		t.Errorf("got outputs %v, others %v", s.Outputs, s.Others)
	}
}

// Make wires the broker as the stack describes.
func TestMakeBroker(t *testing.T) {
	s, err := stack.Read([]byte(small), place)
	if err != nil {
		t.Fatal(err)
	}
	b := memqueue.New(memqueue.Options{Now: time.Now})
	if err := s.Make(b, place); err != nil {
		t.Fatal(err)
	}
	q, ok := b.FindQueue("joist-Work")
	if o := q.Options(); !ok || o.Visibility != 90*time.Second || o.MaxReceives != 100 || o.DeadLetter != "prod-dead" {
		t.Errorf("got queue %+v (%t)", q.Options(), ok)
	}
	bus, _ := b.FindBus("prod-joist")
	if err := bus.PutEvent([]byte(`{"source":"joist/planner","detail-type":"x","detail":{}}`)); err != nil {
		t.Fatal(err)
	}
	if n := q.Stats().Visible; n != 1 {
		t.Errorf("%d messages arrived through the rule", n)
	}
}

func TestUnresolvableReferences(t *testing.T) {
	for name, test := range map[string]struct{ from, to, says string }{
		"a resource": {`"Arn": {"Fn::GetAtt": "Work.Arn"}`, `"Arn": {"Fn::GetAtt": "Gone.Arn"}`, `no resource "Gone"`},
		"a bus":      {`{"Ref": "Bus"}`, `"elsewhere"`, "no bus elsewhere in the stack"},
		"a DLQ":      {`"DeadLetterConfig": {"Arn": {"Fn::GetAtt": ["Dead", "Arn"]}}`, `"DeadLetterConfig": {"Arn": "arn:aws:sqs:eu-west-1:1:gone"}`, "not a queue of the stack"},
	} {
		text := strings.Replace(small, test.from, test.to, 1)
		if text == small {
			t.Fatalf("%s: the template was not changed", name)
		}
		s, err := stack.Read([]byte(text), place)
		if err == nil {
			err = s.Make(memqueue.New(memqueue.Options{Now: time.Now}), place)
		}
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v does not contain %q", name, err, test.says)
		}
	}
}

func TestSchedulePeriods(t *testing.T) {
	for text, want := range map[string]time.Duration{"rate(1 minute)": time.Minute, "rate(2 hours)": 2 * time.Hour, "cron(0 * * * ? *)": 0} {
		got, err := stack.Schedule{ScheduleExpression: text}.Every()
		if got != want || (want == 0) != (err != nil) {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}
