package terraform

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// alternative is a value under an option's condition.
type alternative struct {
	condition string
	value     any
}

// writer writes the expressions of a module.
type writer struct {
	// counted are the addresses of resources with a count.
	counted map[string]bool
}

// expression returns the expression for a value that has alternatives. A nil value is absent.
func (w writer) expression(base any, alternatives []alternative) string {
	alternatives = slices.DeleteFunc(slices.Clone(alternatives), func(a alternative) bool { return reflect.DeepEqual(a.value, base) })
	if len(alternatives) == 0 {
		return w.literal(base)
	}
	switch of := base.(type) {
	case document:
		if inner, ok := unwrapAll(alternatives, func(v any) (any, bool) { d, ok := v.(document); return d.value, ok }); ok {
			return "jsonencode(" + w.expression(of.value, inner) + ")"
		}
	case extended:
		if inner, ok := unwrapAll(alternatives, func(v any) (any, bool) { e, ok := v.(extended); return e.value, ok }); ok {
			return "merge(" + w.expression(of.value, inner) + ", " + of.variable + ")"
		}
	case joined:
		if inner, ok := unwrapAll(alternatives, func(v any) (any, bool) { j, ok := v.(joined); return j.items, ok }); ok {
			return "join(" + w.literal(of.separator) + ", " + w.expression(of.items, inner) + ")"
		}
	case map[string]any:
		if all, ok := convertAll[map[string]any](alternatives); ok {
			return w.object(of, all)
		}
	case []any:
		if all, ok := convertAll[[]any](alternatives); ok {
			return w.list(of, all)
		}
	}
	return w.choice(base, alternatives)
}

// joined is a text with alternatives among its parts.
type joined struct {
	separator string
	items     []any
}

// unwrapAll returns the alternatives with inner values; false if one has none.
func unwrapAll(all []alternative, inner func(any) (any, bool)) ([]alternative, bool) {
	out := make([]alternative, len(all))
	for i, a := range all {
		value, ok := inner(a.value)
		if !ok {
			return nil, false
		}
		out[i] = alternative{a.condition, value}
	}
	return out, true
}

// typed is an alternative of a known type.
type typed[T any] struct {
	condition string
	value     T
}

func convertAll[T any](all []alternative) ([]typed[T], bool) {
	out := make([]typed[T], len(all))
	for i, a := range all {
		value, ok := a.value.(T)
		if !ok {
			return nil, false
		}
		out[i] = typed[T]{a.condition, value}
	}
	return out, true
}

// choice returns a conditional expression.
func (w writer) choice(base any, alternatives []alternative) string {
	var out strings.Builder
	for len(alternatives) > 0 {
		value := alternatives[0].value
		var conditions []string
		alternatives = slices.DeleteFunc(alternatives, func(a alternative) bool {
			same := reflect.DeepEqual(a.value, value)
			if same {
				conditions = append(conditions, a.condition)
			}
			return same
		})
		fmt.Fprintf(&out, "%s ? %s : ", anyOf(conditions), w.literal(value))
	}
	return out.String() + w.literal(base)
}

// anyOf returns the condition that one of several is true.
func anyOf(conditions []string) string {
	if len(conditions) == 1 {
		return conditions[0]
	}
	return strings.Join(conditions, " || ")
}

// noneOf returns the condition that all are false.
func noneOf(conditions []string) string {
	if len(conditions) > 1 {
		return "!(" + anyOf(conditions) + ")"
	}
	for operator, opposite := range map[string]string{" == ": " != ", " != ": " == ", " > ": " <= "} {
		if left, right, ok := strings.Cut(conditions[0], operator); ok {
			return left + opposite + right
		}
	}
	if text, ok := strings.CutPrefix(conditions[0], "!"); ok {
		return text
	}
	return "!" + conditions[0]
}

// presence is a member of an object or an item of a list that is absent in some alternatives.
type presence struct {
	// base is nil if it is absent without options.
	base         any
	alternatives []alternative
}

// condition returns when the member is present; "" is always.
func (p presence) condition() string {
	var with, without []string
	for _, a := range p.alternatives {
		if a.value == nil {
			without = append(without, a.condition)
		} else {
			with = append(with, a.condition)
		}
	}
	switch {
	case p.base == nil:
		return anyOf(with)
	case len(without) > 0:
		return noneOf(without)
	}
	return ""
}

// present returns the base and the alternatives where it is present.
func (p presence) present() (any, []alternative) {
	with := slices.DeleteFunc(slices.Clone(p.alternatives), func(a alternative) bool { return a.value == nil })
	if p.base == nil {
		return with[0].value, with[1:]
	}
	return p.base, with
}

func (w writer) object(base map[string]any, alternatives []typed[map[string]any]) string {
	members := map[string]presence{}
	keys := map[string]bool{}
	for key := range base {
		keys[key] = true
	}
	for _, a := range alternatives {
		for key := range a.value {
			keys[key] = true
		}
	}
	for key := range keys {
		p := presence{base: base[key]}
		for _, a := range alternatives {
			p.alternatives = append(p.alternatives, alternative{a.condition, a.value[key]})
		}
		members[key] = p
	}
	var always []string
	conditional, order := map[string][]string{}, []string{}
	for _, key := range sortedKeys(members) {
		p := members[key]
		value, others := p.present()
		line := w.key(key) + " = " + w.expression(value, others)
		condition := p.condition()
		if condition == "" {
			always = append(always, line)
			continue
		}
		if conditional[condition] == nil {
			order = append(order, condition)
		}
		conditional[condition] = append(conditional[condition], line)
	}
	if len(order) == 0 {
		return braces(always)
	}
	segments := []string{braces(always)}
	for _, condition := range order {
		segments = append(segments, "{ for key, value in "+braces(conditional[condition])+" : key => value if "+condition+" }")
	}
	return call("merge", segments)
}

// itemKey returns the identity of an item: its id if it has one, otherwise its text.
func itemKey(item any) string {
	if object, ok := item.(map[string]any); ok {
		for _, name := range []string{"Sid", "Id"} {
			if id, ok := object[name].(string); ok {
				return name + ":" + id
			}
		}
	}
	text, _ := json.Marshal(item)
	return string(text)
}

func (w writer) list(base []any, alternatives []typed[[]any]) string {
	var parts []string
	for _, s := range w.segments(alignItems(base, alternatives)) {
		parts = append(parts, s.expression())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return call("concat", parts)
}

// alignItems returns the items of all lists in order, each with the lists that have it.
func alignItems(base []any, alternatives []typed[[]any]) []*presence {
	var slots []*presence
	var keys []string
	for _, item := range base {
		slots, keys = append(slots, &presence{base: item}), append(keys, itemKey(item))
	}
	for i, a := range alternatives {
		at := 0
		for _, item := range a.value {
			key := itemKey(item)
			found := slices.Index(keys[at:], key)
			if found < 0 {
				for at < len(slots) && slots[at].base == nil {
					at++ // Earlier options come first.
				}
				slots, keys = slices.Insert(slots, at, &presence{alternatives: absentIn(alternatives[:i])}), slices.Insert(keys, at, key)
				found = 0
			}
			at += found
			slots[at].alternatives = append(slots[at].alternatives, alternative{a.condition, item})
			at++
		}
		for _, slot := range slots {
			if len(slot.alternatives) <= i {
				slot.alternatives = append(slot.alternatives, alternative{a.condition, nil})
			}
		}
	}
	return slots
}

// segment is a run of items with the same condition.
type segment struct {
	condition string
	// each is the variable whose items are all items.
	each  string
	items []string
	// objects is set if the items are objects, whose types may differ.
	objects bool
}

// segments groups the items of a list.
func (w writer) segments(slots []*presence) []segment {
	var all []segment
	for _, slot := range slots {
		value, others := slot.present()
		next := segment{condition: slot.condition()}
		text, _ := value.(string)
		if _, variable, ok := strings.Cut(text, opening+each); ok {
			next.each, _, _ = strings.Cut(variable, closing)
			if next.condition == "length("+next.each+") > 0" {
				next.condition = ""
			}
		}
		_, next.objects = value.(map[string]any)
		next.items = []string{w.expression(value, others)}
		if last := len(all) - 1; last >= 0 && next.each == "" && all[last].each == "" && all[last].condition == next.condition {
			all[last].items = append(all[last].items, next.items...)
			continue
		}
		all = append(all, next)
	}
	return all
}

// expression returns the list with the segment's items.
func (s segment) expression() string {
	items := brackets(s.items)
	switch {
	case s.each != "" && s.condition == "" && s.items[0] == "item":
		return s.each
	case s.each != "" && s.condition == "":
		return "[for item in " + s.each + " : " + s.items[0] + "]"
	case s.each != "":
		return "[for item in " + s.each + " : " + s.items[0] + " if " + s.condition + "]"
	case s.condition == "":
		return items
	case s.objects:
		return "[for item in " + items + " : item if " + s.condition + "]"
	}
	return s.condition + " ? " + items + " : []"
}

// absentIn returns alternatives without a value.
func absentIn[T any](all []typed[T]) []alternative {
	out := make([]alternative, len(all))
	for i, a := range all {
		out[i] = alternative{a.condition, nil}
	}
	return out
}
