package authorization

import (
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/infra/evaluator"
	"github.com/joist-autoscaler/joist/infra/template"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/stack"
)

// Deployment has a stack's policies.
type Deployment struct {
	// Roles are the stack's roles by name.
	Roles map[string]Role
	// Resources are the resource policies of queues, by ARN.
	Resources map[string][]evaluator.Policy
}

// ReadDeployment reads the policies of a stack. It ignores AWS managed policies of roles, because
// no service of Joist has any.
func ReadDeployment(s stack.Stack, place Place) (Deployment, error) {
	d := Deployment{Roles: map[string]Role{}, Resources: map[string][]evaluator.Policy{}}
	for _, r := range s.Roles {
		role := Role{ARN: place.arn("iam", "role/"+r.RoleName)}
		for _, p := range r.Policies {
			policy, err := evaluator.Parse(r.RoleName+"/"+p.PolicyName, p.PolicyDocument)
			if err != nil {
				return d, err
			}
			role.Policies = append(role.Policies, policy)
		}
		trust, err := evaluator.Parse("trust policy of "+r.RoleName, r.AssumeRolePolicyDocument)
		if err != nil {
			return d, err
		}
		role.Trust = []evaluator.Policy{trust}
		d.Roles[r.RoleName] = role
	}
	// Lambda sends the function's ARN
	// (https://docs.aws.amazon.com/lambda/latest/dg/permissions-source-function-arn.html).
	for _, f := range s.Functions {
		name := template.Name(f.Role)
		if role, ok := d.Roles[name]; ok {
			role.Context = map[string][]string{"lambda:SourceFunctionArn": {place.arn("lambda", "function:"+f.FunctionName)}}
			d.Roles[name] = role
		}
	}
	for _, p := range s.Policies {
		for _, url := range p.Queues {
			name := template.Name(url)
			policy, err := evaluator.Parse("queue "+name, p.PolicyDocument)
			if err != nil {
				return d, err
			}
			arn := place.arn("sqs", name)
			d.Resources[arn] = append(d.Resources[arn], policy)
		}
	}
	return d, nil
}

// Undelivered returns the rules and schedules whose target's policy denies them. AWS
// drops their events without an error.
func (d Deployment) Undelivered(s stack.Stack, place Place) ([]string, error) {
	var out []string
	ask := func(what string, by evaluator.Principal, own []evaluator.Policy, queue string, context map[string][]string) error {
		context["aws:SecureTransport"] = []string{"true"}
		decision, err := evaluator.Policies{Identity: own, Resource: d.Resources[queue]}.Evaluate(evaluator.Request{
			Principal: by, Action: "sqs:SendMessage", Resource: queue, Owner: place.Account, Context: context,
		})
		if err == nil && !decision.Allowed {
			out = append(out, fmt.Sprintf("%s may not send to %s", what, queue))
		}
		return err
	}
	for _, r := range s.Rules {
		for _, t := range r.Targets {
			for _, queue := range slices.Compact([]string{t.Arn, t.DeadLetterConfig.Arn}) {
				if queue == "" || template.Service(queue) != "sqs" {
					continue
				}
				by := evaluator.Principal{Kind: evaluator.Service, Name: "events.amazonaws.com"}
				asked := map[string][]string{"aws:SourceArn": {r.Arn}, "aws:SourceAccount": {place.Account}}
				if err := ask("the rule "+r.Name, by, nil, queue, asked); err != nil {
					return out, err
				}
			}
		}
	}
	for _, t := range s.Schedules {
		role := d.Roles[template.Name(t.Target.RoleArn)]
		for _, queue := range []string{t.Target.Arn, t.Target.DeadLetterConfig.Arn} {
			if queue == "" {
				continue
			}
			if err := ask("the schedule "+t.Name, evaluator.Principal{Kind: evaluator.Role, Name: role.ARN}, role.Policies, queue, map[string][]string{}); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}
