package main

import (
	"fmt"
	"maps"
	"strings"
)

// node is one object of the decoded manifest.
type node = map[string]any

// edit changes a manifest in place. Edits are idempotent: applying them to a finished manifest changes nothing.
type edit func(crd node) error

// setKeywords sets keywords of the schema at path.
func setKeywords(path string, keywords node) edit {
	return func(crd node) error {
		schema, err := findSchema(crd, path)
		if err != nil {
			return err
		}
		maps.Copy(schema, keywords)
		return nil
	}
}

// removeKeywords removes a keyword of the schema at path.
func removeKeywords(path, keyword string) edit {
	return func(crd node) error {
		schema, err := findSchema(crd, path)
		if err == nil {
			delete(schema, keyword)
		}
		return err
	}
}

// removeDescription removes the descriptions at and below path, which are those of Kubernetes' own types.
func removeDescription(path string) edit {
	return func(crd node) error {
		schema, err := findSchema(crd, path)
		if err == nil {
			removeDescriptions(schema)
		}
		return err
	}
}

func removeDescriptions(value any) {
	switch v := value.(type) {
	case node:
		if _, isText := v["description"].(string); isText {
			delete(v, "description")
		}
		for _, child := range v {
			removeDescriptions(child)
		}
	case []any:
		for _, child := range v {
			removeDescriptions(child)
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

// version renames the only version.
func version(name string) edit {
	return func(crd node) error {
		crd["spec"].(node)["versions"].([]any)[0].(node)["name"] = name
		return nil
	}
}

// findSchema returns the schema at a path. A path is property names joined by dots; [] selects the items of a list
// and {} the values of a map.
func findSchema(crd node, path string) (node, error) {
	version := crd["spec"].(node)["versions"].([]any)[0].(node)
	at := version["schema"].(node)["openAPIV3Schema"].(node)
	for _, step := range splitPath(path) {
		next, ok := findChild(at, step)
		if !ok {
			return nil, fmt.Errorf("no schema at %q in %q", step, path)
		}
		at = next
	}
	return at, nil
}

func findChild(at node, step string) (node, bool) {
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

func splitPath(path string) []string {
	spaced := strings.NewReplacer("[]", ".[]", "{}", ".{}").Replace(path)
	return strings.Split(spaced, ".")
}
