package stack_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/settings"
	"github.com/joist-autoscaler/joist/shared/telemetry/board"
)

// everywhere runs a check on each template.
func everywhere(t *testing.T, check func(t *testing.T, name string, in template)) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(contexts)) {
		t.Run(name, func(t *testing.T) { check(t, name, synth(t, name)) })
	}
}

// of are the resources of a type, in order; there must be some.
func (in template) of(t *testing.T, kind string) map[string]resource {
	t.Helper()
	found := map[string]resource{}
	for id, r := range in.Resources {
		if r.Type == kind {
			found[id] = r
		}
	}
	if len(found) == 0 {
		t.Fatalf("no %s", kind)
	}
	return found
}

// flat is a value with its intrinsic functions written as text: ${AWS::Region}, ${Id}
// and ${Id.Arn}.
func flat(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case map[string]any:
		if ref, ok := v["Ref"]; ok {
			return fmt.Sprintf("${%v}", ref)
		}
		if get, ok := v["Fn::GetAtt"].([]any); ok {
			return fmt.Sprintf("${%v.%v}", get[0], get[1])
		}
		if join, ok := v["Fn::Join"].([]any); ok {
			var b strings.Builder
			for _, part := range join[1].([]any) {
				b.WriteString(flat(part))
			}
			return b.String()
		}
	}
	return fmt.Sprint(value)
}

func (r resource) text(key string) string { return flat(r.Properties[key]) }

func (r resource) number(key string) float64 {
	n, _ := r.Properties[key].(float64)
	return n
}

// at finds a value by its path.
func (r resource) at(path ...string) any {
	var value any = r.Properties
	for _, key := range path {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	return value
}

// list is a list, or one value as a list.
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

// queueOf is the last part of an ARN.
func queueOf(arn string) string { return arn[strings.LastIndex(arn, ":")+1:] }

func TestEveryQueue(t *testing.T) {
	everywhere(t, func(t *testing.T, _ string, in template) {
		policies := map[string][]statement{}
		for _, p := range in.of(t, "AWS::SQS::QueuePolicy") {
			for _, q := range list(p.Properties["Queues"]) {
				policies[flat(q)] = statements(p.Properties["PolicyDocument"])
			}
		}
		queues := in.of(t, "AWS::SQS::Queue")
		for id, q := range queues {
			name := q.text("QueueName")
			if q.Properties["SqsManagedSseEnabled"] != true {
				t.Errorf("%s is not encrypted", name)
			}
			if !deniesInsecure(policies["${"+id+"}"], "sqs:*") {
				t.Errorf("%s can be reached without TLS", name)
			}
			if len(name) > 80 || q.Properties["RedriveAllowPolicy"] == nil != (q.Properties["RedrivePolicy"] != nil) {
				t.Errorf("%s is neither a work queue nor a dead-letter queue: %v", name, q.Properties)
			}
			if strings.HasSuffix(name, "-dead") {
				if q.number("MessageRetentionPeriod") != 14*24*3600 {
					t.Errorf("%s keeps messages for %v s", name, q.number("MessageRetentionPeriod"))
				}
				continue
			}
			dead := strings.TrimSuffix(strings.TrimPrefix(flat(q.at("RedrivePolicy", "deadLetterTargetArn")), "${"), ".Arn}")
			back := flat(list(queues[dead].at("RedriveAllowPolicy", "sourceQueueArns"))[0])
			if queueOf(back) != name {
				t.Errorf("%s parks in %s, which takes from %s", name, dead, back)
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

func TestEveryFunction(t *testing.T) {
	known := map[string]bool{}
	for _, v := range settings.Variables {
		known[v.Name] = true
	}
	everywhere(t, func(t *testing.T, _ string, in template) {
		logs := map[string]bool{}
		for _, g := range in.of(t, "AWS::Logs::LogGroup") {
			logs[g.text("LogGroupName")] = g.number("RetentionInDays") > 0
		}
		for id, f := range in.of(t, "AWS::Lambda::Function") {
			if f.text("Runtime") != "provided.al2023" || f.text("Architectures") != "[arm64]" || f.number("Timeout") > 900 {
				t.Errorf("%s runs as %s on %s for %v s", id, f.text("Runtime"), f.text("Architectures"), f.number("Timeout"))
			}
			if !logs["/aws/lambda/"+f.text("FunctionName")] || len(f.text("FunctionName")) > 64 {
				t.Errorf("%s has no log group that forgets", id)
			}
			environment, _ := f.at("Environment", "Variables").(map[string]any)
			for name := range environment {
				if !known[name] {
					t.Errorf("%s is told %s, which nothing reads", id, name)
				}
			}
		}
	})
}

// A queue hides a message for six times as long as its function may take, and Lambda
// refuses less than once; an existing queue is held to that alone.
func TestEverySource(t *testing.T) {
	everywhere(t, func(t *testing.T, _ string, in template) {
		visibility := map[string]float64{}
		for _, q := range in.of(t, "AWS::SQS::Queue") {
			visibility[q.text("QueueName")] = q.number("VisibilityTimeout")
		}
		for id, m := range in.of(t, "AWS::Lambda::EventSourceMapping") {
			function := in.Resources[strings.Trim(m.text("FunctionName"), "${}")]
			queue := queueOf(m.text("EventSourceArn"))
			timeout, hidden := function.number("Timeout"), visibility[queue]
			adopted := contexts[t.Name()[strings.LastIndex(t.Name(), "/")+1:]]["adopt"] != nil || queue == "staging"
			switch {
			case hidden == 0 && adopted && strings.Contains(id, "Interruption"):
				if timeout > 540 || timeout < 30 {
					t.Errorf("%s: %v s", id, timeout)
				}
			case hidden < 6*timeout || timeout == 0:
				t.Errorf("%s hides messages for %v s, and its function may take %v s", queue, hidden, timeout)
			}
			if m.text("FunctionResponseTypes") != "[ReportBatchItemFailures]" {
				t.Errorf("%s loses a batch for one message", id)
			}
			if n, _ := m.at("ScalingConfig", "MaximumConcurrency").(float64); n < 2 || n > 1000 {
				t.Errorf("%s has concurrency %v", id, n)
			}
			if strings.Contains(id, "Launcher") && timeout <= 4*60+15 {
				t.Errorf("a launch may take longer than %v s (B196)", timeout)
			}
		}
	})
}

// A target without a dead-letter queue loses what it cannot take, and a queue that does
// not know the rule refuses it (A045).
func TestB184EveryRule(t *testing.T) {
	everywhere(t, func(t *testing.T, name string, in template) {
		senders := in.senders(t)
		rules := in.of(t, "AWS::Events::Rule")
		for id, r := range rules {
			targets := list(r.Properties["Targets"])
			if len(targets) != 1 || len(r.text("Name")) > 64 {
				t.Errorf("%s has %d targets", id, len(targets))
				continue
			}
			target := resource{Properties: targets[0].(map[string]any)}
			dead := queueOf(flat(target.at("DeadLetterConfig", "Arn")))
			arn := "rule/" + r.text("Name")
			if bus := r.text("EventBusName"); bus != "default" {
				arn = "rule/" + bus + "/" + r.text("Name")
			}
			to := target.text("Arn")
			if strings.Contains(to, ":sqs:") && !senders[queueOf(to)][arn] {
				// Karpenter's own policy lets every rule send (A045).
				if in.made(queueOf(to)) || name == "terraform" {
					t.Errorf("%s may not send to %s, which takes from %v", arn, queueOf(to), senders[queueOf(to)])
				}
			}
			if !senders[dead][arn] {
				t.Errorf("%s may not park in %s", arn, dead)
			}
		}
		want := map[string]int{"cloudformation": 3, "clusters": 10}[name]
		if want == 0 {
			want = 7
		}
		if len(rules) != want {
			t.Errorf("%d rules, want %d", len(rules), want)
		}
	})
}

// senders are the rules that each queue takes from.
func (in template) senders(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	for _, p := range in.of(t, "AWS::SQS::QueuePolicy") {
		for _, s := range statements(p.Properties["PolicyDocument"]) {
			if s["Effect"] != "Allow" {
				continue
			}
			condition := resource{Properties: s}
			if condition.at("Condition", "StringEquals", "aws:SourceAccount") == nil {
				t.Errorf("%s lets any account's rules send", s["Sid"])
			}
			queue := queueOf(flat(s["Resource"]))
			if all[queue] == nil {
				all[queue] = map[string]bool{}
			}
			for _, source := range list(condition.at("Condition", "ArnEquals", "aws:SourceArn")) {
				all[queue][queueOf(flat(source))] = true
			}
		}
	}
	return all
}

func (in template) made(queue string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(in.Resources)), func(r resource) bool {
		return r.Type == "AWS::SQS::Queue" && r.text("QueueName") == queue
	})
}

func TestEverySchedule(t *testing.T) {
	everywhere(t, func(t *testing.T, _ string, in template) {
		for id, s := range in.of(t, "AWS::Scheduler::Schedule") {
			role := in.Resources[strings.TrimSuffix(strings.TrimPrefix(flat(s.at("Target", "RoleArn")), "${"), ".Arn}")]
			may := map[string]bool{}
			for _, p := range list(role.Properties["Policies"]) {
				for _, st := range statements(p.(map[string]any)["PolicyDocument"]) {
					for _, to := range list(st["Resource"]) {
						may[flat(to)] = st["Action"] == "sqs:SendMessage"
					}
				}
			}
			for _, to := range []string{flat(s.at("Target", "Arn")), flat(s.at("Target", "DeadLetterConfig", "Arn"))} {
				if !may[to] {
					t.Errorf("%s may not send to %s", id, to)
				}
			}
			if !strings.Contains(flat(s.at("Target", "Input")), "<aws.scheduler.scheduled-time>") {
				t.Errorf("%s says no time", id)
			}
		}
	})
}

// reading is what changes nothing, by the beginnings of actions' names.
var reading = []string{"Get", "List", "Describe", "Receive"}

// No right to write has all resources, but for what Lambda needs to connect a function
// to a VPC.
func TestEveryRole(t *testing.T) {
	everywhere(t, func(t *testing.T, _ string, in template) {
		for id, r := range in.of(t, "AWS::IAM::Role") {
			if len(r.text("RoleName")) > 64 {
				t.Errorf("%s has a name of %d characters", id, len(r.text("RoleName")))
			}
			if managed := list(r.Properties["ManagedPolicyArns"]); len(managed) > 0 != strings.HasPrefix(r.text("RoleName"), "KarpenterNodeRole-") || len(managed) > 4 {
				t.Errorf("%s has %d of AWS's own policies", id, len(managed))
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
						t.Errorf("%s may do %v to everything", id, s["Action"])
					}
				}
			}
			if size > 10240 {
				t.Errorf("the policies of %s have %d characters, and 10,240 are allowed", id, size)
			}
		}
	})
}

// Every dead-letter queue wakes somebody, and tells where it is written what to do.
func TestEveryDeadLetterQueueHasAnAlarm(t *testing.T) {
	everywhere(t, func(t *testing.T, name string, in template) {
		watched := map[string]bool{}
		for id, a := range in.of(t, "AWS::CloudWatch::Alarm") {
			if !strings.Contains(a.text("AlarmDescription"), "deploy/docs/runbooks/") {
				t.Errorf("%s names no runbook", id)
			}
			if strings.Contains(a.text("AlarmName"), "dead-letters") {
				watched[flat(list(a.Properties["Dimensions"])[0].(map[string]any)["Value"])] = true
				if name == "oidc" && !strings.HasSuffix(flat(list(a.Properties["AlarmActions"])[0]), ":oncall") {
					t.Errorf("%s tells nobody", id)
				}
			}
		}
		for _, q := range in.of(t, "AWS::SQS::Queue") {
			if dead := q.text("QueueName"); strings.HasSuffix(dead, "-dead") && !watched[dead] {
				t.Errorf("nobody hears of %s", dead)
			}
		}
	})
}

// CloudFormation has its own limits.
func TestTemplatesFit(t *testing.T) {
	everywhere(t, func(t *testing.T, _ string, in template) {
		if len(in.Resources) > 500 || len(in.Outputs) > 200 || len(in.raw) > 1<<20 {
			t.Errorf("%d resources, %d outputs, %d bytes", len(in.Resources), len(in.Outputs), len(in.raw))
		}
		for name, o := range in.Outputs {
			if text := flat(o["Value"]); len(text) > 4000 {
				t.Errorf("output %s has %d characters", name, len(text))
			}
		}
		for id, d := range in.of(t, "AWS::CloudWatch::Dashboard") {
			if !strings.Contains(d.text("DashboardBody"), board.Namespace) {
				t.Errorf("%s shows nothing of ours", id)
			}
		}
	})
}

// What topology names is made, as it says; what else looks at an account relies on it.
func TestTopologyIsMade(t *testing.T) {
	everywhere(t, func(t *testing.T, name string, in template) {
		for _, k := range configOf(t, contexts[name]).Clusters {
			made := map[string]resource{}
			for _, r := range in.Resources {
				for _, key := range []string{"QueueName", "Name", "ArchiveName", "LogGroupName", "FunctionName"} {
					if r.Properties[key] != nil {
						made[r.Type+" "+r.text(key)] = r
					}
				}
			}
			for _, thing := range []string{"Events::EventBus " + k.Plan.Bus, "Events::Archive " + k.Plan.Archive, "Logs::LogGroup " + k.Plan.AuditLogGroup,
				"Scheduler::ScheduleGroup " + k.Plan.ScheduleGroup} {
				if made["AWS::"+thing].Type == "" {
					t.Errorf("there is no %s", thing)
				}
			}
			for _, q := range k.Plan.Queues {
				work, dead := made["AWS::SQS::Queue "+q.Name], made["AWS::SQS::Queue "+q.Dead]
				if (work.Type == "") != q.Existing || dead.Type == "" {
					t.Errorf("the queue %s and its dead-letter queue: %v, %v", q.Name, work.Type, dead.Type)
				}
				if !q.Existing && (work.number("VisibilityTimeout") != q.Visibility.Seconds() || work.number("MessageRetentionPeriod") != q.Retention.Seconds() ||
					work.at("RedrivePolicy", "maxReceiveCount") != float64(q.MaxReceives)) {
					t.Errorf("%s is not %+v: %v", q.Name, q, work.Properties)
				}
			}
			for _, rule := range k.Plan.Rules {
				r := made["AWS::Events::Rule "+rule.Name]
				if (r.Type == "") != slices.Contains(k.Queue.Rules, rule.ID) {
					t.Errorf("the rule %s is made: %t", rule.Name, r.Type != "")
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
				if s := made["AWS::Scheduler::Schedule "+tick.Name]; flat(s.at("Target", "Input")) != tick.Input {
					t.Errorf("%s says %v", tick.Name, s.at("Target", "Input"))
				}
			}
		}
	})
}
