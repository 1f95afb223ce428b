package main

import (
	"fmt"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"
)

// settings are the parts of mkdocs.yml that this command reads.
type settings struct {
	Repository string `yaml:"repo_url"`
	Extra      struct {
		// Outside has the READMEs that are pages: the path in the site, and in the repository.
		Outside map[string]string
		// Optional are the pages whose entries in the navigation are dropped while they do not exist.
		Optional []string
	}
}

// readConfig returns the settings, and the file as a document that keeps the generator's own tags.
func readConfig(path string) (*yaml.Node, settings, error) {
	var document yaml.Node
	var s settings
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, s, fmt.Errorf("reading the settings of the site: %w", err)
	}
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, s, fmt.Errorf("reading %s: %w", path, err)
	}
	for name, part := range map[string]any{"repo_url": &s.Repository, "extra": &s.Extra} {
		node := member(document.Content[0], name)
		if node == nil {
			return nil, s, fmt.Errorf("%s has no %s", path, name)
		}
		if err := node.Decode(part); err != nil {
			return nil, s, fmt.Errorf("reading %s of %s: %w", name, path, err)
		}
	}
	return &document, s, nil
}

// member returns a value of a mapping, or nil.
func member(mapping *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// dropEntries removes pages from a list of the navigation, and sections that are then empty.
func dropEntries(list *yaml.Node, pages []string) {
	list.Content = slices.DeleteFunc(list.Content, func(entry *yaml.Node) bool {
		page := entry
		if entry.Kind == yaml.MappingNode {
			page = entry.Content[1]
		}
		if page.Kind == yaml.SequenceNode {
			dropEntries(page, pages)
			return len(page.Content) == 0
		}
		return slices.Contains(pages, page.Value)
	})
}
