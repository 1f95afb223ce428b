package terraform

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// A value is a tree of map[string]any, []any, string, float64, bool and document. A string may
// have expressions between opening and closing.
const (
	opening, closing = "\ue000", "\ue001"
	// each begins an expression that stands for all items of a list variable.
	each = "\ue002"
)

// document is a value that is encoded as JSON.
type document struct{ value any }

// interpolate returns a string that is an expression.
func interpolate(expression string) string { return opening + expression + closing }

// translator translates the values of one template.
type translator struct {
	template synthesized
	// names are the Terraform resources by logical id: aws_sqs_queue.planner.
	names map[string]string
	// static is set if placeholders are not replaced.
	static bool
}

// pseudoParameters are CloudFormation's.
var pseudoParameters = map[string]string{
	"AWS::AccountId": "local.account_id", "AWS::Region": "local.region", "AWS::Partition": "local.partition",
	"AWS::URLSuffix": "local.dns_suffix",
}

// translate replaces functions by expressions and placeholders by variables.
func (t translator) translate(value any) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 1 {
			for name, argument := range v {
				if name == "Ref" || strings.HasPrefix(name, "Fn::") {
					return t.translateFunction(name, argument)
				}
			}
		}
		out := map[string]any{}
		for key, member := range v {
			one, err := t.translate(member)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			out[t.replacePlaceholders(key)] = one
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			one, err := t.translate(item)
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			out[i] = one
		}
		return out, nil
	case string:
		return t.replacePlaceholders(v), nil
	}
	return value, nil
}

func (t translator) translateFunction(name string, argument any) (any, error) {
	switch name {
	case "Ref":
		id, _ := argument.(string)
		if expression, ok := pseudoParameters[id]; ok {
			return interpolate(expression), nil
		}
		if id == "ClusterName" {
			return interpolate("var.cluster_name"), nil
		}
		return t.refer(id, "")
	case "Fn::GetAtt":
		parts, _ := argument.([]any)
		if len(parts) != 2 {
			return nil, fmt.Errorf("Fn::GetAtt of %v", argument)
		}
		return t.refer(fmt.Sprint(parts[0]), fmt.Sprint(parts[1]))
	case "Fn::Join":
		parts, _ := argument.([]any)
		if len(parts) != 2 || parts[0] != "" {
			return nil, fmt.Errorf("Fn::Join of %v", argument)
		}
		items, _ := parts[1].([]any)
		var text strings.Builder
		for _, item := range items {
			one, err := t.translateUnplaced(item)
			if err != nil {
				return nil, err
			}
			text.WriteString(one)
		}
		return t.replacePlaceholders(text.String()), nil
	case "Fn::Sub":
		// Only the code of functions uses it, which the module replaces.
		return argument, nil
	}
	return nil, fmt.Errorf("%s has no translation", name)
}

// translateUnplaced translates an item of Fn::Join. Placeholders are replaced in the joined text.
func (t translator) translateUnplaced(item any) (string, error) {
	if text, ok := item.(string); ok {
		return text, nil
	}
	one, err := t.translate(item)
	return fmt.Sprint(one), err
}

// attributes are the attributes of Terraform resources by type and attribute of CloudFormation;
// the attribute of Ref is empty.
var attributes = map[string]string{
	"AWS::Events::EventBus": "name", "AWS::Events::EventBus.Arn": "arn", "AWS::Lambda::Function": "function_name", "AWS::IAM::Role": "name",
	"AWS::IAM::Role.Arn": "arn", "AWS::Logs::LogGroup": "name", "AWS::SQS::Queue": "url", "AWS::SQS::Queue.Arn": "arn", "AWS::S3::Bucket": "bucket",
	"AWS::Scheduler::ScheduleGroup": "name", "AWS::IAM::ManagedPolicy": "arn",
}

// refer returns the reference to a resource's attribute.
func (t translator) refer(id, attribute string) (any, error) {
	r, ok := t.template.Resources[id]
	if !ok {
		return nil, fmt.Errorf("reference to the unknown resource %s", id)
	}
	key := r.Type
	if attribute != "" {
		key += "." + attribute
	}
	name, ok := attributes[key]
	if !ok {
		return nil, fmt.Errorf("reference to %s, which has no translation", key)
	}
	return interpolate(t.names[id] + "." + name), nil
}

var (
	partitionOfARN = regexp.MustCompile(`arn:aws(-cn|-us-gov)?:`)
	interpolation  = regexp.MustCompile(opening + `[^` + closing + `]*` + closing)
)

// replacePlaceholders replaces placeholders, the partition of ARNs and the host of SQS.
func (t translator) replacePlaceholders(text string) string {
	if !t.static {
		for _, p := range lists {
			if strings.Contains(text, p.text) {
				text = strings.ReplaceAll(text, p.text, opening+each+p.variable+closing)
			}
		}
		for _, p := range placeholders {
			text = strings.ReplaceAll(text, p.text, interpolate(p.expression))
		}
	}
	text = partitionOfARN.ReplaceAllString(text, "arn:"+interpolate("local.partition")+":")
	if strings.HasPrefix(text, "https://sqs.") || strings.Contains(text, "=https://sqs.") {
		text = queueHost.ReplaceAllString(text, "."+interpolate("local.dns_suffix")+"/")
	}
	return text
}

// parseDocument returns the document in a JSON text with expressions.
func parseDocument(text any) (document, error) {
	var value any
	if err := json.Unmarshal([]byte(fmt.Sprint(text)), &value); err != nil {
		return document{}, fmt.Errorf("parsing %v: %w", text, err)
	}
	return document{value}, nil
}

// policyDocument returns a policy with lists instead of single values, so that options can add
// items.
func policyDocument(value any) document {
	policy, _ := value.(map[string]any)
	statements, _ := policy["Statement"].([]any)
	for _, item := range statements {
		statement, _ := item.(map[string]any)
		for _, key := range []string{"Action", "NotAction", "Resource", "NotResource"} {
			if single, ok := statement[key]; ok {
				statement[key] = asList(single)
			}
		}
		for _, key := range []string{"Principal", "NotPrincipal"} {
			listValues(statement[key])
		}
		conditions, _ := statement["Condition"].(map[string]any)
		for _, operator := range conditions {
			listValues(operator)
		}
	}
	return document{policy}
}

// listValues replaces the single values of an object by lists.
func listValues(value any) {
	object, _ := value.(map[string]any)
	for key, single := range object {
		object[key] = asList(single)
	}
}

func asList(value any) []any {
	if list, ok := value.([]any); ok {
		return list
	}
	return []any{value}
}
