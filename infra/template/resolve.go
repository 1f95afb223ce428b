package template

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// noValue is AWS::NoValue: a missing property.
var noValue any = new(struct{ _ byte })

// Value returns v with every function resolved. Properties and items that resolve to
// AWS::NoValue are removed. An error names the path of the function.
func (s *Stack) Value(v any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		if name, argument, ok := asFunction(v); ok {
			return s.callFunction(name, argument)
		}
		out := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			one, err := s.Value(v[name])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if one != noValue {
				out[name] = one
			}
		}
		return out, nil
	case []any:
		out := make([]any, 0, len(v))
		for i, item := range v {
			one, err := s.Value(item)
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			if one != noValue {
				out = append(out, one)
			}
		}
		return out, nil
	default:
		return v, nil
	}
}

// asFunction returns the function call that an object with one member represents. Condition
// is a function only with a string, because policy statements have a member of that name.
func asFunction(object map[string]any) (name string, argument any, ok bool) {
	if len(object) != 1 {
		return "", nil, false
	}
	for name, argument := range object {
		_, text := argument.(string)
		if name == "Ref" || name == "Condition" && text || strings.HasPrefix(name, "Fn::") {
			return name, argument, true
		}
	}
	return "", nil, false
}

func (s *Stack) callFunction(name string, argument any) (any, error) {
	switch name {
	case "Ref":
		return s.resolveRef(fmt.Sprint(argument))
	case "Condition":
		return s.evaluateCondition(fmt.Sprint(argument))
	case "Fn::GetAtt":
		return s.resolveAttribute(argument)
	case "Fn::Sub":
		return s.resolveSub(argument)
	case "Fn::If":
		return s.resolveIf(argument)
	}
	apply, ok := functions[name]
	if !ok {
		return nil, fmt.Errorf("%s is not supported", name)
	}
	in, err := s.Value(argument)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	list, ok := in.([]any)
	if !ok {
		return nil, fmt.Errorf("%s of %v, which is not a list", name, in)
	}
	out, err := apply(list)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return out, nil
}

// resolveRef resolves Ref: a pseudo parameter, a parameter or a resource.
func (s *Stack) resolveRef(name string) (any, error) {
	switch name {
	case "AWS::AccountId":
		return s.place.Account, nil
	case "AWS::Region":
		return s.place.Region, nil
	case "AWS::Partition":
		return s.place.Partition, nil
	case "AWS::URLSuffix":
		return s.place.domainSuffix(), nil
	case "AWS::StackName":
		return s.place.Name, nil
	case "AWS::StackId":
		return s.place.resourceARN("cloudformation", "stack/"+s.place.Name+"/0"), nil
	case "AWS::NoValue":
		return noValue, nil
	}
	if p, ok := s.Parameters[name]; ok {
		if v, ok := s.place.Parameters[name]; ok {
			return v, nil
		}
		if p.Default == nil {
			return nil, fmt.Errorf("the parameter %s has no default and was not given", name)
		}
		return fmt.Sprint(p.Default), nil
	}
	r, err := s.Identity(name)
	return r.Ref, err
}

// resolveAttribute resolves Fn::GetAtt of a list of two or of "Resource.Attribute".
func (s *Stack) resolveAttribute(argument any) (any, error) {
	id, name := "", ""
	switch a := argument.(type) {
	case string:
		id, name, _ = strings.Cut(a, ".")
	case []any:
		if len(a) == 2 {
			id, name = fmt.Sprint(a[0]), fmt.Sprint(a[1])
		}
	}
	r, err := s.Identity(id)
	if err != nil {
		return nil, fmt.Errorf("Fn::GetAtt %v: %w", argument, err)
	}
	v, ok := r.Attributes[name]
	if !ok {
		return nil, fmt.Errorf("%s, a %s, has no attribute %q", id, s.Resources[id].Type, name)
	}
	return v, nil
}

var placeholder = regexp.MustCompile(`\$\{[^}]+\}`)

// resolveSub resolves Fn::Sub of a text, or of a text and a map of values.
func (s *Stack) resolveSub(argument any) (any, error) {
	text, ok := argument.(string)
	own := map[string]any{}
	if list, is := argument.([]any); is && len(list) == 2 {
		values, err := s.Value(list[1])
		if err != nil {
			return nil, fmt.Errorf("Fn::Sub: %w", err)
		}
		text, ok = list[0].(string)
		if own, is = values.(map[string]any); !is {
			ok = false
		}
	}
	if !ok {
		return nil, fmt.Errorf("Fn::Sub of %v", argument)
	}
	var problem error
	out := placeholder.ReplaceAllStringFunc(text, func(found string) string {
		value, err := s.resolvePlaceholder(found[2:len(found)-1], own)
		if err != nil && problem == nil {
			problem = fmt.Errorf("Fn::Sub %q: %w", text, err)
		}
		return fmt.Sprint(value)
	})
	return out, problem
}

// resolvePlaceholder returns the value of ${name}.
func (s *Stack) resolvePlaceholder(name string, own map[string]any) (any, error) {
	if literal, is := strings.CutPrefix(name, "!"); is {
		return "${" + literal + "}", nil
	}
	if v, is := own[name]; is {
		return v, nil
	}
	if strings.Contains(name, ".") {
		return s.resolveAttribute(name)
	}
	return s.resolveRef(name)
}

// resolveIf resolves Fn::If. The other branch may refer to resources that are not created.
func (s *Stack) resolveIf(argument any) (any, error) {
	list, ok := argument.([]any)
	if !ok || len(list) != 3 {
		return nil, fmt.Errorf("Fn::If of %v instead of a condition and two values", argument)
	}
	yes, err := s.evaluateCondition(fmt.Sprint(list[0]))
	if err != nil {
		return nil, fmt.Errorf("Fn::If: %w", err)
	}
	if yes {
		return s.Value(list[1])
	}
	return s.Value(list[2])
}

func (s *Stack) evaluateCondition(name string) (bool, error) {
	written, ok := s.Conditions[name]
	if !ok {
		return false, fmt.Errorf("there is no condition %q", name)
	}
	leave, err := s.enterResource("condition " + name)
	if err != nil {
		return false, err
	}
	defer leave()
	v, err := s.Value(written)
	if err != nil {
		return false, fmt.Errorf("the condition %s: %w", name, err)
	}
	yes, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("the condition %s is %v", name, v)
	}
	return yes, nil
}

// enterResource records the resource as being resolved until leave is called, and rejects cycles.
func (s *Stack) enterResource(what string) (leave func(), err error) {
	if slices.Contains(s.resolving, what) {
		return nil, fmt.Errorf("%s depends on itself", strings.Join(append(s.resolving, what), " → "))
	}
	s.resolving = append(s.resolving, what)
	return func() { s.resolving = s.resolving[:len(s.resolving)-1] }, nil
}
