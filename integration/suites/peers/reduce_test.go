package peers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// part is a part of a template that an emulator cannot deploy: the resources of a type
// or, with a property, that property of them.
type part struct{ kind, property string }

func (p part) String() string { return strings.TrimSuffix(p.kind+" "+p.property, " ") }

// document is a template as JSON, with its numbers' spelling.
type document struct {
	object
	// order has the resources in the template's order: moto creates them in this order,
	// and fails in another one.
	order []string
}

func parseTemplate(text []byte) (document, error) {
	var d document
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&d.object); err != nil {
		return d, fmt.Errorf("reading the template: %w", err)
	}
	var written struct{ Resources json.RawMessage }
	if err := json.Unmarshal(text, &written); err != nil || len(d.section("Resources")) == 0 {
		return d, errors.Join(errors.New("reading the template: it has no resources"), err)
	}
	decoder = json.NewDecoder(bytes.NewReader(written.Resources))
	_, _ = decoder.Token() // the brace that opens the object
	for decoder.More() {
		id, err := decoder.Token()
		if err != nil {
			return d, fmt.Errorf("reading the template: %w", err)
		}
		d.order = append(d.order, id.(string))
		var resource json.RawMessage
		if err := decoder.Decode(&resource); err != nil {
			return d, fmt.Errorf("reading the template's %s: %w", id, err)
		}
	}
	return d, nil
}

// encode writes the resources in their order.
func (d document) encode() ([]byte, error) {
	var out bytes.Buffer
	for i, id := range slices.DeleteFunc(slices.Clone(d.order), func(id string) bool { return d.section("Resources")[id] == nil }) {
		if i > 0 {
			out.WriteByte(',')
		}
		text, err := json.Marshal(d.section("Resources")[id])
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "%q:%s", id, text)
	}
	whole := maps.Clone(d.object)
	whole["Resources"] = json.RawMessage("{" + out.String() + "}")
	return json.Marshal(whole)
}

// section returns one of the template's maps by logical id.
func (d document) section(name string) object {
	out, _ := d.object[name].(object)
	return out
}

// find returns the logical ids of the part's resources.
func (d document) find(p part) []string {
	var out []string
	for id, each := range d.section("Resources") {
		resource, _ := each.(object)
		properties, _ := resource["Properties"].(object)
		_, has := properties[p.property]
		if resource["Type"] == p.kind && (p.property == "" || has) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// removeParts returns the template without the parts and without resources and outputs
// that refer to a removed resource, and the logical ids of the removed resources. A mere
// dependency (DependsOn) on a removed resource is deleted. It fails if the template has
// no such part.
func removeParts(text []byte, parts ...part) (reduced []byte, removed []string, err error) {
	d, err := parseTemplate(text)
	if err != nil {
		return nil, nil, err
	}
	resources, gone := d.section("Resources"), map[string]bool{}
	for _, p := range parts {
		ids := d.find(p)
		if len(ids) == 0 {
			return nil, nil, fmt.Errorf("the template has no %s", p)
		}
		for _, id := range ids {
			if p.property == "" {
				gone[id] = true
			} else {
				delete(resources[id].(object)["Properties"].(object), p.property)
			}
		}
	}
	for grown := true; grown; {
		grown = false
		for id, each := range resources {
			if !gone[id] && refersTo(each.(object)["Properties"], gone) {
				gone[id], grown = true, true
			}
		}
	}
	d.keep(func(id string) bool { return !gone[id] })
	reduced, err = d.encode()
	return reduced, slices.Sorted(maps.Keys(gone)), err
}

// keepPart returns a template with only the part's first resource, with all its
// properties, and the resources that it needs.
func keepPart(text []byte, p part) ([]byte, error) {
	d, err := parseTemplate(text)
	if err != nil {
		return nil, err
	}
	ids := d.find(p)
	if len(ids) == 0 {
		return nil, fmt.Errorf("the template has no %s", p)
	}
	kept := map[string]bool{}
	for next := ids[:1]; len(next) > 0; next = next[1:] {
		resource, ok := d.section("Resources")[next[0]].(object)
		if !ok || kept[next[0]] {
			continue
		}
		kept[next[0]] = true
		next = append(next, slices.Concat(references(resource["Properties"]), dependencies(resource))...)
	}
	d.keep(func(id string) bool { return kept[id] })
	delete(d.object, "Outputs")
	return d.encode()
}

// keep removes the other resources, the dependencies on them and the outputs that refer
// to them.
func (d document) keep(kept func(id string) bool) {
	resources, outputs := d.section("Resources"), d.section("Outputs")
	gone := map[string]bool{}
	for id := range resources {
		gone[id] = !kept(id)
	}
	maps.DeleteFunc(resources, func(id string, _ any) bool { return gone[id] })
	for _, each := range resources {
		resource := each.(object)
		left := slices.DeleteFunc(dependencies(resource), func(id string) bool { return gone[id] })
		if delete(resource, "DependsOn"); len(left) > 0 {
			resource["DependsOn"] = left
		}
	}
	maps.DeleteFunc(outputs, func(_ string, output any) bool { return refersTo(output, gone) })
}

// dependencies returns the logical ids in a resource's DependsOn.
func dependencies(resource object) []string {
	var out []string
	switch d := resource["DependsOn"].(type) {
	case string:
		out = append(out, d)
	case []any:
		for _, id := range d {
			out = append(out, fmt.Sprint(id))
		}
	}
	return out
}

func refersTo(value any, ids map[string]bool) bool {
	return slices.ContainsFunc(references(value), func(id string) bool { return ids[id] })
}

var substituted = regexp.MustCompile(`\$\{([^!.}][^.}]*)[^}]*\}`)

// references returns the names in a value's Ref, Fn::GetAtt and Fn::Sub: logical ids,
// parameters and pseudo parameters, in order.
func references(value any) []string {
	var out []string
	switch v := value.(type) {
	case []any:
		for _, each := range v {
			out = append(out, references(each)...)
		}
	case object:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out = append(out, references(v[name])...)
			list, text := asList(v[name])
			switch {
			case name == "Ref":
				out = append(out, text)
			case name == "Fn::GetAtt":
				id, _, _ := strings.Cut(text, ".")
				out = append(out, id)
			case name == "Fn::Sub" && len(list) > 0:
				for _, match := range substituted.FindAllStringSubmatch(text, -1) {
					out = append(out, match[1])
				}
			}
		}
	}
	return out
}

// asList returns the argument of a function as a list, and the text of its first member.
func asList(argument any) (list []any, first string) {
	list, ok := argument.([]any)
	if !ok {
		list = []any{argument}
	}
	if len(list) > 0 {
		first, _ = list[0].(string)
	}
	return list, first
}

// connected is a template in which a function is connected to two roles and a mapping.
const connected = `{
	"Parameters": {"Name": {"Type": "String"}},
	"Resources": {
		"Role": {"Type": "AWS::IAM::Role", "Properties": {"RoleName": {"Ref": "Name"}}},
		"Log": {"Type": "AWS::Logs::LogGroup", "Properties": {"RetentionInDays": 30}},
		"Function": {"Type": "AWS::Lambda::Function", "DependsOn": "Log", "Properties": {"Timeout": 10, "Role": {"Fn::GetAtt": ["Role", "Arn"]}}},
		"Mapping": {"Type": "AWS::Lambda::EventSourceMapping", "Properties": {"FunctionName": {"Ref": "Function"}}},
		"Alias": {"Type": "AWS::Lambda::Alias", "Properties": {"Of": [{"Fn::Sub": "${Mapping.Id}-${!Role}-${AWS::Region}"}]}},
		"Rule": {"Type": "AWS::Events::Rule", "DependsOn": ["Function", "Log"], "Properties": {"State": "ENABLED"}},
		"Alone": {"Type": "AWS::Events::Rule", "DependsOn": ["Alias"], "Properties": {}}
	},
	"Outputs": {
		"Function": {"Value": {"Fn::GetAtt": "Function.Arn"}},
		"Role": {"Value": {"Ref": "Role"}}
	}
}`

// outline returns a template's resources with their dependencies, and its outputs.
func outline(t *testing.T, text []byte) map[string][]string {
	t.Helper()
	d, err := parseTemplate(text)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for id, each := range d.section("Resources") {
		properties := each.(object)["Properties"].(object)
		out[id] = append(slices.Sorted(maps.Keys(properties)), dependencies(each.(object))...)
	}
	for id := range d.section("Outputs") {
		out["output "+id] = nil
	}
	return out
}

func orderOf(t *testing.T, text []byte) []string {
	t.Helper()
	d, err := parseTemplate(text)
	if err != nil {
		t.Fatal(err)
	}
	return d.order
}

func TestRemovePartsOfTemplate(t *testing.T) {
	for _, test := range []struct {
		name    string
		parts   []part
		want    map[string][]string
		removed []string
	}{
		{"a type and all references to it", []part{{kind: "AWS::Lambda::Function"}}, map[string][]string{
			"Role": {"RoleName"}, "Log": {"RetentionInDays"}, "Rule": {"State", "Log"}, "Alone": nil, "output Role": nil,
		}, []string{"Alias", "Function", "Mapping"}},
		{"a property", []part{{"AWS::Events::Rule", "State"}}, map[string][]string{
			"Role": {"RoleName"}, "Log": {"RetentionInDays"}, "Function": {"Role", "Timeout", "Log"}, "Mapping": {"FunctionName"}, "Alias": {"Of"},
			"Rule": {"Function", "Log"}, "Alone": {"Alias"}, "output Role": nil, "output Function": nil,
		}, nil},
		{"a type and a property of another type", []part{{kind: "AWS::Events::Rule"}, {"AWS::Logs::LogGroup", "RetentionInDays"}}, map[string][]string{
			"Role": {"RoleName"}, "Log": nil, "Function": {"Role", "Timeout", "Log"}, "Mapping": {"FunctionName"}, "Alias": {"Of"},
			"output Role": nil, "output Function": nil,
		}, []string{"Alone", "Rule"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			reduced, removed, err := removeParts([]byte(connected), test.parts...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, outline(t, reduced)); diff != "" {
				t.Error(diff)
			}
			if all := []string{"Role", "Log", "Function", "Mapping", "Alias", "Rule", "Alone"}; !slices.Equal(orderOf(t, reduced), slices.DeleteFunc(all, func(id string) bool {
				return slices.Contains(test.removed, id)
			})) {
				t.Errorf("got the order of resources %q", orderOf(t, reduced))
			}
			if !slices.Equal(removed, test.removed) {
				t.Errorf("removed %q, want %q", removed, test.removed)
			}
		})
	}
	for _, p := range []part{{kind: "AWS::SNS::Topic"}, {"AWS::Events::Rule", "Targets"}} {
		if _, _, err := removeParts([]byte(connected), p); err == nil {
			t.Errorf("%s: got no error for a type that the template does not have", p)
		}
	}
}

func TestKeepPartOfTemplate(t *testing.T) {
	for p, want := range map[part]map[string][]string{
		{kind: "AWS::Lambda::EventSourceMapping"}: {
			"Mapping": {"FunctionName"}, "Function": {"Role", "Timeout", "Log"}, "Role": {"RoleName"}, "Log": {"RetentionInDays"},
		},
		{"AWS::Events::Rule", "State"}: {
			"Rule": {"State", "Function", "Log"}, "Function": {"Role", "Timeout", "Log"}, "Role": {"RoleName"}, "Log": {"RetentionInDays"},
		},
	} {
		kept, err := keepPart([]byte(connected), p)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, outline(t, kept)); diff != "" {
			t.Errorf("%s: %s", p, diff)
		}
	}
	if _, err := keepPart([]byte(connected), part{kind: "AWS::SNS::Topic"}); err == nil {
		t.Error("got no error for a topic that the template does not have")
	}
}
