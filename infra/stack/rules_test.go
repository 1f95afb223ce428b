package stack_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/infra/template"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/host/telemetry/board"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// forEachTemplate runs a check on each template.
func forEachTemplate(t *testing.T, check func(t *testing.T, name string, in synthesis)) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(contexts)) {
		t.Run(name, func(t *testing.T) { check(t, name, synth(t, name)) })
	}
}

// resource is a resource of a template, with resolved references.
type resource struct{ template.Resource }

// ofType returns the resources of a type, by logical id; it fails if none exist.
func (in synthesis) ofType(t *testing.T, kind string) map[string]resource {
	t.Helper()
	found := map[string]resource{}
	for id, r := range in.Resources {
		if r.Type != kind {
			continue
		}
		resolved, err := in.Resource(id)
		if err != nil {
			t.Fatal(err)
		}
		found[id] = resource{resolved}
	}
	if len(found) == 0 {
		t.Fatalf("no %s", kind)
	}
	return found
}

// by returns resources by the value of a property.
func by(property string, resources map[string]resource) map[string]resource {
	named := map[string]resource{}
	for _, r := range resources {
		named[r.text(property)] = r
	}
	return named
}

func (r resource) text(key string) string { return fmt.Sprint(r.Properties[key]) }

func (r resource) number(key string) float64 { return number(r.Properties[key]) }

// number parses a number; it returns 0 for a missing value.
func number(value any) float64 {
	written, _ := value.(json.Number)
	n, _ := written.Float64()
	return n
}

// at returns the value at a path.
func (r resource) at(path ...string) any {
	var value any = r.Properties
	for _, key := range path {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	return value
}

// object wraps an object, so that at can be used on it.
func object(value any) resource {
	return resource{template.Resource{Properties: value.(map[string]any)}}
}

// list returns a list; a single value becomes a list of one.
func list(value any) []any {
	if all, ok := value.([]any); ok {
		return all
	}
	if value == nil {
		return nil
	}
	return []any{value}
}

type statement map[string]any

func statements(document any) []statement {
	object, _ := document.(map[string]any)
	var all []statement
	for _, s := range list(object["Statement"]) {
		all = append(all, s.(map[string]any))
	}
	return all
}

func TestEveryQueueIsProtected(t *testing.T) {
	forEachTemplate(t, func(t *testing.T, _ string, in synthesis) {
		policies := map[string][]statement{}
		for _, p := range in.ofType(t, "AWS::SQS::QueuePolicy") {
			for _, q := range list(p.Properties["Queues"]) {
				policies[template.Name(q.(string))] = statements(p.Properties["PolicyDocument"])
			}
		}
		queues := by("QueueName", in.ofType(t, "AWS::SQS::Queue"))
		for name, q := range queues {
			if q.Properties["SqsManagedSseEnabled"] != true {
				t.Errorf("%s is not encrypted", name)
			}
			if !deniesInsecure(policies[name], "sqs:*") {
				t.Errorf("%s allows access without TLS", name)
			}
			if len(name) > 80 || q.Properties["RedriveAllowPolicy"] == nil != (q.Properties["RedrivePolicy"] != nil) {
				t.Errorf("%s is neither a work queue nor a DLQ: %v", name, q.Properties)
			}
			if strings.HasSuffix(name, "-dead") {
				if q.number("MessageRetentionPeriod") != 14*24*3600 {
					t.Errorf("%s retains messages for %v s", name, q.number("MessageRetentionPeriod"))
				}
				continue
			}
			dead := template.Name(fmt.Sprint(q.at("RedrivePolicy", "deadLetterTargetArn")))
			back := fmt.Sprint(queues[dead].at("RedriveAllowPolicy", "sourceQueueArns"))
			if !strings.HasSuffix(back, ":"+name+"]") {
				t.Errorf("%s has the DLQ %s, which accepts messages from %s", name, dead, back)
			}
		}
	})
}

func deniesInsecure(policy []statement, action string) bool {
	return slices.ContainsFunc(policy, func(s statement) bool {
		return s["Effect"] == "Deny" && s["Action"] == action && fmt.Sprint(s["Condition"]) == "map[Bool:map[aws:SecureTransport:false]]" &&
			fmt.Sprint(s["Principal"]) == "map[AWS:*]"
	})
}

func TestEveryFunctionIsComplete(t *testing.T) {
	known := map[string]bool{}
	for _, v := range settings.Variables {
		known[v.Name] = true
	}
	forEachTemplate(t, func(t *testing.T, _ string, in synthesis) {
		logs := map[string]bool{}
		for _, g := range in.ofType(t, "AWS::Logs::LogGroup") {
			logs[g.text("LogGroupName")] = g.number("RetentionInDays") > 0
		}
		for id, f := range in.ofType(t, "AWS::Lambda::Function") {
			if f.text("Runtime") != "provided.al2023" || f.text("Architectures") != "[arm64]" || f.number("Timeout") > 900 {
				t.Errorf("%s has runtime %s, architecture %s and timeout %v s", id, f.text("Runtime"), f.text("Architectures"), f.number("Timeout"))
			}
			if !logs["/aws/lambda/"+f.text("FunctionName")] || len(f.text("FunctionName")) > 64 {
				t.Errorf("%s has no log group with a retention", id)
			}
			environment, _ := f.at("Environment", "Variables").(map[string]any)
			for name := range environment {
				if !known[name] {
					t.Errorf("%s has the variable %s, which no service reads", id, name)
				}
			}
		}
	})
}

// A queue's visibility timeout is six times the function's timeout. Lambda rejects one
// below the function's timeout; an existing queue must only meet that.
func TestVisibilityTimeouts(t *testing.T) {
	forEachTemplate(t, func(t *testing.T, _ string, in synthesis) {
		visibility := map[string]float64{}
		for _, q := range in.ofType(t, "AWS::SQS::Queue") {
			visibility[q.text("QueueName")] = q.number("VisibilityTimeout")
		}
		functions := by("FunctionName", in.ofType(t, "AWS::Lambda::Function"))
		for id, m := range in.ofType(t, "AWS::Lambda::EventSourceMapping") {
			function := functions[template.Name(m.text("FunctionName"))]
			queue := template.Name(m.text("EventSourceArn"))
			timeout, hidden := function.number("Timeout"), visibility[queue]
			adopted := contexts[t.Name()[strings.LastIndex(t.Name(), "/")+1:]]["adopt"] != nil || queue == "staging"
			switch {
			case hidden == 0 && adopted && strings.Contains(id, "Interruption"):
				if timeout > 30 || timeout < 10 {
					t.Errorf("%s: %v s", id, timeout)
				}
			case hidden < 6*timeout || timeout == 0:
				t.Errorf("%s has a visibility timeout of %v s, its function a timeout of %v s", queue, hidden, timeout)
			}
			if m.text("FunctionResponseTypes") != "[ReportBatchItemFailures]" {
				t.Errorf("%s fails a batch for one message", id)
			}
			if n := number(m.at("ScalingConfig", "MaximumConcurrency")); n < 2 || n > 1000 {
				t.Errorf("%s has concurrency %v", id, n)
			}
			if strings.Contains(id, "Launcher") && timeout <= 4*60+15 {
				t.Errorf("a launch may take longer than the timeout of %v s", timeout)
			}
		}
	})
}

// Each target has a DLQ, so that undelivered events are not lost, and each
// queue's policy allows the rule.
func TestEveryRuleHasDeadLetterQueue(t *testing.T) {
	forEachTemplate(t, func(t *testing.T, name string, in synthesis) {
		senders, queues := in.senders(t), by("QueueName", in.ofType(t, "AWS::SQS::Queue"))
		rules := in.ofType(t, "AWS::Events::Rule")
		for id, r := range rules {
			targets := list(r.Properties["Targets"])
			if len(targets) != 1 || len(r.text("Name")) > 64 {
				t.Errorf("%s has %d targets", id, len(targets))
				continue
			}
			self, err := in.Identity(id)
			if err != nil {
				t.Fatal(err)
			}
			arn, target := self.ARN, object(targets[0])
			dead, to := fmt.Sprint(target.at("DeadLetterConfig", "Arn")), target.text("Arn")
			if template.Service(to) == "sqs" && !senders[to][arn] {
				// Karpenter's own policy allows every rule to send.
				if queues[template.Name(to)].Type != "" || name == "terraform" {
					t.Errorf("%s may not send to %s, which accepts messages from %v", arn, to, senders[to])
				}
			}
			if !senders[dead][arn] {
				t.Errorf("%s may not send to the DLQ %s", arn, dead)
			}
		}
		want := map[string]int{"cloudformation": 3, "clusters": 10, "shared": 14}[name]
		if want == 0 {
			want = 7
		}
		if len(rules) != want {
			t.Errorf("%d rules, want %d", len(rules), want)
		}
	})
}

// senders returns the rules that each queue's policy allows, all by ARN.
func (in synthesis) senders(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	for _, p := range in.ofType(t, "AWS::SQS::QueuePolicy") {
		for _, s := range statements(p.Properties["PolicyDocument"]) {
			if s["Effect"] != "Allow" {
				continue
			}
			condition := object(map[string]any(s))
			if condition.at("Condition", "StringEquals", "aws:SourceAccount") == nil {
				t.Errorf("%s allows rules of any account to send", s["Sid"])
			}
			queue := fmt.Sprint(s["Resource"])
			if all[queue] == nil {
				all[queue] = map[string]bool{}
			}
			for _, source := range list(condition.at("Condition", "ArnEquals", "aws:SourceArn")) {
				all[queue][source.(string)] = true
			}
		}
	}
	return all
}

func TestEveryScheduleMaySend(t *testing.T) {
	forEachTemplate(t, func(t *testing.T, _ string, in synthesis) {
		roles := by("RoleName", in.ofType(t, "AWS::IAM::Role"))
		for id, s := range in.ofType(t, "AWS::Scheduler::Schedule") {
			role := roles[template.Name(fmt.Sprint(s.at("Target", "RoleArn")))]
			may := map[string]bool{}
			for _, p := range list(role.Properties["Policies"]) {
				for _, st := range statements(p.(map[string]any)["PolicyDocument"]) {
					for _, to := range list(st["Resource"]) {
						may[fmt.Sprint(to)] = st["Action"] == "sqs:SendMessage"
					}
				}
			}
			for _, to := range []string{fmt.Sprint(s.at("Target", "Arn")), fmt.Sprint(s.at("Target", "DeadLetterConfig", "Arn"))} {
				if !may[to] {
					t.Errorf("%s may not send to %s", id, to)
				}
			}
			if !strings.Contains(fmt.Sprint(s.at("Target", "Input")), "<aws.scheduler.scheduled-time>") {
				t.Errorf("%s sends no scheduled time", id)
			}
		}
	})
}

// reading are the prefixes of actions that change nothing.
var reading = []string{"Get", "List", "Describe", "Receive"}

// No permission to write has the resource "*", except the one that Lambda needs to
// connect a function to a VPC.
func TestEveryRoleIsLimited(t *testing.T) {
	forEachTemplate(t, func(t *testing.T, _ string, in synthesis) {
		for id, r := range in.ofType(t, "AWS::IAM::Role") {
			if len(r.text("RoleName")) > 64 {
				t.Errorf("%s has a name of %d characters", id, len(r.text("RoleName")))
			}
			if managed := list(r.Properties["ManagedPolicyArns"]); len(managed) > 0 != strings.HasPrefix(r.text("RoleName"), "KarpenterNodeRole-") || len(managed) > 4 {
				t.Errorf("%s has %d AWS managed policies", id, len(managed))
			}
			size := 0
			for _, p := range list(r.Properties["Policies"]) {
				policy := p.(map[string]any)
				size += len(fmt.Sprint(policy["PolicyDocument"]))
				for _, s := range statements(policy["PolicyDocument"]) {
					writes := slices.ContainsFunc(list(s["Action"]), func(action any) bool {
						_, verb, _ := strings.Cut(action.(string), ":")
						return !slices.ContainsFunc(reading, func(r string) bool { return strings.HasPrefix(verb, r) })
					})
					if s["Effect"] == "Allow" && writes && slices.Contains(list(s["Resource"]), any("*")) && policy["PolicyName"] != "network" {
						t.Errorf("%s allows %v on all resources", id, s["Action"])
					}
				}
			}
			if size > 10240 {
				t.Errorf("the policies of %s have %d characters, at most 10,240 are allowed", id, size)
			}
		}
	})
}

// Every DLQ has an alarm that pages and names its runbook.
func TestEveryDeadLetterQueueHasAnAlarm(t *testing.T) {
	forEachTemplate(t, func(t *testing.T, name string, in synthesis) {
		watched := map[string]bool{}
		for id, a := range in.ofType(t, "AWS::CloudWatch::Alarm") {
			if !strings.Contains(a.text("AlarmDescription"), "deploy/docs/runbooks/") {
				t.Errorf("%s names no runbook", id)
			}
			if strings.Contains(a.text("AlarmName"), "dlq-messages") {
				watched[object(list(a.Properties["Dimensions"])[0]).text("Value")] = true
				if name == "oidc" && !strings.HasSuffix(a.text("AlarmActions"), ":oncall]") {
					t.Errorf("%s has no action", id)
				}
			}
		}
		for _, q := range in.ofType(t, "AWS::SQS::Queue") {
			if dead := q.text("QueueName"); strings.HasSuffix(dead, "-dead") && !watched[dead] {
				t.Errorf("%s has no alarm", dead)
			}
		}
	})
}

// Templates are within CloudFormation's limits.
func TestTemplatesFit(t *testing.T) {
	forEachTemplate(t, func(t *testing.T, _ string, in synthesis) {
		if len(in.Resources) > 500 || len(in.Outputs) > 200 || len(in.raw) > 1<<20 {
			t.Errorf("%d resources, %d outputs, %d bytes", len(in.Resources), len(in.Outputs), len(in.raw))
		}
		for name := range in.Outputs {
			if text, err := in.Output(name); err != nil || len(text) > 4000 {
				t.Errorf("output %s has %d characters: %v", name, len(text), err)
			}
		}
		for id, d := range in.ofType(t, "AWS::CloudWatch::Dashboard") {
			if !strings.Contains(d.text("DashboardBody"), board.Namespace) {
				t.Errorf("%s has no widget with Joist's metrics", id)
			}
		}
	})
}

// Resources that are retained when the stack is deleted can be imported into the next
// stack, because they have explicit names
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/import-resources-automatically.html).
func TestKeptResourcesCanBeImported(t *testing.T) {
	names := map[string]string{"AWS::S3::Bucket": "BucketName", "AWS::Logs::LogGroup": "LogGroupName"}
	forEachTemplate(t, func(t *testing.T, _ string, in synthesis) {
		kept := 0
		for id, r := range in.Resources {
			if r.DeletionPolicy == "" || r.DeletionPolicy == "Delete" {
				continue
			}
			kept++
			if named, _ := in.Resource(id); names[r.Type] == "" || named.Properties[names[r.Type]] == nil {
				t.Errorf("%s of type %s is retained without an explicit name", id, r.Type)
			}
		}
		if kept < 2 {
			t.Errorf("only %d resources are retained", kept)
		}
	})
}

// The template has every resource in topology under its name. Other code that reads an
// account relies on these names.
func TestTopologyIsComplete(t *testing.T) {
	forEachTemplate(t, func(t *testing.T, name string, in synthesis) {
		for _, k := range configOf(t, contexts[name]).Clusters {
			made := map[string]resource{}
			for kind, key := range map[string]string{"Events::EventBus": "Name", "Events::Archive": "ArchiveName", "Events::Rule": "Name",
				"Logs::LogGroup": "LogGroupName", "Scheduler::ScheduleGroup": "Name", "Scheduler::Schedule": "Name", "SQS::Queue": "QueueName", "Lambda::Function": "FunctionName"} {
				for called, r := range by(key, in.ofType(t, "AWS::"+kind)) {
					made["AWS::"+kind+" "+called] = r
				}
			}
			for _, service := range topology.ExternalServices {
				if made["AWS::Lambda::Function "+k.Plan.FunctionName(service)].Type == "" {
					t.Errorf("there is no function of %s", service)
				}
			}
			for _, thing := range []string{"Events::EventBus " + k.Plan.Bus, "Events::Archive " + k.Plan.Archive, "Logs::LogGroup " + k.Plan.AuditLogGroup,
				"Scheduler::ScheduleGroup " + k.Plan.ScheduleGroup} {
				if made["AWS::"+thing].Type == "" {
					t.Errorf("there is no %s", thing)
				}
			}
			if group := "/joist/" + k.Name + "/metrics"; (made["AWS::Logs::LogGroup "+group].number("RetentionInDays") == 30) != strings.HasPrefix(k.CloudWatchMetrics, "tcp://") {
				t.Errorf("metrics go to %q, and the log group %s is %v", k.CloudWatchMetrics, group, made["AWS::Logs::LogGroup "+group].Properties)
			}
			for _, q := range k.Plan.Queues {
				work, dead := made["AWS::SQS::Queue "+q.Name], made["AWS::SQS::Queue "+q.Dead]
				if (work.Type == "") != q.Existing || dead.Type == "" {
					t.Errorf("the queue %s and its DLQ: %v, %v", q.Name, work.Type, dead.Type)
				}
				if !q.Existing && (work.number("VisibilityTimeout") != q.Visibility.Seconds() || work.number("MessageRetentionPeriod") != q.Retention.Seconds() ||
					number(work.at("RedrivePolicy", "maxReceiveCount")) != float64(q.MaxReceives)) {
					t.Errorf("%s is not %+v: %v", q.Name, q, work.Properties)
				}
			}
			for _, rule := range k.Plan.Rules {
				r := made["AWS::Events::Rule "+rule.Name]
				if (r.Type == "") != slices.Contains(k.Queue.Rules, rule.ID) {
					t.Errorf("the rule %s is created: %t", rule.Name, r.Type != "")
				}
				var pattern any
				if err := json.Unmarshal([]byte(rule.Pattern), &pattern); err != nil {
					t.Fatal(err)
				}
				if r.Type != "" && (!reflect.DeepEqual(r.Properties["EventPattern"], pattern) || r.text("EventBusName") != rule.Bus) {
					t.Errorf("%s has the pattern %v on %s", rule.Name, r.Properties["EventPattern"], r.text("EventBusName"))
				}
			}
			for _, tick := range k.Plan.Ticks {
				if s := made["AWS::Scheduler::Schedule "+tick.Name]; fmt.Sprint(s.at("Target", "Input")) != tick.Input {
					t.Errorf("%s has the input %v", tick.Name, s.at("Target", "Input"))
				}
			}
		}
	})
}
