package stack

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Place is where a stack is made.
type Place struct {
	Account, Region, Partition string
	// Name is the stack's.
	Name string
	// Parameters override the template's defaults.
	Parameters map[string]string
	// QueueURL is the URL of a queue of that name.
	QueueURL func(name string) string
}

// scope resolves what a template says: its intrinsic functions
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html).
type scope struct {
	place Place
	raw   document
	// under are the logical ids that are being resolved, to find circles.
	under []string
}

// value resolves functions everywhere in v.
func (s *scope) value(v any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 1 {
			for name, argument := range v {
				if name == "Ref" || name == "Condition" || strings.HasPrefix(name, "Fn::") {
					return s.call(name, argument)
				}
			}
		}
		out := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			one, err := s.value(v[name])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if one != nothing {
				out[name] = one
			}
		}
		return out, nil
	case []any:
		out := make([]any, 0, len(v))
		for i, item := range v {
			one, err := s.value(item)
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			if one != nothing {
				out = append(out, one)
			}
		}
		return out, nil
	default:
		return v, nil
	}
}

// nothing is AWS::NoValue: a property that is not there.
var nothing any = new(struct{ _ byte })

func (s *scope) call(name string, argument any) (any, error) {
	switch name {
	case "Ref":
		return s.ref(fmt.Sprint(argument))
	case "Fn::GetAtt":
		return s.attribute(argument)
	case "Fn::Sub":
		return s.substitute(argument)
	case "Condition":
		return s.condition(fmt.Sprint(argument))
	}
	list, err := s.arguments(argument)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out, err := s.apply(name, list)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return out, nil
}

// arguments resolves them all; one that is no list is a list of one. Fn::If resolves
// both branches, which costs nothing.
func (s *scope) arguments(argument any) ([]any, error) {
	if _, ok := argument.([]any); !ok {
		argument = []any{argument}
	}
	var out []any
	for _, item := range argument.([]any) {
		one, err := s.value(item)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

func (s *scope) substitute(argument any) (any, error) {
	own := map[string]any{}
	text, ok := argument.(string)
	if list, is := argument.([]any); is && len(list) == 2 {
		text, ok = list[0].(string)
		values, err := s.value(list[1])
		if err != nil {
			return nil, err
		}
		own, _ = values.(map[string]any)
	}
	if !ok {
		return nil, fmt.Errorf("Fn::Sub of %v", argument)
	}
	var problem error
	out := reference.ReplaceAllStringFunc(text, func(found string) string {
		name := found[2 : len(found)-1]
		if literal, is := strings.CutPrefix(name, "!"); is {
			return "${" + literal + "}"
		}
		if v, is := own[name]; is {
			return fmt.Sprint(v)
		}
		var v any
		var err error
		if strings.Contains(name, ".") {
			v, err = s.attribute(name)
		} else {
			v, err = s.ref(name)
		}
		if err != nil && problem == nil {
			problem = err
		}
		return fmt.Sprint(v)
	})
	return out, problem
}

var reference = regexp.MustCompile(`\$\{[^}]+\}`)

// ref is what Ref gives: a pseudo parameter, a parameter, or a resource's own id.
func (s *scope) ref(name string) (any, error) {
	switch name {
	case "AWS::AccountId":
		return s.place.Account, nil
	case "AWS::Region":
		return s.place.Region, nil
	case "AWS::Partition":
		return s.place.Partition, nil
	case "AWS::URLSuffix":
		return "amazonaws.com", nil
	case "AWS::StackName":
		return s.place.Name, nil
	case "AWS::StackId":
		return "arn:" + s.place.Partition + ":cloudformation:" + s.place.Region + ":" + s.place.Account + ":stack/" + s.place.Name + "/0", nil
	case "AWS::NoValue":
		return nothing, nil
	}
	if p, ok := s.raw.Parameters[name]; ok {
		if v, ok := s.place.Parameters[name]; ok {
			return v, nil
		}
		if p.Default == nil {
			return nil, fmt.Errorf("the parameter %s has no default and was not given", name)
		}
		return fmt.Sprint(p.Default), nil
	}
	r, err := s.identity(name)
	return r.ref, err
}

// attribute is Fn::GetAtt, of a list of two or of "Resource.Attribute".
func (s *scope) attribute(argument any) (any, error) {
	id, name := "", ""
	switch a := argument.(type) {
	case string:
		id, name, _ = strings.Cut(a, ".")
	case []any:
		if len(a) == 2 {
			id, name = fmt.Sprint(a[0]), fmt.Sprint(a[1])
		}
	}
	r, err := s.identity(id)
	if err != nil {
		return nil, fmt.Errorf("Fn::GetAtt %v: %w", argument, err)
	}
	v, ok := r.attributes[name]
	if !ok {
		return nil, fmt.Errorf("%s, a %s, has no attribute %q that is known here", id, s.raw.Resources[id].Type, name)
	}
	return v, nil
}

func (s *scope) condition(name string) (bool, error) {
	raw, ok := s.raw.Conditions[name]
	if !ok {
		return false, fmt.Errorf("there is no condition %q", name)
	}
	v, err := s.value(raw)
	if err != nil {
		return false, fmt.Errorf("condition %s: %w", name, err)
	}
	return v == true, nil
}

// apply is a function of resolved arguments.
func (s *scope) apply(name string, in []any) (any, error) {
	switch name {
	case "Fn::Join":
		return join(in)
	case "Fn::Select":
		return pick(in)
	case "Fn::Split":
		return split(in)
	case "Fn::If":
		if len(in) != 3 {
			return nil, fmt.Errorf("it has %d arguments", len(in))
		}
		yes, err := s.condition(fmt.Sprint(in[0]))
		if yes {
			return in[1], err
		}
		return in[2], err
	case "Fn::Equals":
		return len(in) == 2 && fmt.Sprint(in[0]) == fmt.Sprint(in[1]), nil
	case "Fn::Not":
		return in[0] != true, nil
	case "Fn::And":
		return !slices.Contains(in, any(false)), nil
	case "Fn::Or":
		return slices.Contains(in, any(true)), nil
	default:
		return nil, errors.New("it is not known here")
	}
}

func join(in []any) (any, error) {
	parts, ok := at[[]any](in, 1)
	if !ok {
		return nil, fmt.Errorf("%v has no list", in)
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = fmt.Sprint(p)
	}
	return strings.Join(texts, fmt.Sprint(in[0])), nil
}

func pick(in []any) (any, error) {
	list, ok := at[[]any](in, 1)
	if !ok {
		return nil, fmt.Errorf("%v has no list", in)
	}
	i, err := strconv.Atoi(fmt.Sprint(in[0]))
	if err != nil || i < 0 || i >= len(list) {
		return nil, fmt.Errorf("no item %v among %d", in[0], len(list))
	}
	return list[i], nil
}

func split(in []any) (any, error) {
	text, ok := at[string](in, 1)
	if !ok {
		return nil, fmt.Errorf("%v has no text", in)
	}
	var out []any
	for part := range strings.SplitSeq(text, fmt.Sprint(in[0])) {
		out = append(out, part)
	}
	return out, nil
}

func at[T any](in []any, i int) (T, bool) {
	var none T
	if i >= len(in) {
		return none, false
	}
	v, ok := in[i].(T)
	return v, ok
}
