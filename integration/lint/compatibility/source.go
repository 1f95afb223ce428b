package main

import (
	"fmt"
	"os/exec"
	"strings"
)

// Source is one of Karpenter's modules, at the version that go.mod requires.
type Source struct {
	// Name is how homes refer to it.
	Name string
	// Version is that of the module, such as v1.15.1. A replaced module has the version that replaces it.
	Version string
	// Dir is its folder in the module cache.
	Dir string
	// URL is where people read its files, without the file's path.
	URL string
}

var modules = []struct{ name, path, repository string }{
	{"core", "sigs.k8s.io/karpenter", "https://github.com/kubernetes-sigs/karpenter"},
	{"provider", "github.com/aws/karpenter-provider-aws", "https://github.com/aws/karpenter-provider-aws"},
}

// findSources asks the go command for the versions and the folders of Karpenter's modules.
func findSources() ([]Source, error) {
	var sources []Source
	for _, m := range modules {
		out, err := exec.Command("go", "list", "-m", "-f", "{{if .Replace}}{{.Replace.Version}}{{else}}{{.Version}}{{end}} {{.Dir}}", m.path).Output()
		if err != nil {
			return nil, fmt.Errorf("finding the module %s: %w", m.path, err)
		}
		version, dir, ok := strings.Cut(strings.TrimSpace(string(out)), " ")
		if !ok {
			return nil, fmt.Errorf("module %s is not in the module cache (try: cd integration && go mod download)", m.path)
		}
		sources = append(sources, Source{Name: m.name, Version: version, Dir: dir, URL: m.repository + "/blob/" + version + "/"})
	}
	return sources, nil
}
