package stack

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/infra/template"
)

// Stack has the template's resources of the types that the fake AWS supports. Others
// counts the rest.
type Stack struct {
	Queues    []Queue
	Buses     []string
	Rules     []Rule
	Schedules []Schedule
	Functions []Function
	Mappings  []Mapping
	Roles     []Role
	Policies  []QueuePolicy
	// Outputs are the stack's outputs by logical id.
	Outputs map[string]string
	// Others are the numbers of unsupported resources by type.
	Others map[string]int
}

// Queue is an AWS::SQS::Queue; its times are in seconds.
type Queue struct {
	QueueName              string
	VisibilityTimeout      int
	MessageRetentionPeriod int
	RedrivePolicy          *struct {
		DeadLetterTargetArn string `json:"deadLetterTargetArn"`
		MaxReceiveCount     int    `json:"maxReceiveCount"`
	}
	RedriveAllowPolicy   json.RawMessage `json:",omitempty"`
	KmsMasterKeyID       string          `json:"KmsMasterKeyId"`
	SqsManagedSseEnabled bool
}

// QueuePolicy is an AWS::SQS::QueuePolicy.
type QueuePolicy struct {
	Queues         []string
	PolicyDocument json.RawMessage
}

// Rule is an AWS::Events::Rule.
type Rule struct {
	Name, EventBusName string
	// Arn is not a property in the template.
	Arn          string `json:"-"`
	EventPattern json.RawMessage
	State        string
	Targets      []struct {
		ID               string `json:"Id"`
		Arn              string
		InputPath        string
		DeadLetterConfig struct{ Arn string }
	}
}

// Schedule is an AWS::Scheduler::Schedule.
type Schedule struct {
	Name, ScheduleExpression string
	Target                   struct {
		Arn, RoleArn, Input string
		DeadLetterConfig    struct{ Arn string }
	}
}

// Function is an AWS::Lambda::Function.
type Function struct {
	FunctionName, Role, Handler, Runtime string
	Architectures                        []string
	Timeout, MemorySize                  int
	Environment                          struct{ Variables map[string]string }
}

// Mapping is an AWS::Lambda::EventSourceMapping.
type Mapping struct {
	FunctionName, EventSourceArn string
	BatchSize                    int
	FunctionResponseTypes        []string
	ScalingConfig                struct{ MaximumConcurrency int }
}

// Role is an AWS::IAM::Role, including policies that the template attaches to it
// elsewhere.
type Role struct {
	RoleName                 string
	AssumeRolePolicyDocument json.RawMessage
	ManagedPolicyArns        []string
	Policies                 []Policy
}

// Policy is a policy of a role.
type Policy struct {
	PolicyName     string
	PolicyDocument json.RawMessage
}

// attached is a policy that is a separate resource.
type attached struct {
	Policy
	Roles []string
}

// Read returns a template's resources in a place. An error names the resource and the
// property.
func Read(text []byte, place template.Place) (Stack, error) {
	written, err := template.Parse(text)
	if err != nil {
		return Stack{}, err
	}
	in := written.DeployTo(place)
	out := Stack{Others: map[string]int{}, Outputs: map[string]string{}}
	for _, id := range slices.Sorted(maps.Keys(in.Resources)) {
		if err := out.add(in, id); err != nil {
			return Stack{}, fmt.Errorf("resource %s (%s): %w", id, in.Resources[id].Type, err)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(in.Outputs)) {
		if out.Outputs[id], err = in.Output(id); err != nil {
			return Stack{}, err
		}
	}
	return out, out.attach(in)
}

// add resolves one resource, unless its condition excludes it.
func (s *Stack) add(in *template.Stack, id string) error {
	if made, err := in.IsCreated(id); err != nil || !made {
		return err
	}
	named, err := in.Identity(id)
	if err != nil {
		return err
	}
	name := named.Name
	switch kind := in.Resources[id].Type; kind {
	case "AWS::SQS::Queue":
		return read(in, id, &s.Queues, func(q *Queue) { q.QueueName = name })
	case "AWS::Events::EventBus":
		s.Buses = append(s.Buses, name)
		return nil
	case "AWS::Events::Rule":
		return read(in, id, &s.Rules, func(r *Rule) { r.Name, r.Arn = name, named.ARN })
	case "AWS::Scheduler::Schedule":
		return read(in, id, &s.Schedules, func(t *Schedule) { t.Name = name })
	case "AWS::Lambda::Function":
		return read(in, id, &s.Functions, func(f *Function) { f.FunctionName = name })
	case "AWS::Lambda::EventSourceMapping":
		return read(in, id, &s.Mappings, func(*Mapping) {})
	case "AWS::IAM::Role":
		return read(in, id, &s.Roles, func(r *Role) { r.RoleName = name })
	case "AWS::SQS::QueuePolicy":
		return read(in, id, &s.Policies, func(*QueuePolicy) {})
	default:
		s.Others[kind]++
		return nil
	}
}

// read resolves a resource's properties into a struct and appends it.
func read[T any](in *template.Stack, id string, into *[]T, name func(*T)) error {
	v, err := in.Value(in.Resources[id].Properties)
	if err != nil {
		return err
	}
	text, err := json.Marshal(loosened(v))
	if err != nil {
		return err
	}
	var one T
	if err := json.Unmarshal(text, &one); err != nil {
		return err
	}
	name(&one)
	*into = append(*into, one)
	return nil
}

// loosened converts text to numbers where CloudFormation does.
func loosened(v any) any {
	properties, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for _, name := range []string{"VisibilityTimeout", "MessageRetentionPeriod", "Timeout", "MemorySize", "BatchSize"} {
		if text, ok := properties[name].(string); ok {
			if n, err := strconv.Atoi(text); err == nil {
				properties[name] = n
			}
		}
	}
	return properties
}

// attach adds to roles the policies that are separate resources.
func (s *Stack) attach(in *template.Stack) error {
	for _, id := range slices.Sorted(maps.Keys(in.Resources)) {
		if kind := in.Resources[id].Type; kind != "AWS::IAM::Policy" && kind != "AWS::IAM::ManagedPolicy" {
			continue
		}
		var policies []attached
		if err := read(in, id, &policies, func(*attached) {}); err != nil {
			return fmt.Errorf("policy %s: %w", id, err)
		}
		for i := range s.Roles {
			if role := &s.Roles[i]; slices.Contains(policies[0].Roles, role.RoleName) {
				role.Policies = append(role.Policies, policies[0].Policy)
			}
		}
	}
	return nil
}

// Every returns the interval of a schedule such as "rate(1 minute)".
func (t Schedule) Every() (time.Duration, error) {
	fields := strings.Fields(strings.TrimSuffix(strings.TrimPrefix(t.ScheduleExpression, "rate("), ")"))
	if len(fields) != 2 {
		return 0, fmt.Errorf("schedule %s has the expression %q; only rates are supported", t.Name, t.ScheduleExpression)
	}
	n, err := strconv.Atoi(fields[0])
	unit, ok := map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}[strings.TrimSuffix(fields[1], "s")]
	if err != nil || !ok || n <= 0 {
		return 0, fmt.Errorf("schedule %s has the invalid expression %q", t.Name, t.ScheduleExpression)
	}
	return time.Duration(n) * unit, nil
}

// Worker returns the function that consumes a queue, by its mapping.
func (s Stack) Worker(queue string) (Function, Mapping, bool) {
	for _, m := range s.Mappings {
		if template.Name(m.EventSourceArn) != queue {
			continue
		}
		for _, f := range s.Functions {
			if f.FunctionName == template.Name(m.FunctionName) {
				return f, m, true
			}
		}
	}
	return Function{}, Mapping{}, false
}
