// Command crdgen writes the manifests of the custom resources.
//
// controller-gen turns the markers on our types into schemas. Three things it cannot say are added here: rules inside types
// that Kubernetes owns (Taint, Condition), rules on the values of maps, and rules that differ between two kinds
// that share a type. It also knows one group and version a package, so other kinds are moved to their own. The rules are those of
// the manifests that Karpenter installs, so that an object is valid for both or for neither; but each value of a requirement is
// checked as well, which upstream's manifests only appear to do.
//
// Usage: go run ./internal/crdgen <directory>
package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

const controllerGen = "sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0"

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: crdgen <directory>")
	}
	if err := generate(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func generate(dir string) error {
	raw, err := os.MkdirTemp("", "crdgen")
	if err != nil {
		return fmt.Errorf("making room for the raw manifests: %w", err)
	}
	defer func() { _ = os.RemoveAll(raw) }()
	generate := exec.Command("go", "run", controllerGen, "crd", "paths=.", "output:crd:dir="+raw)
	generate.Stdout, generate.Stderr = os.Stdout, os.Stderr
	if err := generate.Run(); err != nil {
		return fmt.Errorf("running controller-gen: %w", err)
	}
	for _, m := range manifests() {
		if err := m.write(raw, dir); err != nil {
			return err
		}
	}
	return nil
}

// manifest is one custom resource on its way from controller-gen's file to ours.
type manifest struct {
	raw, file string // file names before and after
	edits     []edit
}

func (m manifest) write(from, to string) error {
	text, err := os.ReadFile(filepath.Join(from, m.raw))
	if err != nil {
		return fmt.Errorf("reading what controller-gen wrote: %w", err)
	}
	out, err := m.apply(text)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(to, m.file), out, 0o644); err != nil {
		return fmt.Errorf("writing a manifest: %w", err)
	}
	return nil
}

func (m manifest) apply(text []byte) ([]byte, error) {
	var crd node
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return nil, fmt.Errorf("reading manifest %s: %w", m.raw, err)
	}
	for _, e := range m.edits {
		if err := e(crd); err != nil {
			return nil, fmt.Errorf("completing manifest %s: %w", m.file, err)
		}
	}
	out, err := yaml.Marshal(crd)
	if err != nil {
		return nil, fmt.Errorf("writing manifest %s: %w", m.file, err)
	}
	return out, nil
}
