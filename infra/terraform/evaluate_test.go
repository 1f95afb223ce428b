package terraform

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// module is a parsed module.
type module struct {
	variables, locals          map[string]hcl.Expression
	resources, outputs         map[string]*hclsyntax.Body
	files                      map[string][]byte
	account, region, partition string
}

// parseModule parses the files of a module.
func parseModule(t *testing.T, files map[string][]byte) module {
	t.Helper()
	m := module{variables: map[string]hcl.Expression{}, locals: map[string]hcl.Expression{}, resources: map[string]*hclsyntax.Body{},
		outputs: map[string]*hclsyntax.Body{}, files: files, account: place.Account, region: place.Region, partition: place.Partition}
	for _, name := range sortedKeys(files) {
		parsed, diagnostics := hclsyntax.ParseConfig(files[name], name, hcl.InitialPos)
		if diagnostics.HasErrors() {
			t.Fatal(diagnostics)
		}
		for _, b := range parsed.Body.(*hclsyntax.Body).Blocks {
			switch b.Type {
			case "variable":
				m.variables[b.Labels[0]] = nil
				if d, ok := b.Body.Attributes["default"]; ok {
					m.variables[b.Labels[0]] = d.Expr
				}
			case "locals":
				for name, a := range b.Body.Attributes {
					m.locals[name] = a.Expr
				}
			case "resource":
				m.resources[b.Labels[0]+"."+b.Labels[1]] = b.Body
			case "output":
				m.outputs[b.Labels[0]] = b.Body
			}
		}
	}
	return m
}

// functions are the functions that the module calls.
var functions = map[string]function.Function{
	"alltrue": stub(cty.Bool, cty.True), "can": tryfunc.CanFunc, "coalesce": stdlib.CoalesceFunc, "concat": stdlib.ConcatFunc, "contains": stdlib.ContainsFunc,
	"filebase64sha256": stub(cty.String, cty.StringVal("HASH")), "join": stdlib.JoinFunc, "jsonencode": stdlib.JSONEncodeFunc, "length": lengthFunction,
	"lookup": stdlib.LookupFunc, "merge": stdlib.MergeFunc, "replace": stdlib.ReplaceFunc, "split": stdlib.SplitFunc, "trimprefix": stdlib.TrimPrefixFunc, "try": tryfunc.TryFunc,
}

// lengthFunction is Terraform's length, which also counts the characters of a string.
var lengthFunction = function.New(&function.Spec{Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType}}, Type: function.StaticReturnType(cty.Number),
	Impl: func(arguments []cty.Value, _ cty.Type) (cty.Value, error) {
		if arguments[0].Type() == cty.String {
			return stdlib.Strlen(arguments[0])
		}
		return stdlib.Length(arguments[0])
	}})

// stub returns a function with a constant result.
func stub(kind cty.Type, value cty.Value) function.Function {
	return function.New(&function.Spec{VarParam: &function.Parameter{Name: "any", Type: cty.DynamicPseudoType, AllowNull: true, AllowUnknown: true},
		Type: function.StaticReturnType(kind), Impl: func([]cty.Value, cty.Type) (cty.Value, error) { return value, nil }})
}

// nameArguments are the arguments with a resource's name.
var nameArguments = []string{"name", "function_name", "bucket", "alarm_name"}

// evaluate returns the resources and outputs of the module with these variables. A value in
// JSON is decoded. Arguments that are null are left out.
func (m module) evaluate(t *testing.T, variables map[string]any) (resources, outputs map[string]any) {
	t.Helper()
	domain := "amazonaws.com"
	if m.partition == "aws-cn" {
		domain = "amazonaws.com.cn"
	}
	scope := &hcl.EvalContext{Functions: functions, Variables: map[string]cty.Value{"data": toValue(t, map[string]any{
		"aws_caller_identity": map[string]any{"current": map[string]any{"account_id": m.account}},
		"aws_region":          map[string]any{"current": map[string]any{"id": m.region}},
		"aws_partition":       map[string]any{"current": map[string]any{"partition": m.partition, "dns_suffix": domain}},
	})}}
	values := map[string]cty.Value{}
	for name, standard := range m.variables {
		given, ok := variables[name]
		switch {
		case ok:
			values[name] = toValue(t, given)
		case standard == nil:
			t.Fatalf("the variable %s is required", name)
		default:
			values[name] = evaluateExpression(t, scope, standard)
		}
	}
	scope.Variables["var"] = cty.ObjectVal(values)
	m.evaluateLocals(t, scope)
	m.addReferences(t, scope)
	resources, outputs = map[string]any{}, map[string]any{}
	for address, body := range m.resources {
		if count, ok := body.Attributes["count"]; ok && evaluateExpression(t, scope, count.Expr).RawEquals(cty.NumberIntVal(0)) {
			continue
		}
		resources[address] = evaluateBody(t, scope, body)
	}
	for name, body := range m.outputs {
		if value := fromValue(t, evaluateExpression(t, scope, body.Attributes["value"].Expr)); value != nil {
			outputs[name] = value
		}
	}
	return resources, outputs
}

// evaluateLocals evaluates the locals in the order of their references.
func (m module) evaluateLocals(t *testing.T, scope *hcl.EvalContext) {
	t.Helper()
	done := map[string]cty.Value{}
	for len(done) < len(m.locals) {
		before := len(done)
		for name, e := range m.locals {
			ready := !slices.ContainsFunc(e.Variables(), func(v hcl.Traversal) bool {
				return v.RootName() == "local" && done[v[1].(hcl.TraverseAttr).Name] == cty.NilVal
			})
			if _, known := done[name]; ready && !known {
				scope.Variables["local"] = cty.ObjectVal(done)
				done[name] = evaluateExpression(t, scope, e)
			}
		}
		if len(done) == before {
			t.Fatalf("locals refer to each other or to unknown ones: %v", sortedKeys(m.locals))
		}
	}
	scope.Variables["local"] = cty.ObjectVal(done)
}

// addReferences adds the attributes of resources that others refer to.
func (m module) addReferences(t *testing.T, scope *hcl.EvalContext) {
	t.Helper()
	kinds := map[string]map[string]cty.Value{}
	for address, body := range m.resources {
		kind, name, _ := strings.Cut(address, ".")
		attributes := map[string]any{}
		for _, argument := range nameArguments {
			if a, ok := body.Attributes[argument]; ok && !slices.ContainsFunc(a.Expr.Variables(), func(v hcl.Traversal) bool { return strings.HasPrefix(v.RootName(), "aws_") }) {
				text := evaluateExpression(t, scope, a.Expr).AsString()
				attributes[argument], attributes["id"] = text, text
				attributes["arn"] = strings.Join([]string{"arn", m.partition, kind, m.region, m.account, text}, ":")
				if kind == "aws_sqs_queue" {
					attributes["arn"] = strings.Join([]string{"arn", m.partition, "sqs", m.region, m.account, text}, ":")
				}
				attributes["url"] = "url:" + text
			}
		}
		if a, ok := body.Attributes["event_bus_name"]; ok && kind == "aws_cloudwatch_event_rule" {
			attributes["event_bus_name"] = evaluateExpression(t, scope, a.Expr).AsString()
		}
		value := toValue(t, attributes)
		if _, ok := body.Attributes["count"]; ok {
			value = cty.TupleVal([]cty.Value{value})
		}
		if kinds[kind] == nil {
			kinds[kind] = map[string]cty.Value{}
		}
		kinds[kind][name] = value
	}
	for kind, all := range kinds {
		scope.Variables[kind] = cty.ObjectVal(all)
	}
}

func evaluateExpression(t *testing.T, scope *hcl.EvalContext, e hcl.Expression) cty.Value {
	t.Helper()
	value, diagnostics := e.Value(scope)
	if diagnostics.HasErrors() {
		t.Fatal(diagnostics)
	}
	return value
}

// evaluateBody returns the arguments and nested blocks of a resource.
func evaluateBody(t *testing.T, scope *hcl.EvalContext, body *hclsyntax.Body) map[string]any {
	t.Helper()
	out := map[string]any{}
	for name, a := range body.Attributes {
		if name == "count" || name == "depends_on" {
			continue
		}
		if value := fromValue(t, evaluateExpression(t, scope, a.Expr)); value != nil {
			out[name] = value
		}
	}
	for _, b := range body.Blocks {
		name, content := b.Type, b.Body
		if name == "dynamic" {
			name, content = b.Labels[0], b.Body.Blocks[0].Body
			if evaluateExpression(t, scope, b.Body.Attributes["for_each"].Expr).LengthInt() == 0 {
				continue
			}
		}
		list, _ := out[name].([]any)
		out[name] = append(list, evaluateBody(t, scope, content))
	}
	return out
}

func toValue(t *testing.T, value any) cty.Value {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	kind, err := ctyjson.ImpliedType(text)
	if err != nil {
		t.Fatal(err)
	}
	out, err := ctyjson.Unmarshal(text, kind)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func fromValue(t *testing.T, value cty.Value) any {
	t.Helper()
	text, err := ctyjson.Marshal(value, value.Type())
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return decodeDocuments(out)
}

// decodeDocuments decodes texts with JSON objects.
func decodeDocuments(value any) any {
	switch v := value.(type) {
	case string:
		var document map[string]any
		if strings.HasPrefix(v, "{") && json.Unmarshal([]byte(v), &document) == nil {
			return document
		}
	case map[string]any:
		for key, member := range v {
			v[key] = decodeDocuments(member)
		}
	case []any:
		for i, item := range v {
			v[i] = decodeDocuments(item)
		}
	}
	return value
}

// listLeaves adds the texts of all leaves of a value.
func listLeaves(value any, into map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			into[key] = true
			listLeaves(member, into)
		}
	case []any:
		for _, item := range v {
			listLeaves(item, into)
		}
	default:
		into[leafText(v)] = true
	}
}

// leafText returns the text of a leaf; numbers are without exponent.
func leafText(value any) string {
	if number, ok := value.(float64); ok {
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}
