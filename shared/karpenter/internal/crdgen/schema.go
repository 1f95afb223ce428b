package main

import (
	"fmt"
	"maps"
	"strings"
)

// node is one object of the decoded manifest.
type node = map[string]any

// edit changes a manifest in place. Edits are idempotent, so that applying them to a finished manifest changes nothing.
type edit func(crd node) error

// set puts keywords on the schema at path, replacing what was there.
func set(path string, keywords node) edit {
	return func(crd node) error {
		schema, err := find(crd, path)
		if err != nil {
			return err
		}
		maps.Copy(schema, keywords)
		return nil
	}
}

// unset takes a keyword off the schema at path.
func unset(path, keyword string) edit {
	return func(crd node) error {
		schema, err := find(crd, path)
		if err == nil {
			delete(schema, keyword)
		}
		return err
	}
}

// mute removes the descriptions at and below path: they are Kubernetes' texts about Kubernetes' own types.
func mute(path string) edit {
	return func(crd node) error {
		schema, err := find(crd, path)
		if err == nil {
			muteAll(schema)
		}
		return err
	}
}

func muteAll(value any) {
	switch v := value.(type) {
	case node:
		if _, isText := v["description"].(string); isText {
			delete(v, "description")
		}
		for _, child := range v {
			muteAll(child)
		}
	case []any:
		for _, child := range v {
			muteAll(child)
		}
	}
}

// regroup moves the resource to another API group.
func regroup(group string) edit {
	return func(crd node) error {
		spec, meta := crd["spec"].(node), crd["metadata"].(node)
		spec["group"] = group
		meta["name"] = spec["names"].(node)["plural"].(string) + "." + group
		return nil
	}
}

// version renames the one version that is served.
func version(name string) edit {
	return func(crd node) error {
		crd["spec"].(node)["versions"].([]any)[0].(node)["name"] = name
		return nil
	}
}

// find walks to a schema. A path is property names joined by dots; [] steps into the items of a list and {} into the
// values of a map.
func find(crd node, path string) (node, error) {
	version := crd["spec"].(node)["versions"].([]any)[0].(node)
	at := version["schema"].(node)["openAPIV3Schema"].(node)
	for _, step := range steps(path) {
		next, ok := child(at, step)
		if !ok {
			return nil, fmt.Errorf("no schema at %q in %q", step, path)
		}
		at = next
	}
	return at, nil
}

func child(at node, step string) (node, bool) {
	switch step {
	case "[]":
		next, ok := at["items"].(node)
		return next, ok
	case "{}":
		next, ok := at["additionalProperties"].(node)
		return next, ok
	}
	properties, ok := at["properties"].(node)
	if !ok {
		return nil, false
	}
	next, ok := properties[step].(node)
	return next, ok
}

func steps(path string) []string {
	spaced := strings.NewReplacer("[]", ".[]", "{}", ".{}").Replace(path)
	return strings.Split(spaced, ".")
}
